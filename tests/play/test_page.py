"""The page in a real browser: what people do there, and what it shows.

Debian's `chromium` and `chromium-driver`, driven by selenium. Where there is no browser, these
tests are skipped and say so.
"""

import base64
import json
import shutil
import threading
import time
import urllib.parse

import jax
import pytest

from hvin_jax import Planner, save_planner
from hvin_jax.models import init_params, make_model
from hvin_jax.play.answers import Answers
from hvin_jax.play.server import PlayServer
from hvin_jax.tasks.mechanisms import get_mechanism

selenium = pytest.importorskip("selenium", reason="selenium is not installed: no test in a browser")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.processes,
    pytest.mark.skipif(
        not (BROWSER and DRIVER),
        reason="there is no chromium with chromedriver here: the page was not tested in a browser",
    ),
]
SIDE = 9


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page that shows a planner that comes with the package, and the folder of another."""
    folder = tmp_path_factory.mktemp("highway")
    settings = {"kind": "highway_vin", "num_orientations": 1, "num_actions": 4, "hidden": 4}
    settings |= {"num_blocks": 6, "block_depth": 3, "latent_actions": 4}
    params = init_params(make_model(**settings), jax.random.key(0))
    save_planner(folder, Planner(settings, params, get_mechanism("news")))
    server = PlayServer("127.0.0.1", 0, Answers(["news", str(folder)]))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1100,1200")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield Page(browser, server.address, str(folder))
    finally:
        browser.quit()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def empty(page):
    """The page with an empty map of 9×9."""
    row = "#" + "." * (SIDE - 2) + "#"
    page.open(address([*["#" * SIDE], *[row] * (SIDE - 2), "#" * SIDE], (1, 1), (7, 7)))
    return page


class Page:
    """What tests do on the page."""

    def __init__(self, browser, address, other):
        self.browser, self.address, self.other = browser, address, other

    def open(self, hash_=""):
        self.browser.get("about:blank")
        self.browser.get(self.address + hash_)
        self.wait(lambda: self.data("answers"))

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def data(self, name):
        return self.js("return document.body.dataset[arguments[0]]", name)

    def id(self, name):
        return self.browser.find_element(By.ID, name)

    def wait(self, holds, seconds=40):
        end = time.monotonic() + seconds
        while not (found := holds()):
            assert time.monotonic() < end, "the page did not get there"
            time.sleep(0.02)
        return found

    def path(self, panel=0):
        script = "return document.querySelectorAll('.panel')[arguments[0]].dataset.path"
        return [tuple(cell) for cell in json.loads(self.js(script, panel))]

    def caption(self, panel=0):
        return self.browser.find_elements(By.CLASS_NAME, "caption")[panel].text

    def pointer(self, *events, panel=0):
        """Pointer events at cells: ("down", row, column) and the like, all at once."""
        self.js(
            """
            const [panel, events, side] = arguments;
            const canvas = document.querySelectorAll("canvas")[panel];
            const box = canvas.getBoundingClientRect();
            canvas.setPointerCapture = () => {};
            for (const [name, row, column] of events) {
              const at = { clientX: box.left + ((column + 0.5) / side) * box.width,
                           clientY: box.top + ((row + 0.5) / side) * box.height };
              const event = new PointerEvent(`pointer${name}`, { ...at, pointerId: 1 });
              canvas.dispatchEvent(event);
            }
            """,
            panel,
            events,
            SIDE,
        )

    def doing(self, what):
        """Does something and waits for the answer to it."""
        before = int(self.data("answers"))
        what()
        self.wait(lambda: int(self.data("answers")) > before)

    def state(self):
        """Map, start, goal and planners of the page's address, once it has come to rest."""
        time.sleep(0.25)
        return read_address(self.js("return location.hash"))


def address(rows, start, goal, planners="news"):
    """The address of a map, written from what it is said to be and not from the page's code."""
    bits = "".join("1" if cell == "." else "0" for row in rows for cell in row)
    packed = bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))
    words = {
        "size": f"{len(rows)}x{len(rows[0])}",
        "map": base64.urlsafe_b64encode(packed).decode().rstrip("="),
        "start": "{}.{}".format(*start),
        "goal": "{}.{}".format(*goal),
        "planners": planners,
    }
    return "#" + urllib.parse.urlencode(words)


def read_address(text):
    words = dict(urllib.parse.parse_qsl(text.lstrip("#")))
    height, width = map(int, words["size"].split("x"))
    packed = base64.urlsafe_b64decode(words["map"] + "=" * (-len(words["map"]) % 4))
    bits = "".join(f"{byte:08b}"[::-1] for byte in packed)[: height * width]
    rows = [
        bits[i : i + width].replace("1", ".").replace("0", "#") for i in range(0, len(bits), width)
    ]
    ends = [tuple(map(int, words[name].split("."))) for name in ("start", "goal")]
    return rows, *ends, words["planners"].split(",")


def test_the_first_sight(page):
    page.open()
    assert "ms from the stroke to the picture" in page.id("latency").text
    rows, start, goal, planners = page.state()
    assert len(rows) == 15
    assert planners == ["news"]
    assert page.path()[0] == start
    assert page.path()[-1] == goal
    assert page.browser.title == "hvin play: watch a planner think"


def test_draw_and_erase(empty):
    assert len(empty.path()) == 13
    wall = [("down", 4, 1), ("move", 4, 4), ("move", 4, 6), ("up", 4, 6)]
    empty.doing(lambda: empty.pointer(*wall))
    empty.wait(lambda: not {(4, column) for column in range(1, 7)} & {*empty.path()})
    assert empty.state()[0][4] == "#######.#"
    assert empty.path()[-1] == (7, 7)
    empty.doing(lambda: empty.pointer(("down", 4, 3), ("up", 4, 3)))
    assert empty.state()[0][4] == "###.###.#"


def test_drag_start_and_goal(empty):
    empty.doing(lambda: empty.pointer(("down", 1, 1), ("move", 3, 3), ("move", 5, 2), ("up", 5, 2)))
    assert empty.state()[1:3] == ((5, 2), (7, 7))
    empty.doing(lambda: empty.pointer(("down", 7, 7), ("move", 1, 6), ("up", 1, 6)))
    assert empty.state()[1:3] == ((5, 2), (1, 6))
    empty.wait(lambda: (empty.path()[0], empty.path()[-1]) == ((5, 2), (1, 6)))
    assert "#" not in "".join(row[1:-1] for row in empty.state()[0][1:-1])  # no wall was drawn


def test_walls_survive_what_is_dragged_over_them(empty):
    wall = [("down", 4, 1), ("move", 4, 7), ("up", 4, 7)]
    empty.doing(lambda: empty.pointer(*wall))
    way = [("move", row, 3) for row in range(1, 7)]
    empty.doing(lambda: empty.pointer(("down", 1, 1), *way, ("up", 6, 3)))
    assert empty.state()[:2] == (
        ["#" * 9, *["#.......#"] * 3, "#" * 9, *["#.......#"] * 3, "#" * 9],
        (6, 3),
    )
    empty.doing(lambda: empty.pointer(("down", 6, 3), ("move", 4, 3), ("up", 4, 3)))
    empty.doing(lambda: empty.pointer(("down", 4, 3), ("move", 2, 2), ("up", 2, 2)))
    assert empty.state()[0][4] == "###.#####"  # where it was dropped


def test_by_keyboard(empty):
    canvas = empty.browser.find_element(By.TAG_NAME, "canvas")
    empty.doing(lambda: canvas.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, " "))
    assert empty.state()[0][2] == "#.#.....#"
    empty.doing(lambda: canvas.send_keys(Keys.ARROW_RIGHT, "s"))
    assert empty.state()[1] == (2, 3)


def test_keys_act_on_the_cell_that_is_shown(empty):
    canvas = empty.browser.find_element(By.TAG_NAME, "canvas")
    picture = "return document.querySelector('canvas').toDataURL()"
    before = empty.js(picture)
    empty.js("arguments[0].focus()", canvas)
    empty.wait(lambda: empty.js(picture) != before)
    empty.doing(lambda: canvas.send_keys("g"))  # at the start
    assert empty.state()[2] == (1, 1)


def test_empty_keeps_the_size(page):
    page.open(address(["." * 21] * 12, (11, 20), (0, 0)))
    assert page.id("side").get_property("selectedOptions")[0].get_property("text") == "12×21"
    canvas = page.browser.find_element(By.TAG_NAME, "canvas")
    page.doing(lambda: canvas.send_keys(Keys.ARROW_LEFT, " "))  # a cell in the last row
    page.doing(page.id("clear").click)
    assert page.state()[:3] == (
        ["#" * 21, *["#" + "." * 19 + "#"] * 10, "#" * 21],
        (1, 1),
        (10, 19),
    )
    page.doing(lambda: canvas.send_keys(Keys.ARROW_DOWN, " "))  # from the new start
    assert page.state()[0][2][1] == "#"


@pytest.mark.parametrize("control", ["moment", "arrows", "theme"])
def test_keys_for_layers_work_everywhere(empty, control):
    at = empty.id("moment").get_property("value")
    empty.id(control).send_keys(",")
    assert int(empty.id("moment").get_property("value")) == int(at) - 1


def test_slide_and_play(empty):
    slider = empty.id("moment")
    slider.send_keys(Keys.HOME)
    empty.wait(lambda: empty.js("return document.querySelector('.panel').dataset.moment") == "0")
    assert empty.path()[-1] != (7, 7)  # one layer is not enough
    assert "lost" in empty.caption()
    slider.send_keys(Keys.END)
    empty.wait(lambda: empty.path()[-1] == (7, 7))
    assert "12 actions, shortest 12" in empty.caption()
    slider.send_keys(Keys.HOME)
    empty.id("run").click()
    empty.wait(lambda: int(slider.get_attribute("value")) > 2)
    assert empty.id("run").get_attribute("aria-label") == "Pause"
    empty.id("run").click()


def test_compare_two_planners(empty):
    assert not empty.id("gateChoice").is_displayed()
    second = empty.browser.find_elements(By.CSS_SELECTOR, ".panel select")[1]
    empty.doing(empty.id("compare").click)
    empty.js(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))",
        second,
        empty.other,
    )
    empty.wait(lambda: "of 18 layers" in empty.caption(1))
    assert empty.path()[-1] == (7, 7)
    assert empty.state()[3] == ["news", empty.other]
    assert empty.id("gateChoice").is_displayed()
    picture = "return document.querySelectorAll('canvas')[1].toDataURL()"
    values = empty.js(picture)
    empty.js("document.querySelector('input[value=gate]').click()")
    empty.wait(lambda: empty.js(picture) != values)
    # Both panels are one map.
    empty.doing(lambda: empty.pointer(("down", 3, 3), ("up", 3, 3), panel=1))
    assert empty.state()[0][3][3] == "#"
    empty.js("document.querySelector('input[value=values]').click()")


def test_reload_by_address(empty):
    empty.doing(lambda: empty.pointer(("down", 2, 2), ("move", 2, 5), ("up", 2, 5)))
    before, link = empty.state(), empty.js("return location.hash")
    path = empty.path()
    empty.open(link)
    assert empty.state() == before
    assert empty.path() == path


def test_a_damaged_address(page):
    page.open("#size=9x9&map=AAAA&start=1.1&goal=7.7")
    assert "the address does not carry a whole map" in page.id("error").text
    assert len(page.state()[0]) == 15  # there is a map all the same


def test_an_address_with_an_unknown_planner(page):
    page.open(address(["." * 5] * 5, (0, 0), (4, 4), planners="nonesuch"))
    assert page.id("error").text == "there is no planner 'nonesuch' here"
    assert page.state()[3] == ["news"]


def test_files(empty, tmp_path):
    before = empty.state()
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "bad.txt").write_text("###\n#x#\n###\n")
    (tmp_path / "costs.txt").write_text("####\n#S5#\n#G3#\n####\n")
    (tmp_path / "goals.txt").write_text("#####\n#SGG#\n#####\n")
    (tmp_path / "good.txt").write_text("#########\n#S......#\n" + "#.......#\n" * 6 + "#######G#\n")
    for name, sentence in (
        ("bad.png", "the image is"),
        ("bad.txt", "unknown character 'x' in line 2, column 2 of the map"),
        ("costs.txt", "this page knows no costs"),
    ):
        empty.id("file").send_keys(str(tmp_path / name))
        empty.wait(lambda sentence=sentence: sentence in empty.id("error").text)
        assert empty.state() == before
    empty.doing(lambda: empty.id("file").send_keys(str(tmp_path / "goals.txt")))
    assert "this page shows one goal" in empty.id("error").text
    empty.doing(lambda: empty.id("file").send_keys(str(tmp_path / "good.txt")))
    assert empty.state()[1:3] == ((1, 1), (8, 7))
    assert not empty.id("error").is_displayed()


def test_two_hundred_quick_strokes(empty):
    before = int(empty.data("answers"))
    begin = time.monotonic()
    for _ in range(10):  # a wall that is drawn and erased, cell by cell
        empty.pointer(*[(name, 4, c) for c in range(1, 8) for name in ("down", "up")])
        empty.pointer(*[(name, r, 4) for r in range(1, 4) for name in ("down", "up")])
        empty.pointer(*[(name, r, 4) for r in range(1, 4) for name in ("down", "up")])
        empty.pointer(*[(name, 4, c) for c in range(1, 8) for name in ("down", "up")])
    empty.pointer(("down", 4, 1), ("move", 4, 6), ("up", 4, 6))
    empty.wait(lambda: (4, 7) in empty.path() and (4, 1) not in empty.path())
    assert empty.state()[0][4] == "#######.#"
    assert int(empty.data("answers")) - before < 200
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(("height", "width"), [(60, 3), (3, 101)])
def test_long_maps_fit_the_window(page, height, width):
    page.open(address(["." * width] * height, (0, 0), (height - 1, width - 1)))
    canvas = page.browser.find_element(By.TAG_NAME, "canvas").rect
    assert canvas["height"] <= page.js("return innerHeight")
    assert canvas["height"] * width == pytest.approx(canvas["width"] * height, rel=0.1)


def test_colours_of_actions_have_a_legend(page):
    page.open(address(["." * 60] * 60, (0, 0), (3, 3)))
    legend = page.browser.find_element(By.CLASS_NAME, "legend")
    assert not legend.text
    page.js("document.querySelector('input[value=none]').click()")
    page.wait(lambda: len(legend.find_elements(By.TAG_NAME, "span")) == 4)
    page.js("document.querySelector('input[value=values]').click()")


def test_saved_pictures_say_what_they_show(empty):
    empty.js(
        "window.saved = []; HTMLAnchorElement.prototype.click = function () {"
        " const image = new Image(); image.src = this.href;"
        " image.onload = () => saved.push([this.download, image.height]); }"
    )
    empty.id("png").click()
    empty.wait(lambda: empty.js("return saved.length"))
    ((name, height),) = empty.js("return saved")
    assert name == "thought-news.png"
    assert height > empty.js("return document.querySelector('canvas').height") + 40  # two lines


def test_on_a_phone(empty):
    size = empty.browser.get_window_size()
    empty.browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
    )
    try:
        widths = "return [document.documentElement.scrollWidth, innerWidth]"
        empty.wait(lambda: empty.js(widths) == [360, 360])
        canvas = empty.browser.find_element(By.TAG_NAME, "canvas").rect
        assert 300 < canvas["width"] <= 360
        assert canvas["height"] == pytest.approx(canvas["width"], abs=2)
        assert min(empty.id("arrows").rect["width"], empty.id("arrows").rect["height"]) >= 24
    finally:
        empty.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        empty.browser.set_window_size(size["width"], size["height"])


def test_light_and_dark(page):
    colour = "return getComputedStyle(document.body).backgroundColor"
    seen = set()
    for scheme in ("light", "dark"):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        seen.add(page.js(colour))
    page.id("theme").click()
    chosen = page.js(colour)
    assert len({*seen, chosen}) == 2
    page.open()
    assert page.js(colour) == chosen
    page.js("localStorage.clear()")


def test_nothing_is_asked_elsewhere(page):
    script = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    names = page.js(script)
    assert names
    assert all(name.startswith((page.address, "data:", "blob:")) for name in names)
