"""SIGKILL at random moments, in every screen and every writing command."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from http.server import ThreadingHTTPServer
from itertools import zip_longest
from pathlib import Path
from typing import Final

from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Event, Workspace
from mast_tui.workspace.events.types import (
    Decided,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    ReviewSet,
    SpanNoteSet,
    VerdictSet,
)
from scripts.practice_server import MODEL, Handler
from tests.attack.trying import (
    DB,
    IN_DB,
    SAMPLES,
    Outcome,
    Setting,
    app,
    begin,
    command,
    ended,
    events,
    must,
    result_of,
    serving,
    state,
    unsound,
    wait_for,
)
from tests.terminal.screen import Terminal

WHOLE: Final = 500

TRACE: Final = "ad-restart-loop.jsonl"
CODES: Final = tuple(mode.code for mode in load_mast().modes)
NAMES: Final = {mode.code: f"{mode.code} {mode.name}" for mode in load_mast().modes}
SLUGS: Final = {mode.slug: mode.code for mode in load_mast().modes}

MOST_TRIES: Final = 6
"""The most times that a command is started again when a kill came too late."""

Token = tuple[str, str]
"""An action, as the screen and an event show it: its kind and the code of a mode."""


# The preparation


def templates(setting: Setting) -> Path:
    """Return a home with the samples, labels of two annotators and a judge's suggestions.

    Nothing is decided; caches are warm. ``old.db`` has no labels, ``older.db`` one annotator's.
    """
    home = setting.folder / "template"
    if home.exists():
        return home
    welcomed = home / ".local" / "share" / "mast-tui"
    welcomed.mkdir(parents=True)
    (welcomed / "welcomed").touch()
    shutil.copytree(SAMPLES, home / "set", ignore=shutil.ignore_patterns("*.md"))
    (home / "set" / "workspace.jsonl").rename(home / "samples.jsonl")
    must(home, "judge", "set", "--judge", "rules", "--quiet", *IN_DB)
    _closed_copy(home / DB, home / "old.db")
    must(home, "import", "samples.jsonl", "--format", "jsonl", "--workspace", "samples.db")
    everything = ("--format", "csv-long", "--labels", "all", "-o", "labels.csv")
    must(home, "export", *everything, "--workspace", "samples.db")
    heading, *rows = (home / "labels.csv").read_text("utf-8").splitlines(keepends=True)
    for name in ("mira", "tomas"):
        if name == "tomas":
            _closed_copy(home / DB, home / "older.db")
        of_one = [heading, *(row for row in rows if f",{name}," in row)]
        (home / f"{name}.csv").write_text("".join(of_one), "utf-8")
        must(home, "import", f"{name}.csv", "--format", "csv-long", "--allow-new", *IN_DB)
    names = ("--annotators", "mira,tomas", "--adjudicators", "carol", "--annotator", "carol")
    must(home, "study", "set", "set", *names, *IN_DB)
    return home


def _closed_copy(path: Path, target: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)


def _events(home: Path) -> list[Event]:
    with closing(Workspace.open(home / DB, create=False)) as workspace:
        return list(workspace.events())


# Screens


@dataclass(slots=True)
class Session:
    """A run of the app that is going to be killed at a moment of ``time.monotonic``."""

    home: Path
    terminal: Terminal
    chance: random.Random
    shown: set[Token]
    until: float

    @property
    def over(self) -> bool:
        return time.monotonic() > self.until

    def press(self, *keys: str) -> None:
        """Type keys, with random pauses, and note what is shown."""
        for key in keys:
            if self.over:
                return
            self.terminal.press(key)
            until = min(self.until, time.monotonic() + self.chance.choice((0.0, 0.0, 0.03, 0.1)))
            self.look()
            while time.monotonic() < until:
                self.terminal.read(0.01)
                self.look()

    def look(self) -> None:
        self.terminal.read(0.0)
        self.shown |= statements(self.terminal.text)


_DONE: Final = (
    ("label", r"{name} on (?:#\d|a quote in #\d|the whole trace)"),
    ("changed", r"(?:confidence of|severity of|note on) {code} (?:on|at) "),
    ("removed", r"{name} removed from #\d"),
    ("verdict", r"{name}: (?:absent|unsure) "),
    ("accepted", r"(?:changed and )?accepted {name} on "),
    ("rejected", r"rejected {name} on "),
    ("decided", r"{name}: (?:present|absent|unsure|place)"),
)
_STATEMENTS: Final = [
    (kind, code, re.compile(r"^ " + words.format(name=re.escape(name), code=re.escape(code))))
    for kind, words in _DONE
    for code, name in NAMES.items()
]
_PLAIN: Final = (
    ("note", re.compile(r"^ note on #\d+(?: |$)")),
    ("finished", re.compile(r"^ finished · \d+ of \d+ spans read")),
)


def statements(text: str) -> set[Token]:
    """Return the actions that the last line of the screen reports."""
    line = text.rpartition("\n")[2]
    actions = {(kind, code) for kind, code, pattern in _STATEMENTS if pattern.match(line)}
    actions |= {(kind, "") for kind, pattern in _PLAIN if pattern.match(line)}
    return actions


def done_by(event: Event) -> set[Token]:
    """Return the actions that an event records."""
    match event.fact:
        case LabelAdded(label):
            code = SLUGS[label.mode]
            return {("label", code), ("accepted", code)}
        case LabelChanged(_, label):
            return {("changed", SLUGS[label.mode]), ("accepted", SLUGS[label.mode])}
        case LabelRemoved(label):
            return {("removed", SLUGS[label.mode])}
        case VerdictSet(mode, _, _):
            return {("verdict", SLUGS[mode]), ("decided", SLUGS[mode])}
        case ReviewSet():
            return {(kind, code) for kind in ("accepted", "rejected") for code in CODES}
        case SpanNoteSet():
            return {("note", "")}
        case PassFinished():
            return {("finished", "")}
        case Decided(item):
            code = SLUGS[item.partition("@")[0]]
            return {("decided", code), ("verdict", code)}
        case _:
            return set()


def lost(session: Session, annotator: str) -> str:
    """Return the actions that were shown and are not recorded."""
    recorded: set[Token] = set()
    for event in _events(session.home):
        if event.annotator == annotator:
            recorded |= done_by(event)
    missing = sorted(session.shown - recorded)
    return f"shown, but lost: {missing}" if missing else ""


def annotate(session: Session) -> None:
    """Label, quote, note, set absent, answer, take back and finish, whatever comes first."""
    codes = list(CODES)
    session.chance.shuffle(codes)
    session.press(":", str(session.chance.randrange(1, 60)), "enter")
    while codes and not session.over:
        code = codes.pop()
        digits = code.replace(".", "")
        match session.chance.randrange(11):
            case 0 | 1 | 2:
                session.press("down", *digits)
            case 3:
                session.press("down", "v", "down", *digits)
            case 4:
                session.press("down", "w", "right", *digits)
            case 5:
                session.press("t", *digits, "t")
            case 6:
                session.press(session.chance.choice("-_"), *digits)
            case 7:
                session.press("]", session.chance.choice("ax"))
            case 8:
                session.press("down", "m", "why", "enter")
            case 9:
                session.press("u", *session.chance.choice(((), ("u",), ("U",))))
            case _:
                session.press("down", *digits, "m", "why", "enter")
    session.press("D", "W")


def labels(session: Session) -> None:
    """Label span after span, quickly."""
    codes = list(CODES)
    session.chance.shuffle(codes)
    session.press(":", str(session.chance.randrange(1, 60)), "enter")
    for code in codes:
        session.press("down", *code.replace(".", ""))


def finish(session: Session) -> None:
    """Label, finish, take the finish back, and finish again."""
    session.press("down", *session.chance.choice(CODES).replace(".", ""))
    for _ in range(5):
        session.press("D", "W", "u")


def adjudicate(session: Session) -> None:
    """Decide one conflict after the other."""
    session.press("A")
    if not session.over:
        session.terminal.until(r"0 of \d+ decided")
    while not session.over:
        session.press(session.chance.choice(("1", "2", "0", "_", "1", "2", "u")))


def library(session: Session) -> None:
    """Filter, sort, move and choose a queue."""
    while not session.over:
        keys = (("/", "ad", "enter"), ("o",), ("down",), ("G",), ("escape",), ("enter", "escape"))
        session.press(*session.chance.choice(keys))


def judge_runs(session: Session) -> None:
    """Have the rules judge what stands under the cursor, and look at the runs."""
    while not session.over:
        session.press("J", "r", "R", "L", "down")


def study(session: Session) -> None:
    """Change the study, over and over."""
    session.press("Y")
    while not session.over:
        session.press("e", "down", session.chance.choice(("x", "backspace")), "enter")


def screen(keys: str) -> Callable[[Session], None]:
    """Look at pages of figures."""

    def look(session: Session) -> None:
        session.press(keys)
        while not session.over:
            session.press(session.chance.choice(("tab", "down", "p", "o", "1", "2", "3", "4")))

    return look


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen, its actions, annotator and paths, and the longest time until the kill."""

    title: str
    act: Callable[[Session], None]
    annotator: str = "alice"
    paths: tuple[str, ...] = ("set",)
    seconds: float = 2.5

    def attack(self, home: Path, chance: random.Random) -> tuple[str, int]:
        """Use and kill the app; return the failure and the number of actions shown before."""
        arguments = (*self.paths, *IN_DB, "--annotator", self.annotator)
        with app(home, *arguments) as terminal:
            terminal.until(self.annotator)
            until = time.monotonic() + chance.uniform(0.0, self.seconds)
            session = Session(home, terminal, chance, set(), until)
            self.act(session)
            os.kill(terminal.process.pid, signal.SIGKILL)
            crashed = re.search(r"Something went wrong|unexpected error", terminal.text)
        if terminal.process.code != -signal.SIGKILL:
            return f"had ended with {terminal.process.code} before the kill", 0
        if crashed:
            return terminal.text, 0
        return unsound(home / DB) or lost(session, self.annotator), len(session.shown)


# Commands


@dataclass(frozen=True, slots=True)
class Command:
    """A command that writes; ``check`` compares its folder with those before and after a run."""

    title: str
    arguments: tuple[str, ...]
    check: Callable[[Path, Path, Path], str]
    prepare: Callable[[Path], None] = lambda _: None

    def attack(
        self, setting: Setting, before: Path, chance: random.Random, url: str
    ) -> tuple[str, int]:
        """Kill the command while it works; return the failure and the number of late kills."""
        arguments = tuple(word.replace("URL", url) for word in self.arguments)
        alone = self._alone(setting, before, arguments)
        start = float((alone / "seconds").read_text())
        late = 0
        while True:
            with setting.home(alone / "before") as home:
                pid = begin(home, *arguments)
                moment = chance.uniform(0.0, start * 0.8**late)
                code = ended(pid, moment)
                if code is None:
                    os.kill(pid, signal.SIGKILL)
                    code = wait_for(pid)
                if code == -signal.SIGKILL or late == MOST_TRIES:
                    return self._look(home, alone, arguments), late
                if code != 0:
                    return result_of(home, code).failure or f"ended with {code}", late
            late += 1

    def _look(self, home: Path, alone: Path, arguments: Sequence[str]) -> str:
        if failure := unsound(home / DB) or self.check(home, alone / "before", alone / "after"):
            return failure
        done = command(home, *arguments)
        if done.code != 0:
            return f"the same command again: {done.code} {done.err[-300:]}"
        if failure := unsound(home / DB) or self.check(home, alone / "after", alone / "after"):
            return f"the same command again: {failure}"
        return ""

    def _alone(self, setting: Setting, template: Path, arguments: Sequence[str]) -> Path:
        folder = setting.folder / re.sub(r"\W+", "-", self.title)
        if (folder / "seconds").exists():
            return folder
        shutil.copytree(template, folder / "before")
        self.prepare(folder / "before")
        shutil.copytree(folder / "before", folder / "after")
        begun = time.monotonic()
        must(folder / "after", *arguments)
        (folder / "seconds").write_text(str(time.monotonic() - begun))
        return folder


def _pairs(home: Path) -> set[tuple[object, ...]]:
    with closing(Workspace.open(home / DB, create=False)) as workspace:
        return {
            (label.annotator, label.trace_id, label.mode, label.target, label.pass_number)
            for label in workspace.labels(pass_number=None)
        }


def nothing_strange(home: Path, before: Path, after: Path) -> str:
    """Check that each label is one of before or after, and none of before is gone."""
    now, old, new = map(_pairs, (home, before, after))
    if strange := now - old - new:
        return f"labels of nobody: {sorted(map(str, strange))[:2]}"
    if gone := old - now:
        return f"labels are gone: {sorted(map(str, gone))[:2]}"
    return ""


def all_or_nothing(home: Path, before: Path, after: Path) -> str:
    counts = [events(folder / DB) for folder in (home, before, after)]
    return "" if counts[0] in counts[1:] else f"{counts[0]} events, neither of {counts[1:]}"


def old_or_new(home: Path, before: Path, after: Path) -> str:
    """Check that each output is that of before or after, and the workspace is unchanged."""
    for path in [*_outputs(before), *_outputs(after)]:
        content = _content(home, path)
        if content not in (_content(before, path), _content(after, path)):
            return f"{path}: neither the older one nor the newer one"
    strange = _outputs(home) - _outputs(before) - _outputs(after)
    drafts = {path for path in strange if re.fullmatch(r"\.mast-tui-\w+\.part", path.name)}
    if strange - drafts:
        return f"there are strange files: {sorted(strange - drafts)[:3]}"
    return "" if state(home / DB) == state(before / DB) else "the workspace has changed"


def _outputs(home: Path) -> set[Path]:
    folder = home / "out"
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


_MADE: Final = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?")


def _content(home: Path, path: Path) -> bytes | None:
    try:
        return _MADE.sub(b"", (home / "out" / path).read_bytes())
    except FileNotFoundError:
        return None


def older_outputs(arguments: Sequence[str], home: Path) -> None:
    """Write the outputs as they were before the second one labelled: they could be lost."""
    (home / "out").mkdir()
    must(home, *(argument.replace(DB, "older.db") for argument in arguments))


def empty_workspace(home: Path) -> None:
    """Begin without a label."""
    for path in home.glob(f"{DB}*"):
        path.unlink()
    shutil.copy(home / "old.db", home / DB)


def fresh_workspace(home: Path) -> None:
    """Begin with a workspace in which nothing is."""
    for path in home.glob(f"{DB}*"):
        path.unlink()
    must(home, "import", "none.csv", "--format", "csv-long", "--allow-new", *IN_DB)


def _none(home: Path) -> None:
    (home / "none.csv").write_text("trace_id,annotator,mode,value\n", "utf-8")
    fresh_workspace(home)


def _writes(title: str, *arguments: str) -> Command:
    arguments = (*arguments, *IN_DB)
    return Command(title, arguments, old_or_new, partial(older_outputs, arguments))


FIGURES: Final = ("--rounds", "0")
COMMANDS: Final = (
    Command("judge rules", ("judge", "set", "--judge", "rules", "--quiet", *IN_DB),
            nothing_strange, _none),
    Command(
        "judge llm",
        ("judge", "set", "--judge", "llm", "--model", MODEL, "--base-url", "URL", "--quiet",
         *IN_DB),
        nothing_strange,
        empty_workspace,
    ),
    Command("import jsonl", ("import", "samples.jsonl", "--format", "jsonl", *IN_DB),
            all_or_nothing, _none),
    Command(
        "study set",
        ("study", "set", "set", "--annotators", "mira,tomas", "--adjudicators", "carol,dora",
         "--retest", "0.2", "--annotator", "carol", *IN_DB),
        all_or_nothing,
    ),
    *(_writes(f"export {name}", "export", "--format", name, "-o", f"out/{name}.out")
      for name in EXPORT_FORMATS),
    _writes("report --html", "report", *FIGURES, "--by", "all", "--html", "out/page.html",
            "--figures", "out"),
    _writes("agree --csv --markdown", "agree", *FIGURES, "--no-spans", "--csv", "out/a.csv",
            "--markdown", "out/a.md"),
)  # fmt: skip

ONE: Final = (f"set/{TRACE}",)
SCREENS: Final = (
    Screen("annotate: all kinds of keys", annotate, paths=ONE, seconds=4.0),
    Screen("annotate: labels", labels, paths=ONE),
    Screen("adjudicate", adjudicate, "carol", seconds=4.0),
    Screen("annotate: finish", finish, paths=ONE),
    Screen("study", study, "carol"),
    Screen("library", library),
    Screen("judge runs", judge_runs),
    Screen("agreement", screen("K"), "carol"),
    Screen("signatures", screen("S"), "carol"),
)

SOME: Final = ((*SCREENS[:3], *SCREENS[:3]), COMMANDS[:3])
"""Screens and commands that are killed more often than the rest."""


def _cases() -> tuple[Screen | Command, ...]:
    cases: list[Screen | Command] = []
    for one_screen, one_command in zip_longest([*SCREENS, *SOME[0]], [*COMMANDS, *SOME[1]]):
        cases += [case for case in (one_screen, one_command) if case is not None]
    return tuple(cases)


CASES: Final = _cases()


def practice(tell: Callable[[str], None]) -> None:
    """Serve answers by three plain rules, a little late."""
    handler = type("Slow", (Handler,), {"seconds": 0.02})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # whoever asked is dead
        tell(f"http://127.0.0.1:{server.server_address[1]}/v1")
        server.serve_forever()


def tries(setting: Setting) -> Iterator[Outcome]:
    """Kill, one after the other, what the numbers say."""
    numbers = setting.numbers(WHOLE)
    if not numbers:
        return
    template = templates(setting)
    with serving(practice) as url:
        for number in numbers:
            case = CASES[number % len(CASES)]
            chance = setting.draw(number)
            try:
                if isinstance(case, Screen):
                    with setting.home(template) as home:
                        failure, reported = case.attack(home, chance)
                    notes = {"things shown before kills of screens": float(reported)}
                else:
                    failure, late = case.attack(setting, template, chance, url)
                    notes = {"kills that came too late and were made again": float(late)}
            except AssertionError as error:
                failure = str(error)
                notes = {}
            yield Outcome(setting.kind, case.title, failure, notes)
