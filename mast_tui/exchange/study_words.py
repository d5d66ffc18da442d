"""What an import does to how a study is set up, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mast_tui.study import Study
from mast_tui.workspace import Event, Workspace
from mast_tui.workspace.events.types import StudySet

Standing = dict[str, Study | None]
"""How the study under each taxonomy is set up."""


def new_set_ups(workspace: Workspace, theirs: Iterable[Event]) -> tuple[Event, ...]:
    """The events that set up or change a study and are not here yet."""
    found = [event for event in theirs if isinstance(event.fact, StudySet)]
    here = {
        event.id
        for name in dict.fromkeys(event.annotator for event in found)
        for event in workspace.events(annotator=name)
    }
    return tuple(event for event in found if event.id not in here)


def studies_under(workspace: Workspace, events: Sequence[Event]) -> Standing:
    """How the studies stand that these events are about."""
    refs = dict.fromkeys(event.taxonomy for event in events if event.taxonomy is not None)
    return {ref: workspace.study(ref) for ref in refs}


def studies_in_words(
    workspace: Workspace, events: Sequence[Event], before: Standing
) -> Iterator[str]:
    """A sentence per study that two copies set up differently; of both the later one counts.

    ``events`` were ``new_set_ups``, and ``before`` how these studies stood without them.
    """
    for ref, earlier in before.items():
        if earlier is None:
            continue
        who = ", ".join(dict.fromkeys(e.annotator for e in events if e.taxonomy == ref))
        if workspace.study(ref) != earlier:
            yield (
                f"the study under {ref} was set up otherwise later, by {who}: that one counts from "
                "now on; look at 'mast-tui study show'"
            )
        elif not any(isinstance(e.fact, StudySet) and e.fact.after == earlier for e in events):
            yield (
                f"the study under {ref} was set up otherwise earlier, by {who}: the one that is "
                "here stays; look at 'mast-tui study show'"
            )
