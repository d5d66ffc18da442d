"""What a workspace knows of its annotators' verdicts, as the input of an agreement report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mast_tui.errors import WorkspaceError
from mast_tui.figures.agreement.coefficients import MISSING
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.agreement.verdict_table import CELL_OF, Said, VerdictTable
from mast_tui.figures.source.verdicts import verdict_cells
from mast_tui.labels import AnnotatorKind, Pass, PassKind, VerdictValue, annotator_kind
from mast_tui.passes import Which, counted_passes, finished_by
from mast_tui.taxonomy.model import OPEN_SLUG

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

_FIRST_LOOKS: Final = (PassKind.BLIND, PassKind.ASSISTED)


def study_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Sequence[str] | None = None,
    which: Which = "first",
    traces: Container[str] | None = None,
    passes: Sequence[Pass] | None = None,
) -> StudyInput:
    """Read the finished verdicts under one taxonomy, of the pass that counts.

    The rounds are the lots in which the workspace's study took its traces in, where there are
    several; retests are held against the first pass, whichever pass counts. A judge is never
    compared on a trace that stood as an example in its prompt.

    Args:
        workspace: Where they are.
        taxonomy: Under which taxonomy.
        annotators: Whose; by default the study's people who have finished a trace, or, without a
            study, all people (where there are none, all imported annotators). Judges are compared
            only by name.
        which: Which pass of each counts.
        traces: Those that may be seen; None for all.
        passes: All of the taxonomy, where they were read already.

    Raises:
        WorkspaceError: Nobody here has such a name.
    """
    if passes is None:
        passes = workspace.passes(taxonomy=taxonomy.ref)
    if traces is not None:
        passes = [one for one in passes if one.trace_id in traces]
    counted = counted_passes(passes, which)
    done = {name for name, _ in counted}
    outside = frozenset[str]() if annotators else workspace.outside_study(taxonomy.ref)
    done -= outside
    names = tuple(
        _checked(workspace, annotators)
        if annotators
        else _people(workspace, done, in_study=workspace.study(taxonomy.ref) is not None)
    )
    finished, examples = _finished(workspace, names, counted)
    done_by_any = tuple(sorted(frozenset().union(*finished.values())))
    sides = {
        name: [counted[name, trace] if trace in finished[name] else None for trace in done_by_any]
        for name in names
    }
    verdicts = _Verdicts(workspace, taxonomy, passes)
    return StudyInput(
        taxonomy_ref=taxonomy.ref,
        modes=tuple((mode.slug, mode.code, mode.name) for mode in taxonomy.modes),
        annotators=names,
        pass_label="1" if which == "first" else "last",
        verdicts=verdicts.table(sides, done_by_any),
        finished=finished,
        examples={name: count for name, count in examples.items() if count},
        categories=taxonomy.at_level(0),
        levels=taxonomy.by_level,
        unfinished=_unfinished(passes, counted, which),
        rounds=_rounds(workspace, taxonomy),
        retests=_retests(passes, verdicts),
        agents=() if annotators else _agents(counted, finished, verdicts),
        not_in_study=finished_by(outside, counted),
        open_codes=_open_codes(workspace, taxonomy, counted),
        suggested=_suggested(names, counted),
        settled_absent=_settled_absent(workspace, taxonomy.ref),
    )


def _open_codes(
    workspace: Workspace, taxonomy: Taxonomy, counted: Mapping[tuple[str, str], Pass]
) -> dict[str, int]:
    """How many labels of none of the modes each annotator has in the passes that count."""
    numbers = {key: one.number for key, one in counted.items()}

    def take(rows: Iterator[tuple[Any, ...]]) -> Counter[str]:
        return Counter(who for who, trace, number in rows if numbers.get((who, trace)) == number)

    if any(mode.slug == OPEN_SLUG for mode in taxonomy.modes):
        return {}
    columns = ("annotator", "trace_id", "pass_number")
    wanted = {"taxonomy": taxonomy.ref, "mode": OPEN_SLUG}
    return dict(workspace.read_columns("labels", columns, take, equal_to=wanted))


def _finished(
    workspace: Workspace, names: Iterable[str], counted: Mapping[tuple[str, str], Pass]
) -> tuple[dict[str, frozenset[str]], dict[str, int]]:
    """The traces that each has finished, and how many were left out as a judge's examples."""
    done: dict[str, set[str]] = {name: set() for name in names}
    for who, trace_id in counted:
        if who in done:
            done[who].add(trace_id)
    finished = {name: frozenset(traces) for name, traces in done.items()}
    examples: dict[str, int] = {}
    for name, traces in done.items():
        if annotator_kind(name) is AnnotatorKind.JUDGE:
            finished[name] = frozenset(traces) - workspace.run_examples(name)
            examples[name] = len(traces) - len(finished[name])
    return finished, examples


def _suggested(
    names: Container[str], counted: Mapping[tuple[str, str], Pass]
) -> dict[str, frozenset[str]]:
    """The traces, by annotator, that were labelled with a judge's suggestions on screen."""
    found: dict[str, set[str]] = {}
    for (who, trace_id), one in counted.items():
        if who in names and one.judge_seen:
            found.setdefault(who, set()).add(trace_id)
    return {who: frozenset(traces) for who, traces in found.items()}


def _settled_absent(workspace: Workspace, ref: str) -> frozenset[tuple[str, str]]:
    """The traces and modes on which an adjudicator's last word is absent."""
    last = {
        (trace_id, one.mode): one.value
        for trace_id, decisions in workspace.all_decisions(ref).items()
        for one in decisions
        if one.is_verdict
    }
    return frozenset(unit for unit, value in last.items() if value is VerdictValue.ABSENT)


def _unfinished(
    passes: Iterable[Pass], counted: Mapping[tuple[str, str], Pass], which: Which
) -> dict[str, int]:
    """How many traces each has begun without a finished pass that counts."""
    begun = {
        (one.annotator, one.trace_id)
        for one in passes
        if (one.kind in _FIRST_LOOKS if which == "first" else one.kind.is_reading)
    }
    return dict(Counter(who for who, _ in begun - counted.keys()))


def _rounds(workspace: Workspace, taxonomy: Taxonomy) -> dict[str, frozenset[str]]:
    """The lots of the study by their number, where there are several."""
    study = workspace.study(taxonomy.ref)
    if study is None or len(study.batches) < 2:
        return {}
    return {str(n): frozenset(batch) for n, batch in enumerate(study.batches, start=1)}


def _retests(passes: Sequence[Pass], verdicts: _Verdicts) -> dict[str, VerdictTable]:
    """By annotator the first pass, and the first retest, of each trace that has both."""
    first = counted_passes(passes, "first")
    again: dict[tuple[str, str], Pass] = {}
    for one in sorted(passes, key=lambda p: p.number, reverse=True):
        key = (one.annotator, one.trace_id)
        if one.kind is PassKind.RETEST and one.finished and key in first:
            again[key] = one
    retests: dict[str, VerdictTable] = {}
    for name in sorted({who for who, _ in again}):
        traces = tuple(sorted(trace for who, trace in again if who == name))
        sides = {
            "first": [first[name, trace] for trace in traces],
            "retest": [again[name, trace] for trace in traces],
        }
        retests[name] = verdicts.table(sides, traces)
    return retests


def _agents(
    counted: Mapping[tuple[str, str], Pass],
    finished: Mapping[str, frozenset[str]],
    verdicts: _Verdicts,
) -> tuple[VerdictTable, ...]:
    """Return the verdicts of each agent and person on the traces that both have finished."""
    by_agent: dict[str, set[str]] = {}
    for name, trace in counted:
        if annotator_kind(name) is AnnotatorKind.AGENT:
            by_agent.setdefault(name, set()).add(trace)
    tables = []
    for agent, of_agent in sorted(by_agent.items()):
        for person, of_person in finished.items():
            shared = tuple(sorted(of_agent & of_person))
            sides = {name: [counted[name, trace] for trace in shared] for name in (agent, person)}
            if shared:
                tables.append(verdicts.table(sides, shared))
    return tuple(tables)


class _Verdicts:
    """All verdicts of some passes under one taxonomy."""

    def __init__(self, workspace: Workspace, taxonomy: Taxonomy, passes: Sequence[Pass]) -> None:
        self._slugs = tuple(mode.slug for mode in taxonomy.modes)
        self._rows = {_key(one): row for row, one in enumerate(passes)}
        cells: Said
        cells, _ = verdict_cells(workspace, taxonomy, self._rows, CELL_OF, MISSING)
        # The last row is for what was not finished.
        self._cells = np.pad(cells, ((0, 1), (0, 0)), constant_values=MISSING)

    def table(
        self, sides: Mapping[str, Sequence[Pass | None]], traces: tuple[str, ...]
    ) -> VerdictTable:
        """What stands in passes of several sides over the same traces, nothing where one is None.

        Args:
            sides: By name a pass for each trace.
            traces: The ids of these.
        """
        rows = [
            -1 if one is None else self._rows[_key(one)]
            for passes in sides.values()
            for one in passes
        ]
        shape = len(sides), len(traces), len(self._slugs)
        said = self._cells[np.array(rows, dtype=np.intp)].reshape(shape)
        return VerdictTable(tuple(sides), traces, self._slugs, said)


def _key(one: Pass) -> tuple[str, str, int]:
    return one.annotator, one.trace_id, one.number


def _people(workspace: Workspace, done: Container[str], *, in_study: bool) -> list[str]:
    """All people with finished traces; where there are none, all imported annotators with some.

    In a study somebody may take part whose labels come from a file.
    """
    found = [info for info in workspace.annotators() if info.name in done]
    people = [info.name for info in found if info.kind is AnnotatorKind.HUMAN]
    imported = [info.name for info in found if info.kind is AnnotatorKind.IMPORTED]
    return sorted(people + imported) if in_study else people or imported


def _checked(workspace: Workspace, names: Sequence[str]) -> Sequence[str]:
    known = [info.name for info in workspace.annotators()]
    for name in names:
        if name not in known:
            there = ", ".join(known) or "nobody yet"
            raise WorkspaceError(f"no annotator {name!r} in this workspace; there are: {there}")
    return names
