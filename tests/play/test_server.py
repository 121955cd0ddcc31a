"""The server of the page, without a browser: what it answers, and what it refuses."""

import base64
import contextlib
import http.client
import io
import json
import socket
import threading

import numpy as np
import pytest
from PIL import Image

from hvin_jax.play.answers import Answers
from hvin_jax.play.server import MOST_BYTES, PlayServer
from hvin_jax.tasks.generation import FAMILIES

ROWS = ["#######", "#.....#", "#.##..#", "#..#..#", "#######"]
ASKED = {"page": "p", "map": ROWS, "start": [1, 1], "goal": [3, 5], "planners": ["news"]}


class Cold(Answers):
    """Without a map to warm up on: these tests have one of another size."""

    def warm_up(self):
        pass


@pytest.fixture(scope="module")
def server():
    server = PlayServer("127.0.0.1", 0, Cold(["news"]))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def request(server, method, path, body=None, **headers):
    """Status, headers and content of an answer."""
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    return answer.status, answer.headers, content


def ask(server, path, content, **headers):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    headers = {"Content-Type": "application/json", **headers}
    status, _, answer = request(server, "POST", path, body, **headers)
    return status, answer if status == 200 and path == "/api/gif" else json.loads(answer)


def test_the_page(server):
    status, headers, content = request(server, "GET", "/")
    assert (status, headers.get_content_type()) == (200, "text/html")
    assert b"Watch a planner think" in content
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    for path, kind in (("/play.js", "text/javascript"), ("/play.css", "text/css")):
        assert request(server, "GET", path)[1].get_content_type() == kind


def test_what_there_is(server):
    info = json.loads(request(server, "GET", "/api/info")[2])
    assert info["planners"][0]["name"] == "news"
    assert {planner["name"] for planner in info["planners"]} >= {"diffdrive", "diffdrive-15"}
    assert info["families"] == sorted(FAMILIES)


def test_a_thought(server):
    status, answer = ask(server, "/api/think", ASKED)
    assert status == 200
    (thought,) = answer["thoughts"]
    count, *shape = thought["shape"]
    assert shape == [5, 7, 1]
    assert len(thought["paths"]) == len(thought["depths"]) == count
    assert thought["paths"][-1][-1] == [3, 5, 0]
    values = np.frombuffer(base64.b64decode(thought["values"]), np.uint8).reshape(thought["shape"])
    free = np.array([[cell == "." for cell in row] for row in ROWS])
    assert values[-1, ..., 0][free].min() == 0
    assert values[-1, ..., 0][free].max() == 255
    assert values[-1, 3, 5, 0] > values[-1, 1, 1, 0]  # a DT-VIN's values rise towards the goal
    assert len(base64.b64decode(thought["policies"])) == values.size
    assert thought["shortest"] == len(thought["best"]) - 1 == 6


def test_a_film(server):
    status, content = ask(server, "/api/gif", ASKED)
    assert status == 200
    with Image.open(io.BytesIO(content)) as image:
        assert (image.format, image.is_animated) == ("GIF", True)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_samples(server, family):
    status, _, content = request(server, "GET", f"/api/sample?family={family}&side=15&seed=3")
    answer = json.loads(content)
    assert status == 200
    rows = answer["map"]
    assert {len(row) for row in rows} == {len(rows)} == {15}
    for row, column in (answer["start"], answer["goal"]):
        assert rows[row][column] == "."
    assert answer["start"] != answer["goal"]


def test_a_map_from_a_drawing(server):
    drawing = "#####\n#S.G#\n#####\n"
    status, answer = ask(server, "/api/text", drawing.encode())
    assert (status, answer) == (
        200,
        {"map": ["#####", "#...#", "#####"], "start": [1, 1], "goal": [1, 3]},
    )


@pytest.mark.parametrize(
    ("drawing", "ends"),
    [
        ("###\n#.#\n#S#\n###", ([2, 1], [1, 1])),
        ("###\n#G#\n#.#\n###", ([2, 1], [1, 1])),
        ("###\n#.#\n#.#\n###", ([1, 1], [2, 1])),
    ],
)
def test_ends_that_a_drawing_leaves_out(server, drawing, ends):
    _, answer = ask(server, "/api/text", drawing.encode())
    assert (answer["start"], answer["goal"]) == ends


def test_of_several_goals_one_is_shown(server):
    _, answer = ask(server, "/api/text", b"#####\n#SGG#\n#####\n")
    assert answer["goal"] == [1, 2]
    assert answer["note"] == "this page shows one goal: the first of the 2 of the map"


def test_caution_about_sizes(server):
    rows = ["." * 101] * 3
    asked = {**ASKED, "map": rows, "goal": [1, 5], "planners": ["diffdrive-15"]}
    (small,) = ask(server, "/api/think", {**ASKED, "planners": ["diffdrive-15"]})[1]["thoughts"]
    (large,) = ask(server, "/api/think", asked)[1]["thoughts"]
    assert small["caution"] is None
    assert large["caution"].endswith("3×101: nobody knows how well it does there")


@pytest.mark.parametrize(("cell", "scale"), [("0", 1), ("0", 6), ("6", 6)])
def test_a_map_from_an_image(server, cell, scale):
    free = np.array([[character == "." for character in row] for row in ROWS])
    pixels = (255 * free).astype(np.uint8).repeat(scale, axis=0).repeat(scale, axis=1)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    status, answer = ask(server, f"/api/png?cell={cell}", file.getvalue())
    assert (status, answer["map"]) == (200, ROWS)


def test_an_image_without_walls(server):
    file = io.BytesIO()
    Image.new("L", (40, 40), "white").save(file, "PNG")
    status, answer = ask(server, "/api/png", file.getvalue())
    assert status == 400
    assert answer["error"].endswith("a side: cells of 40×40 pixels, as guessed from the image")


MALFORMED = [
    (b"", "the request is no JSON"),
    (b"{", "the request is no JSON"),
    (b"[" * 100_000, "the request is no JSON"),
    (b"\xff\xfe", "the request is no JSON"),
    ([1], "the request must be a JSON object"),
    ({**ASKED, "page": None}, "a question must say which page asks, in a word"),
    ({**ASKED, "page": "x" * 65}, "a question must say which page asks, in a word"),
    ({**ASKED, "map": None}, "the map must be a list of rows of # (wall) and . (free)"),
    ({**ASKED, "map": [["#"]]}, "the map must be a list of rows of # (wall) and . (free)"),
    (
        {**ASKED, "map": ["...", "..", "..."]},
        "the rows of the map must be equally long, of # (wall",
    ),
    (
        {**ASKED, "map": ["..x", "...", "..."]},
        "the rows of the map must be equally long, of # (wall",
    ),
    ({**ASKED, "map": ["." * 102] * 102}, "the map has 102×102 cells, expected 3 to 101 a side"),
    ({**ASKED, "map": [".."]}, "the map has 1×2 cells, expected 3 to 101 a side"),
    ({**ASKED, "start": [1]}, "the start must be two whole numbers, row and column"),
    ({**ASKED, "start": [1.0, 1]}, "the start must be two whole numbers, row and column"),
    ({**ASKED, "goal": [True, 1]}, "the goal must be two whole numbers, row and column"),
    ({**ASKED, "goal": [0, 0]}, "the goal (0, 0) is on a wall"),
    ({**ASKED, "goal": [9, 9]}, "the goal (9, 9) is outside of the 5×7 map"),
    ({**ASKED, "planners": []}, "say which planner should think, one or 2 of them"),
    ({**ASKED, "planners": ["news"] * 3}, "say which planner should think, one or 2 of them"),
    ({**ASKED, "planners": ["../news"]}, "there is no planner '../news' here"),
    ({**ASKED, "planners": [{}]}, "there is no planner '{}' here"),
]


@pytest.mark.parametrize("path", ["/api/think", "/api/gif"])
@pytest.mark.parametrize(("asked", "sentence"), MALFORMED, ids=[str(i) for i in range(22)])
def test_malformed_questions(server, path, asked, sentence):
    status, answer = ask(server, path, asked)
    assert status == 400
    assert answer["error"].startswith(sentence)
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        ("/api/text", b"###\n#x#\n###", "unknown character 'x' in line 2, column 2 of the map"),
        ("/api/text", b"", "the drawing of the map is empty"),
        ("/api/text", b"\xff\xfe\x00", "the file is not a text in UTF-8"),
        ("/api/text", b"#####\n#S###\n#####", "the map has no two free cells"),
        ("/api/text", b"#####\n#S9G#\n#####", "this page knows no costs: take the digits out"),
        ("/api/png", b"GIF89a", "the image is not an image in PNG format"),
        ("/api/png?cell=x", b"", "cell must be a whole number, not 'x'"),
    ],
)
def test_malformed_files(server, path, content, sentence):
    status, answer = ask(server, path, content)
    assert status == 400
    assert answer["error"].startswith(sentence)


@pytest.mark.parametrize(
    "query",
    ["", "family=x&side=15&seed=1", "family=caves&side=6&seed=1", "family=caves&side=1e9&seed=1"],
)
def test_samples_that_there_are_not(server, query):
    status, _, content = request(server, "GET", f"/api/sample?{query}")
    assert status == 400
    assert len(json.loads(content)["error"].splitlines()) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/play.py",
        "/../server.py",
        "/static/../../planner.py",
        "//etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fplanner.json",
        "/play.js/../server.py",
        "/api",
    ],
)
def test_no_other_file_is_read(server, path):
    status, _, content = request(server, "GET", path)
    assert (status, json.loads(content)) == (404, {"error": "there is nothing at this address"})
    assert request(server, "POST", path, b"{}")[0] == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Host": "10.0.0.1"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=str,
)
def test_other_names_and_other_pages_are_refused(server, headers, status):
    assert request(server, "GET", "/api/info", **headers)[0] == status
    assert ask(server, "/api/think", ASKED, **headers)[0] == status


def test_an_address_of_numbers_where_all_may_come():
    server = PlayServer("0.0.0.0", 0, Cold())
    try:
        assert server.serves("192.168.1.7")
        assert not server.serves("evil.example")
        assert server.address.startswith("http://127.0.0.1:")
    finally:
        server.server_close()


def test_many_knock_at_once():
    server = PlayServer("127.0.0.1", 0, Cold())  # which does not yet open to anybody
    with contextlib.ExitStack() as stack:
        stack.callback(server.server_close)
        for _ in range(200):
            stack.enter_context(socket.create_connection(server.server_address, timeout=2))


def test_a_large_request_is_answered(server):
    status, answer = ask(server, "/api/text", b"." * (10 * MOST_BYTES))
    assert (status, answer["error"]) == (413, "expected 1,048,576 bytes at most")


def test_requests_of_bad_size(server):
    status, answer = ask(server, "/api/think", ASKED, **{"Content-Length": str(MOST_BYTES + 1)})
    assert (status, answer["error"]) == (413, "expected 1,048,576 bytes at most")
    for length in ("-1", "x", "9" * 30):
        assert ask(server, "/api/think", b"", **{"Content-Length": length})[0] == 411
    status, answer = ask(server, "/api/think", ASKED, **{"Content-Type": "text/plain"})
    assert status == 415
    for method in ("PUT", "DELETE", "PATCH"):
        status, _, content = request(server, method, "/api/think", b"{}")
        assert (status, json.loads(content)["error"]) == (405, "only GET and POST are answered")


@pytest.mark.parametrize("sent", [b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\r\n"])
def test_what_is_no_http(server, sent):
    with socket.create_connection(server.server_address, timeout=10) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert b'{"error": ' in answer
    assert b"Traceback" not in answer
