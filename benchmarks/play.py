"""How long the page of `hvin play` takes from a stroke to the picture, measured in the page.

Chromium, driven by selenium, draws and erases walls one at a time; the page itself takes the time
from the stroke until the answer is shown.
"""

import shutil
import threading
import time
from collections.abc import Sequence

import numpy as np
from absl import app, flags
from selenium import webdriver
from selenium.webdriver.common.by import By

from hvin_jax.play.answers import Answers
from hvin_jax.play.server import PlayServer

_PLANNERS = flags.DEFINE_list(
    "planners", ["diffdrive", "diffdrive-15", "diffdrive-25", "news", "moore"], "Which planners."
)
_SIDES = flags.DEFINE_list("sides", ["15", "51"], "Sides of maps.")
_STROKES = flags.DEFINE_integer("strokes", 40, "Strokes on each map.", lower_bound=1)

_STROKE = """
const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
canvas.setPointerCapture = () => {};
const [row, column, side] = arguments;
const at = { clientX: box.left + ((column + 0.5) / side) * box.width,
             clientY: box.top + ((row + 0.5) / side) * box.height, pointerId: 1 };
for (const name of ["down", "up"]) canvas.dispatchEvent(new PointerEvent(`pointer${name}`, at));
"""
_ANSWERS = "return Number(document.body.dataset.answers ?? 0)"


def main(argv: Sequence[str]) -> None:
    """Prints a table."""
    del argv
    server = PlayServer("127.0.0.1", 0, Answers())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1100,1200"):
        options.add_argument(word)
    browser = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    try:
        browser.get(server.address)
        _wait(browser, 0)
        print(f"{'planner':15}{'side':>5}{'median ms':>11}{'95 % ms':>9}{'most ms':>9}")
        for side in map(int, _SIDES.value):
            for planner in _PLANNERS.value:
                times = _strokes(browser, planner, side)
                shown = (np.median(times), np.percentile(times, 95), np.max(times))
                print(f"{planner:15}{side:5}" + "{:11.0f}{:9.0f}{:9.0f}".format(*shown), flush=True)
    finally:
        browser.quit()
        server.shutdown()
        server.server_close()


def _strokes(browser: webdriver.Chrome, planner: str, side: int) -> list[float]:
    """The milliseconds of each stroke on a sample map; the first, which compiles, is left out."""
    for name, value in (("planner0", planner), ("side", str(side))):
        before = browser.execute_script(_ANSWERS)
        element = browser.find_element(By.ID, name)
        script = (
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"
        )
        browser.execute_script(script, element, value)
        _wait(browser, before)
    rng, times = np.random.default_rng(0), []
    for _ in range(_STROKES.value + 1):
        before = browser.execute_script(_ANSWERS)
        while browser.execute_script(_ANSWERS) == before:
            # A stroke on start or goal changes nothing: then another one is tried.
            row, column = (int(x) for x in rng.integers(1, side - 1, 2))
            browser.execute_script(_STROKE, row, column, side)
            while browser.execute_script("return document.body.dataset.asking") == "yes":
                time.sleep(0.005)
        times.append(float(browser.execute_script("return document.body.dataset.latency")))
    return times[1:]


def _wait(browser: webdriver.Chrome, before: int) -> None:
    end = time.monotonic() + 300
    while browser.execute_script(_ANSWERS) == before:
        if time.monotonic() > end:
            raise TimeoutError("the page did not answer")
        time.sleep(0.01)


if __name__ == "__main__":
    app.run(main)
