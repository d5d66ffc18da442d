"""What an import changes of each annotator's work, in words and as values of a JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from mast_tui.workspace import PersonChanges
from mast_tui.workspace.records import History

_COUNTS: Final = (
    ("labels_added", "label added", "labels added"),
    ("labels_changed", "label changed", "labels changed"),
    ("labels_removed", "label removed", "labels removed"),
    ("verdicts_added", "verdict added", "verdicts added"),
    ("verdicts_changed", "verdict changed", "verdicts changed"),
    ("passes_added", "pass begun", "passes begun"),
    ("passes_joined", "open pass added to", "open passes added to"),
    ("passes_finished", "pass finished", "passes finished"),
    ("passes_reopened", "finished pass reopened", "finished passes reopened"),
    ("passes_changed", "finished pass changed", "finished passes changed"),
    ("decisions_added", "decision made", "decisions made"),
    ("decisions_changed", "decision changed", "decisions changed"),
    ("decisions_taken_back", "decision taken back", "decisions taken back"),
    ("decisions_overruled", "decision of others overruled", "decisions of others overruled"),
    ("edited", "event here with another content", "events here with another content"),
)
_SIGHT: Final = {True: "blind", False: "assisted"}
_SIGHT_WORDS: Final = {True: "blind", False: "with suggestions shown"}


def changes_to_dict(changes: PersonChanges) -> dict[str, Any]:
    """The changes as values of a JSON document."""
    sight = None if changes.sight is None else _SIGHT[changes.sight]
    return asdict(changes) | {"history": changes.history.value, "sight": sight}


def changes_in_words(changes: PersonChanges) -> str:
    """Whose work it is and all that changes in it, as ``mira: 69 labels removed``."""
    told = []
    if changes.broken is not None:
        told.append(f"the history in the file was edited at or before step {changes.broken}")
    for field, one, many in _COUNTS:
        count = getattr(changes, field)
        if count:
            told.append(f"{count} {one if count == 1 else many}")
    if changes.sight is not None:
        told.append(f"works {_SIGHT_WORDS[changes.sight]} from now on")
    if not told:
        told.append(f"{changes.events} events that change no label, verdict or decision")
    return f"{changes.annotator}: {', '.join(told)}"


def branches_in_words(people: Iterable[PersonChanges]) -> Iterator[str]:
    """A sentence for each person whose history goes on in two ways, or in none that is here."""
    for changes in people:
        if changes.replaced:
            continue
        if changes.history is History.FORKED:
            yield (
                f"{changes.annotator} went on in two copies: what either holds is kept; look at "
                "what stands"
            )
        elif changes.history is History.APART:
            yield (
                f"{changes.annotator} has worked here, and what the file holds does not go on from "
                "that: both are kept; make sure that it is the same person"
            )


def refusal_in_words(file: object, people: Iterable[PersonChanges]) -> str:
    """Why a file is not taken, and what to say where it is meant."""
    refused = list(people)
    asked = " ".join(f"--replace {_quoted(changes.annotator)}" for changes in refused)
    return (
        f"{file} was edited, or would change what people have said here: "
        f"{'; '.join(map(changes_in_words, refused))}. Nothing was written. Where that is meant, "
        f"say {asked}"
    )


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name
