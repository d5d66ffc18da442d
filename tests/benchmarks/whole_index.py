"""From the start of a process until every span of a big trace is known."""

from __future__ import annotations

import re
from itertools import count

from tests.benchmarks.cursor_moves import press_down
from tests.benchmarks.first_spans import Start, rows_of, starts_in_turn
from tests.benchmarks.setting import Setting, attempt, new_home, ours
from tests.benchmarks.starts import TRIVIAL_TEXT, first_words, our_app, trivial_app
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
        # The strip and the errors come with the last count. The first turn makes the index.
        shown, opened = rf"{rollout.facts.spans} spans", f"{what}, opened again"
        with new_home() as home:
            ours_again = our_app(rollout.path, home / "workspace.db")
            with Program(ours_again, home) as program:
                program.until_bytes(whole, setting.timeout)
                while len(program.processes()) > 1:  # the index is kept last
                    program.drain(0.2)
            starts = [
                Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT),
                Start(opened, ours_again, shown),
            ]
            found = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
        return rows_of(found, starts[0].what)

    return [
        *rows,
        *attempt(f"{what}, with keys", with_keys),
        *attempt(f"{what}, opened again", again),
    ]
