"""Random stories of decisions and later changes, and the gold computed from its definition."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mast_tui.adjudication import take_on
from mast_tui.adjudication.conflicts import Choice, take_side
from mast_tui.gold import ConflictKind
from mast_tui.labels import VerdictValue
from mast_tui.study import Study
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from tests.adjudication.office import TAXONOMY, Office, adjudication, overrule
from tests.attack.trying import DB, Outcome, Setting, command, unsound
from tests.gold.build import ABSENT, MODE, PRESENT, at

WHOLE: Final = 500

TRACE: Final = "t1"
PEOPLE: Final = ("ann", "bob", "cleo")
ADJUDICATORS: Final = ("dee", "eve")
OPEN: Final = 99
"""The number of an annotator who has left a pass open: no other begins."""
MODES: Final = tuple(mode.slug for mode in TAXONOMY.modes)
EXPORT: Final = ("export", "--format", "gold", "--taxonomy", TAXONOMY.ref, "--workspace", DB)

Expected = tuple[str | None, str, str | None, bool]
"""Value, source, adjudicator, and whether a side has changed since the decision."""


class FileOffice(Office):
    """An office whose workspace is a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(TRACE)
        self.workspace.close()
        self.workspace = Workspace.open(path)
        self.workspace.add_taxonomy(TAXONOMY)


@dataclass
class Model:
    """The words of all people and the decisions, kept apart from the workspace."""

    words: dict[str, dict[str, VerdictValue]] = field(default_factory=dict)
    """The last finished pass of each annotator, a value for each mode."""
    places: dict[str, int | None] = field(default_factory=dict)
    """The step that each annotator has marked for the first mode."""
    decided: dict[str, tuple[VerdictValue, str, object]] = field(default_factory=dict)
    """The decision on each mode: value, adjudicator, and what the sides said then."""
    participants: frozenset[str] = frozenset(PEOPLE)

    def said(self, mode: str) -> object:
        """Return what the people of the study say of a mode."""
        return frozenset(
            (name, words[mode], self.places[name] if mode == MODE else None)
            for name, words in self.words.items()
            if name in self.participants
        )

    def expected(self, mode: str) -> Expected:
        """Return the gold of a mode by its definition."""
        if mode in self.decided:
            value, by, said = self.decided[mode]
            return value.value, "adjudicated", by, said != self.said(mode)
        values = [words[mode] for name, words in self.words.items() if name in self.participants]
        if len(set(values)) > 1:
            return None, "unresolved", None, False
        if not values:
            return None, "nobody", None, False
        return values[0].value, "single" if len(values) == 1 else "unanimous", None, False


def _study(office: Office, people: frozenset[str]) -> None:
    before = office.workspace.study(TAXONOMY.ref)
    study = Study(TAXONOMY.ref, tuple(sorted(people)), ADJUDICATORS)
    office.workspace.append([NewEvent("dee", None, TAXONOMY.ref, None, StudySet(before, study))])


def _pass(office: Office, model: Model, draw: random.Random, numbers: dict[str, int]) -> None:
    names = [name for name in PEOPLE if numbers.get(name, 0) < OPEN]
    if not names:
        return
    name = draw.choice(names)
    number = numbers[name] = numbers.get(name, 0) + 1
    words = dict.fromkeys(MODES, ABSENT)
    step = draw.choice((None, 3, 5))
    if step is not None:
        words[MODE] = PRESENT
    if draw.random() < 0.4:
        words[draw.choice(MODES[1:])] = PRESENT
    office.start(name, number=number)
    for mode, value in words.items():
        if value is ABSENT:
            office.say(name, number=number, verdicts={mode: ABSENT})
        else:
            office.say(name, at(step if mode == MODE and step else 7), number=number, mode=mode)
    if draw.random() < 0.8:  # else the pass stays open, and the one before counts
        office.end(name, number=number)
        model.words[name] = words
        model.places[name] = step
    else:
        numbers[name] = OPEN


def _decide(office: Office, model: Model, draw: random.Random) -> None:
    who = draw.choice(ADJUDICATORS)
    work = adjudication(office, who)
    conflicts = [one for one in work.gold.conflicts if one.kind is ConflictKind.VERDICT]
    before = dict(model.decided)
    if conflicts and draw.random() < 0.7:
        conflict = draw.choice(conflicts)
        side = draw.choice(conflict.said).annotator
        made = work.decide(conflict, take_side(conflict, side))
    else:
        value = draw.choice(list(VerdictValue))
        targets = (at(9),) if value is PRESENT else ()
        made = overrule(work, draw.choice(MODES), Choice(value, targets))
    model.decided[made.mode] = (made.value, who, model.said(made.mode))
    if draw.random() < 0.2:
        work.undo()
        model.decided = before


def story(path: Path, draw: random.Random) -> Model:
    """Write a random story into a workspace; return what it comes to."""
    model = Model()
    numbers: dict[str, int] = {}
    office = FileOffice(path)
    with closing(office.workspace):
        _study(office, model.participants)
        for name in ADJUDICATORS:
            take_on(office.workspace, TAXONOMY, name, [TRACE])
        for _ in range(draw.randrange(4, 25)):
            kind = draw.random()
            if kind < 0.5:
                _pass(office, model, draw, numbers)
            elif kind < 0.85:
                if model.words:
                    _decide(office, model, draw)
            else:
                model.participants = frozenset(draw.sample(PEOPLE, draw.choice((2, 3))))
                _study(office, model.participants)
    return model


def _gold(document: dict[str, Any]) -> dict[str, Expected]:
    for trace in document["traces"]:
        if trace["trace_id"] == TRACE:
            return {
                one["slug"]: (
                    one["value"],
                    one["source"],
                    one.get("decided_by"),
                    bool(one.get("changed")),
                )
                for one in trace["verdicts"].values()
            }
    return {}


def attack(home: Path, draw: random.Random) -> str:
    """Compare the gold of an export with the model; return what differs."""
    model = story(home / DB, draw)
    if fell := unsound(home / DB):
        return fell
    done = command(home, *EXPORT, "-o", "gold.json")
    if done.fell:
        return done.fell
    if done.code != 0:
        return "" if not model.words else f"not exported: {done.err[-300:]}"
    found = _gold(json.loads((home / "gold.json").read_text("utf-8")))
    for mode in MODES:
        expected = model.expected(mode)
        if expected[1] != "nobody" and found.get(mode) != expected:
            return f"{mode}: the gold is {found.get(mode)}, expected {expected}"
    return ""


def tries(setting: Setting) -> Iterator[Outcome]:
    """Make one story after the other."""
    for number in setting.numbers(WHOLE):
        with setting.home() as home:
            fell = attack(home, setting.draw(number))
        yield Outcome(setting.kind, "decisions, then other words and other people", fell)
