"""The source traces of a figure, the disagreements first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from operator import itemgetter

from mast_tui.figures.agreement.counting import VALUE_OF
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.judge.confusion import ComparedUnits
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.labels import VerdictValue


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """A trace on which a figure rests, with the verdicts on the mode; None is an open verdict.

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
    study: StudyInput, mode: str, pair: tuple[str, ...] = (), *, complete: bool = False
) -> tuple[SourceTrace, ...]:
    """Return the traces in which two or more annotators have a verdict on a mode.

    Args:
        study: The verdicts of the annotators.
        mode: The slug of the mode.
        pair: The two annotators of a pair's figure; empty for all annotators.
        complete: True for only traces in which two or more annotators have a verdict on each mode.

    Returns:
        The traces, sorted by disagreement (greatest first), then by the number of verdicts
        ``present`` (most first), then by id.
    """
    names = pair or study.annotators
    table = study.verdicts
    # Annotators × traces × modes.
    verdicts_of_names = table.verdicts[[study.annotators.index(name) for name in names]]
    cells = verdicts_of_names[:, :, table.slugs.index(mode)]
    is_rated = (verdicts_of_names >= 0).all(axis=2) if complete else cells >= 0
    ranked_traces = []
    for column in (is_rated.sum(axis=0) > 1).nonzero()[0].tolist():
        trace_id = table.traces[column]
        # Annotators who have not finished the trace are left out, because None is an open verdict.
        verdicts = {
            name: VALUE_OF.get(cell)
            for name, cell in zip(names, cells[:, column].tolist(), strict=True)
            if trace_id in study.finished.get(name, frozenset())
        }
        counts = Counter(verdicts.values())
        present_count = counts[VerdictValue.PRESENT]
        absent_count = counts[VerdictValue.ABSENT]
        disagreement = present_count * absent_count / comb(present_count + absent_count, 2)
        source = SourceTrace(trace_id, verdicts, disagreement)
        ranked_traces.append(((-disagreement, -present_count, trace_id), source))
    return tuple(source for _, source in sorted(ranked_traces, key=itemgetter(0)))


def judged_source_traces(
    judge_input: JudgeInput, units: ComparedUnits, mode: str
) -> tuple[SourceTrace, ...]:
    """Return the traces on which a judge and its reference can be compared on a mode.

    Args:
        judge_input: The verdicts of the judge and of its reference.
        units: The units (traces × modes) on which they were compared.
        mode: The slug of the mode.

    Returns:
        The traces, the judge's errors first. Within both parts, traces that the reference calls
        present come first. Then they are sorted by id.
    """
    value_of_answer = {True: VerdictValue.PRESENT, False: VerdictValue.ABSENT}
    ranked_traces = []
    for (trace_id, slug), judge_says_present in units.judge.items():
        if slug == mode:
            reference_says_present = units.reference[trace_id, slug]
            verdicts = {
                judge_input.judge: value_of_answer[judge_says_present],
                judge_input.reference.name: value_of_answer[reference_says_present],
            }
            is_error = judge_says_present is not reference_says_present
            source = SourceTrace(trace_id, verdicts, float(is_error))
            ranked_traces.append(((not is_error, not reference_says_present, trace_id), source))
    return tuple(source for _, source in sorted(ranked_traces, key=itemgetter(0)))
