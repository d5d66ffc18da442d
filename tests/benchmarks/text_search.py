"""Finding a rare word in a big trace: its first hit, all hits, and the keys meanwhile."""

from __future__ import annotations

import re
import subprocess
from time import perf_counter

from tests.benchmarks.cursor_moves import KEY_SECONDS, press_down
from tests.benchmarks.data import Rollout
from tests.benchmarks.rollouts import RARE_WORD
from tests.benchmarks.setting import Setting, attempt, ours, wait_until_read
from tests.benchmarks.table import Row, missing, times
from tests.benchmarks.terminals import Program, TooLate

KEYS = 30


def measure(setting: Setting) -> list[Row]:
    """Measure the search for a rare word, beside ``grep``."""
    rollout = setting.big
    size = setting.big_name
    base = times(f"grep -c, {size}", [_grep(rollout) for _ in range(setting.times(3, 2))])
    rows = [base]

    def search() -> list[Row]:
        with ours(rollout.path) as program:
            wait_until_read(program, rollout, setting.timeout)
            return _search(setting, rollout, program, base)

    return [*rows, *attempt(f"search, {size}", search)]


def _search(setting: Setting, rollout: Rollout, program: Program, base: Row) -> list[Row]:
    size = setting.big_name
    hits = len(rollout.facts.rare)
    program.until_quiet(program.send(b"/"))
    length = len(program.raw)
    sent = program.send(RARE_WORD.encode())
    title = rb" #%d message" % (rollout.facts.rare[0] + 1)
    first_what = f"first hit shown, in the first 10 MB of {size}"
    rows: list[Row] = []
    try:
        hit_time = program.until_bytes(title, setting.timeout, since=length)
        rows.append(times(first_what, [hit_time - sent]))
    except TooLate as error:
        return [missing(first_what, f"given up: {error}")]
    program.send(b"\r")
    keys, answered = _keys_meanwhile(program, rollout.facts.rare[0])
    # It stands under the timeline once the search is over, wherever the cursor is by then.
    every = f"“{RARE_WORD}” · {hits} matches".encode()
    counted = f"all {hits} hits counted, {size}"
    busy = re.search(every, program.raw[length:]) is None
    try:
        done = program.until_bytes(every, setting.timeout, since=length)
        rows.append(times(counted, [done - sent], against=base))
    except TooLate:
        rows.append(missing(counted, f"not there after {setting.timeout:.0f} s"))
    during = "key → next span shown, while it searches"
    if not busy:
        rows.append(missing(during, "the search was over before the keys were"))
    elif keys:
        rows.append(times(during, keys, note=answered))
    else:
        rows.append(missing(during, answered))
    return rows


def _keys_meanwhile(program: Program, index: int) -> tuple[list[float], str]:
    """Return the seconds from each ``j`` to the next title, and the number of answered keys."""
    seconds: list[float] = []
    program.drain(0.3)
    for step in range(KEYS):
        try:
            seconds.append(press_down(program, index + step))
        except TooLate:
            return seconds, f"{step} of {KEYS} keys answered within {KEY_SECONDS:.0f} s each"
    return seconds, f"{KEYS} of {KEYS} keys answered"


def _grep(rollout: Rollout) -> float:
    """Return the seconds of a search by ``grep``."""
    begun = perf_counter()
    command = ["grep", "-c", RARE_WORD, str(rollout.path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) == len(rollout.facts.rare)
    return perf_counter() - begun
