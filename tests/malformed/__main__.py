"""Tries malformed inputs on all commands and readers, and writes a table of what came of it.

    python -m tests.malformed            # all, into table.md beside this file; minutes
    python -m tests.malformed huge map   # only cases whose kind, command or name has these words

Each case runs in a process of its own, with a copy of some sound files, for at most 30 seconds and
in at most 5 GB. A *clear* end is an exit code above 0, one line on stderr, and no file or folder
that was not there before. Everything else is listed below the table.
"""

import collections
import concurrent.futures
import os
import pathlib
import queue
import resource
import subprocess
import sys
import tempfile
import time

from tests.malformed.attempt import OUTCOMES, attempt
from tests.malformed.cases import all_cases
from tests.malformed.kit import make_kit

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from warm_start import WarmStarter

AT_ONCE = 6
# Of what is tried, all that defines no flags: several commands have one of the same name.
PRELOADED = (
    "tests.malformed.load",
    "experiments.configs.base",
    "hvin_jax.training",
    "hvin_jax.cli",
)
MEMORY = 5 << 30
TABLE = pathlib.Path(__file__).with_name("table.md")


def main():
    words = sys.argv[1:]
    cases = [
        x
        for x in all_cases()
        if not words or any(w in f"{x.kind} {x.command} {x.name}" for w in words)
    ]
    if not cases:
        sys.exit(f"no case has any of these words: {' '.join(words)}")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        kit = pathlib.Path(scratch) / "kit"
        kit.mkdir()
        make_kit(kit)
        starters = queue.SimpleQueue()
        for _ in range(AT_ONCE):
            starters.put(WarmStarter(also=PRELOADED))

        def one(number):
            starter = starters.get()
            try:
                return attempt(cases[number], starter, kit, pathlib.Path(scratch) / str(number))
            finally:
                starters.put(starter)

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            results = []
            for result in pool.map(one, range(len(cases))):
                results.append(result)
                if result.outcome != "clear":
                    print(_line(cases[len(results) - 1], result), file=sys.stderr)
                print(f"{len(results)} of {len(cases)}", end="\r", file=sys.stderr, flush=True)
        for _ in range(AT_ONCE):
            starters.get().close()
    minutes = (time.monotonic() - began) / 60
    text = _table(cases, results)
    print(text)
    longest = max(range(len(cases)), key=lambda i: results[i].seconds)
    print(
        f"{minutes:.1f} minutes; longest: {results[longest].seconds:.1f} s, {cases[longest].name}"
    )
    if not words:
        TABLE.write_text(text)
    sys.exit(any(result.outcome != "clear" for result in results))


def _table(cases, results):
    counts = collections.Counter((c.kind, r.outcome) for c, r in zip(cases, results, strict=True))
    lines = [
        "# Malformed inputs",
        "",
        f"What {len(cases)} of them came to, by `python -m tests.malformed` at commit {_commit()}",
        "(what counts as what: `__main__.py` beside this file).",
        "",
        f"| input | cases | {' | '.join(OUTCOMES)} |",
        f"|---|{'---|' * (1 + len(OUTCOMES))}",
    ]
    for kind in sorted({case.kind for case in cases}):
        row = [counts[kind, outcome] for outcome in OUTCOMES]
        lines.append(f"| {kind} | {sum(row)} | {' | '.join(map(str, row))} |")
    row = [sum(r.outcome == outcome for r in results) for outcome in OUTCOMES]
    lines += [f"| all | {len(cases)} | {' | '.join(map(str, row))} |", ""]
    others = [_line(c, r) for c, r in zip(cases, results, strict=True) if r.outcome != "clear"]
    lines += ["Not clear:", "", *(f"- {line}" for line in others)] if others else ["All are clear."]
    return "\n".join(lines) + "\n"


def _line(case, result):
    return f"{result.outcome}: {case.command}, {case.kind}, {case.name}: {result.said[-300:]!r}"


def _commit():
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TABLE.parent)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    main()
