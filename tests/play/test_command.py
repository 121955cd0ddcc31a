"""The command `hvin play`: where it listens, and mistakes in one sentence."""

import socket
import urllib.request

import pytest

from hvin_jax import shipped_planners
from hvin_jax.cli import main
from hvin_jax.play.answers import Answers
from hvin_jax.play.server import PlayServer


@pytest.fixture
def hvin_play(capsys, monkeypatch):
    """Runs the command, which serves what is asked of it meanwhile and then ends by Ctrl-C."""
    monkeypatch.setattr(Answers, "warm_up", lambda self: None)

    def run(*words, meanwhile=lambda server: None):
        def serve(server):
            meanwhile(server)
            raise KeyboardInterrupt

        monkeypatch.setattr(PlayServer, "serve_forever", serve)
        with pytest.raises(SystemExit) as end:
            main(["play", "--no-browser", *words])
        return (end.value.code, *capsys.readouterr())

    return run


def test_it_listens_on_this_machine_alone_and_says_where(hvin_play):
    places = []

    def look(server):
        places.append(server.socket.getsockname())

    code, out, err = hvin_play(meanwhile=look)
    ((host, port),) = places
    assert (code, host, err) == (0, "127.0.0.1", "")
    assert out == f"http://127.0.0.1:{port}/  (Ctrl-C ends it)\n"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--port=x",), "argument --port: x is not a whole number of 0 or more"),
        (("--port=65536",), "--port=65536: expected 65535 at most"),
        (("--planner=gone",), "gone: no planner there"),
        (("--host=nowhere.invalid",), "can't listen at nowhere.invalid, port 0: "),
        (("--poort=1",), "there is no option --poort; did you mean --port?"),
    ],
)
def test_mistakes(hvin_play, words, sentence):
    code, out, err = hvin_play(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"hvin play: {sentence}")
    assert err.count("\n") == 1


def test_a_port_that_is_taken(hvin_play):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = hvin_play(f"--port={taken.getsockname()[1]}")
    assert code == 2
    assert "Address already in use" in err


def test_several_planners_of_ones_own(hvin_play):
    names = []

    def look(server):
        names.extend(planner["name"] for planner in server.planners.info()["planners"])

    hvin_play("--planner=news", "--planner=moore", meanwhile=look)
    assert names[:2] == ["news", "moore"]
    assert len(names) == len(set(names)) == len(shipped_planners())
