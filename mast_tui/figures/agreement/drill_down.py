"""The source traces of a figure, the disagreements first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mast_tui.figures.agreement.counting import PRESENT, VALUE_OF
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.judge.confusion import Compared
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.labels import VerdictValue


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """A trace that a figure rests on, with the verdicts on the mode; None is open.

    Attributes:
        trace_id: The id of the trace.
        verdicts: The verdicts of the annotators who have finished the trace.
        disagreement: The share of differing pairs among the verdicts present and absent; 0 if all
            agree.
    """

    trace_id: str
    verdicts: Mapping[str, VerdictValue | None]
    disagreement: float


def source_traces(
    study: StudyInput, mode: str, pair: tuple[str, ...] = ()
) -> tuple[SourceTrace, ...]:
    """Return the traces in which two or more annotators have a verdict on a mode.

    Args:
        study: The verdicts of the annotators.
        mode: The slug of the mode.
        pair: Two annotators, if only their verdicts count; empty for all annotators.

    Returns:
        The traces, sorted by disagreement (greatest first), then by the number of verdicts
        ``present`` (most first), then by id.
    """
    names = pair or study.annotators
    table = study.verdicts
    rows = [study.annotators.index(name) for name in names]
    # Annotators × traces.
    cells = table.verdicts[rows, :, table.slugs.index(mode)]
    rated_counts = (cells >= 0).sum(axis=0)
    present_counts = (cells == PRESENT).sum(axis=0)
    ranked_traces = []
    for column in (rated_counts > 1).nonzero()[0].tolist():
        trace_id = table.traces[column]
        # None is an open verdict, so annotators who have not finished the trace are left out.
        verdicts = {
            name: VALUE_OF.get(cell)
            for name, cell in zip(names, cells[:, column].tolist(), strict=True)
            if trace_id in study.finished.get(name, frozenset())
        }
        present_count = int(present_counts[column])
        disagreement = _share_of_differing_pairs(int(rated_counts[column]), present_count)
        trace = SourceTrace(trace_id, verdicts, disagreement)
        ranked_traces.append((-disagreement, -present_count, trace_id, trace))
    return tuple(trace for *_, trace in sorted(ranked_traces, key=lambda item: item[:3]))


def _share_of_differing_pairs(rated: int, present: int) -> float:
    return present * (rated - present) / (rated * (rated - 1) / 2)


def judged_source_traces(
    judge_input: JudgeInput, units: Compared, mode: str
) -> tuple[SourceTrace, ...]:
    """Return the traces on which a judge and its reference can be compared on a mode.

    Args:
        judge_input: The verdicts of the judge and of its reference.
        units: The units (traces × modes) on which they were compared.
        mode: The slug of the mode.

    Returns:
        The traces: the judge's errors first. Among errors and among the rest, the traces that the
        reference calls present come first, each sorted by id.
    """
    value_of_answer = {True: VerdictValue.PRESENT, False: VerdictValue.ABSENT}
    ranked_traces = []
    for (trace_id, slug), judge_says_present in units.judge.items():
        if slug != mode:
            continue
        reference_says_present = units.reference[trace_id, slug]
        verdicts = {
            judge_input.judge: value_of_answer[judge_says_present],
            judge_input.reference.name: value_of_answer[reference_says_present],
        }
        trace = SourceTrace(
            trace_id, verdicts, float(judge_says_present is not reference_says_present)
        )
        ranked_traces.append((-trace.disagreement, not reference_says_present, trace_id, trace))
    return tuple(trace for *_, trace in sorted(ranked_traces, key=lambda item: item[:3]))
