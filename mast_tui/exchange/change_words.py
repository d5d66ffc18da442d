"""The changes of an import to each annotator's work, in words and as values of a JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.labels import JUDGE_PREFIX
from mast_tui.workspace import PersonChanges
from mast_tui.workspace.records import HistoryRelation

_COUNTS: Final = (
    ("labels_added", "label added", "labels added"),
    ("labels_changed", "label changed", "labels changed"),
    ("labels_removed", "label removed", "labels removed"),
    ("verdicts_added", "verdict added", "verdicts added"),
    ("verdicts_changed", "verdict changed", "verdicts changed"),
    ("passes_added", "pass started", "passes started"),
    ("passes_joined", "open pass added to", "open passes added to"),
    ("passes_finished", "pass finished", "passes finished"),
    ("passes_reopened", "finished pass reopened", "finished passes reopened"),
    ("passes_changed", "finished pass changed", "finished passes changed"),
    ("decisions_added", "decision made", "decisions made"),
    ("decisions_changed", "decision changed", "decisions changed"),
    ("decisions_taken_back", "decision undone", "decisions undone"),
    ("guidelines_written", "guideline written", "guidelines written"),
    ("studies_set", "study set up or changed", "studies set up or changed"),
    ("edited", "event has other content here", "events have other content here"),
)
_OVERRULED: Final = {"decisions": "decision", "guidelines": "guideline", "studies": "study"}
"""The singular for each kind of entry in ``overruled``."""
_SIGHT: Final = {True: "blind", False: "assisted"}
_VISIBILITY_WORDS: Final = {True: "blind", False: "with suggestions shown"}
"""By the setting of blind work."""


def changes_to_dict(changes: PersonChanges) -> dict[str, Any]:
    """Return the changes as values of a JSON document."""
    sight = None if changes.sight is None else _SIGHT[changes.sight]
    return asdict(changes) | {"history": changes.history.value, "sight": sight}


def changes_in_words(changes: PersonChanges) -> str:
    """Describe an annotator's changes, such as ``mira: 69 labels removed``."""
    parts = []
    if changes.broken is not None:
        parts.append(f"the history in the file was edited at or before step {changes.broken}")
    for field, singular, plural in _COUNTS:
        count = getattr(changes, field)
        if count:
            parts.append(f"{count} {singular if count == 1 else plural}")
    for name, replaced in changes.overruled.items():
        for table, count in replaced.items():
            noun = _OVERRULED[table] if count == 1 else table
            parts.append(f"{count} {noun} of {name} replaced")
    if changes.sight is not None:
        parts.append(f"works {_VISIBILITY_WORDS[changes.sight]} from now on")
    if not parts:
        verb = "changes" if changes.events == 1 else "change"
        parts.append(
            f"{counted(changes.events, 'event')} that {verb} no label, verdict or decision"
        )
    return f"{changes.annotator}: {', '.join(parts)}"


def branches_in_words(people: Iterable[PersonChanges]) -> Iterator[str]:
    """Yield a sentence for each annotator whose histories here and in the file differ.

    Annotators whose work was replaced on request are left out.
    """
    for changes in people:
        if changes.replaced:
            continue
        if changes.history is HistoryRelation.FORKED:
            yield (
                f"{changes.annotator}'s work was changed in two copies: both changes are kept; "
                "check the result"
            )
        elif changes.history is HistoryRelation.APART:
            kind = "judge" if changes.annotator.startswith(JUDGE_PREFIX) else "person"
            yield (
                f"{changes.annotator} has worked here and, separately, in the file: both are "
                f"kept; make sure that it is the same {kind}"
            )


def refusal_in_words(file: object, people: Iterable[PersonChanges]) -> str:
    """Return the reason why a file is refused, with the options that accept it.

    Args:
        file: The file.
        people: The changes that the file would make, by annotator.
    """
    refused = list(people)
    names = dict.fromkeys(name for changes in refused for name in changes.needs)
    options = " ".join(f"--replace {_quoted_name(name)}" for name in names)
    return (
        f"{file} was edited, or would replace work in this workspace: "
        f"{'; '.join(map(changes_in_words, refused))}. Nothing was written. To accept this, "
        f"use {options}"
    )


def _quoted_name(name: str) -> str:
    return f"'{name}'" if " " in name else name
