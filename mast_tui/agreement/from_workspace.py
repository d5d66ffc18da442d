"""What a workspace knows of its annotators' verdicts, as the input of an agreement report."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from mast_tui.agreement.study import StudyInput
from mast_tui.labels import AnnotatorKind, VerdictValue, annotator_kind
from mast_tui.passes import Which, counted_passes
from mast_tui.workspace.errors import WorkspaceError
from mast_tui.workspace.set_aside import examples_of

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


def study_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Sequence[str] | None = None,
    which: Which = "first",
    traces: Container[str] | None = None,
) -> StudyInput:
    """The finished verdicts under one taxonomy, of the pass that counts.

    Without ``annotators`` these are all people who have finished a trace (where there are none,
    all imported annotators); judges are compared only by name, and never on a trace that stood as
    an example in their prompt. ``traces`` restricts the study to what may be seen. Raises
    ``WorkspaceError`` for a name that nobody here has.
    """
    counted = {
        who_and_where: one
        for who_and_where, one in counted_passes(
            workspace.passes(taxonomy=taxonomy.ref), which
        ).items()
        if traces is None or one.trace_id in traces
    }
    done = {name for name, _ in counted}
    names = tuple(_checked(workspace, annotators) if annotators else _people(workspace, done))
    finished: dict[str, frozenset[str]] = {}
    examples: dict[str, int] = {}
    for name in names:
        read = frozenset(trace_id for who, trace_id in counted if who == name)
        finished[name] = read
        if annotator_kind(name) is AnnotatorKind.JUDGE:
            finished[name] = read - examples_of(workspace, name)
            examples[name] = len(read - finished[name])
    verdicts: dict[tuple[str, str, str], VerdictValue] = {}
    for verdict in workspace.verdicts(taxonomy=taxonomy.ref, pass_number=None):
        one = counted.get((verdict.annotator, verdict.trace_id))
        if one is not None and one.number == verdict.pass_number and verdict.annotator in finished:
            verdicts[verdict.annotator, verdict.trace_id, verdict.mode] = verdict.value
    return StudyInput(
        taxonomy_ref=taxonomy.ref,
        modes=tuple((mode.slug, mode.code, mode.name) for mode in taxonomy.modes),
        annotators=names,
        pass_label="1" if which == "first" else "last",
        verdicts=verdicts,
        finished=finished,
        examples={name: count for name, count in examples.items() if count},
    )


def _people(workspace: Workspace, done: Container[str]) -> list[str]:
    """All people with finished traces; where there are none, all imported annotators with some."""
    for kind in (AnnotatorKind.HUMAN, AnnotatorKind.IMPORTED):
        found = [
            info.name for info in workspace.annotators() if info.kind is kind and info.name in done
        ]
        if found:
            return found
    return []


def _checked(workspace: Workspace, names: Sequence[str]) -> Sequence[str]:
    known = [info.name for info in workspace.annotators()]
    for name in names:
        if name not in known:
            there = ", ".join(known) or "nobody yet"
            raise WorkspaceError(f"no annotator {name!r} in this workspace; there are: {there}")
    return names
