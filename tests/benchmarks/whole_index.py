"""From the start of a process until every span of a big trace is known."""

from __future__ import annotations

import re
from itertools import count

from tests.benchmarks.cursor_moves import press_down
from tests.benchmarks.setting import Setting, attempt, new_home, ours
from tests.benchmarks.starts import first_words, our_app
from tests.benchmarks.table import Row, times
from tests.benchmarks.terminals import Program, TooLate


def measure(setting: Setting) -> list[Row]:
    """The rows of this measure."""
    rollout, runs = setting.big, setting.times(2, 1)
    whole = rb"%d spans" % rollout.facts.spans
    what = f"whole index, {setting.big_name}, {rollout.facts.spans:,} spans"

    def alone() -> list[Row]:
        seconds = []
        for _ in range(runs):
            with ours(rollout.path) as program:
                done = program.until_bytes(whole, setting.timeout)
                seconds.append(done - program.started)
        return [times(what, seconds)]

    rows = [*attempt(what, alone)]
    base = rows[0] if rows[0].values else None

    def with_keys() -> list[Row]:
        seconds, pressed = [], 0
        for _ in range(runs):
            with ours(rollout.path) as program:
                program.until_screen(re.escape(first_words(rollout.path)), setting.timeout)
                for index in count():
                    press_down(program, index)
                    pressed += 1
                    found = re.search(whole, program.raw)
                    if found:
                        break
                    if index % 50 == 0 and program.age > setting.timeout:
                        raise TooLate(f"not whole after {setting.timeout:.0f} s")
                done = program.until_bytes(whole, 0.0)
                seconds.append(done - program.started)
        note = f"{pressed} keys"
        return [times(f"{what}, with keys", seconds, against=base, note=note)]

    def again() -> list[Row]:
        seconds = []
        with new_home() as home:
            command = our_app(rollout.path, home / "workspace.db")
            for _ in range(runs + 1):  # the first time it is made and kept
                with Program(command, home) as program:
                    done = program.until_bytes(whole, setting.timeout)
                    seconds.append(done - program.started)
        return [times(f"{what}, opened again", seconds[1:], against=base)]

    return [
        *rows,
        *attempt(f"{what}, with keys", with_keys),
        *attempt(f"{what}, opened again", again),
    ]
