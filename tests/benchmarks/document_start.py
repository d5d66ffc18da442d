"""From the start of a process to the first spans of a document that must be read whole."""

from __future__ import annotations

from tests.benchmarks.first_spans import Start, rows_of, starts_in_turn
from tests.benchmarks.setting import Setting, new_home, size_name
from tests.benchmarks.starts import TRIVIAL_TEXT, first_words, our_app, trivial_app
from tests.benchmarks.table import Row, times
from tests.benchmarks.terminals import Program

MEGABYTES = 300
QUICK_MEGABYTES = 20
LAYOUT = "atif"
PAGES = 50
PAGE_DOWN = b"\x1b[6~"


def measure(setting: Setting) -> list[Row]:
    """The rows of this measure."""
    megabytes = setting.times(MEGABYTES, QUICK_MEGABYTES)
    path = setting.data.document(megabytes, LAYOUT)
    words, size = first_words(setting.data.document(1, LAYOUT)), size_name(megabytes)
    with new_home() as home:
        command = our_app(path, home / "workspace.db")
        with Program(command, home) as program:
            shown = program.until_screen(words, setting.timeout)
            first = times(f"{size}, read for the first time", [shown - program.started])
            memory = [Row(f"{size}, read for the first time: the app", (program.memory(),), "MB")]
            for _ in range(PAGES):
                program.send(PAGE_DOWN)
            program.until_idle(setting.timeout)
            program.send(b"G")
            program.until_idle(setting.timeout)
            what = f"{size}: the app after {PAGES} pages and the end"
            memory.append(Row(what, (program.memory(),), "MB"))
        starts = [
            Start("trivial Textual app", trivial_app(), TRIVIAL_TEXT),
            Start(f"{size}, kept from before", command, words),
        ]
        found = starts_in_turn(starts, home, setting.times(7, 3), setting.timeout)
    return [*rows_of(found, starts[0].what), first, *memory]
