"""A workspace in memory with traces that annotators label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from mast_tui.adjudication import Adjudication, has_changed
from mast_tui.adjudication.conflicts import Choice
from mast_tui.gold import Conflict, ConflictKind, Decision, answers_on
from mast_tui.labels import (
    WHOLE_TRACE,
    AnnotatorKind,
    Finding,
    Label,
    PassKind,
    Target,
    VerdictValue,
)
from mast_tui.study.model import Study
from mast_tui.taxonomy.model import Category, Mode, Taxonomy
from mast_tui.workspace import NewEvent, TraceRecord, Workspace, store_judgement
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    PassFinished,
    PassStarted,
    StudySet,
    SuggestionsSeen,
    VerdictSet,
)
from tests.gold.build import ABSENT, MODE, OTHER, order, target

THIRD = "task_derailment"
JUDGE = "judge:rules@1"

TAXONOMY = Taxonomy(
    id="small",
    version="1",
    name="A small taxonomy",
    categories=(Category("1", "All"),),
    modes=(
        Mode(MODE, "1.3", "Step repetition", "1"),
        Mode(OTHER, "3.1", "Premature termination", "1"),
        Mode(THIRD, "2.3", "Task derailment", "1"),
    ),
    content_hash="0" * 64,
)


def decide_verdict(work: Adjudication, mode: str, choice: Choice) -> Decision:
    """Decide the verdict of a mode, whether annotators agree on it or not."""
    answers = answers_on(mode, work.trace_sides.sides)
    return work.decide(Conflict(mode, ConflictKind.VERDICT, mode, answers, (), None), choice)


def decide_place(
    work: Adjudication, mode: str, target: Target = WHOLE_TRACE, *, instead_of: str = THIRD
) -> Decision:
    """Decide that a place shows a mode, as if it were a conflict of a mode that all call absent."""
    answers = answers_on(instead_of, work.trace_sides.sides)
    marked = Conflict(instead_of, ConflictKind.VERDICT, instead_of, answers, (), target)
    return work.decide_another_mode([marked], mode)[1]


def has_changed_since(work: Adjudication, decision: Decision) -> bool:
    """Return whether a side has changed since the decision."""
    return has_changed(decision, work.trace_sides.sides, order)


class AnnotatedWorkspace:
    """A workspace with a small taxonomy and traces that people label."""

    def __init__(self, *traces: str) -> None:
        self.workspace = Workspace.open(":memory:")
        self.workspace.add_taxonomy(TAXONOMY)
        for trace in traces or ("t1",):
            self.workspace.register_trace(TraceRecord(trace))
        self._numbers = count(1)

    def study(self, study: Study) -> None:
        """Set up a study."""
        set_up = NewEvent("ann", None, TAXONOMY.ref, None, StudySet(None, study))
        self.workspace.append([set_up])

    def judge(self, *modes: str, findings: Sequence[Finding] = ()) -> None:
        """Store a judgement of the first trace."""
        store_judgement(
            self.workspace,
            judge=JUDGE,
            taxonomy=TAXONOMY.ref,
            trace_id="t1",
            looks_at=modes,
            findings=findings,
        )

    def start(
        self, name: str, trace: str = "t1", *, number: int = 1, kind: PassKind = PassKind.BLIND
    ) -> None:
        """Begin a pass; a new name becomes a person."""
        if all(info.name != name for info in self.workspace.annotators()):
            self.workspace.add_annotator(name, AnnotatorKind.HUMAN)
        self._append(name, trace, number, PassStarted(kind))

    def mark(
        self,
        name: str,
        *targets: Target,
        trace: str = "t1",
        number: int = 1,
        mode: str = MODE,
        verdicts: Mapping[str, VerdictValue] | None = None,
        saw_suggestions: bool = False,
    ) -> None:
        """Label places in an open pass, and give verdicts."""
        for marked_target in targets:
            label = Label(
                f"label-{next(self._numbers)}", name, trace, TAXONOMY.ref, mode,
                marked_target, saw_suggestions=saw_suggestions, pass_number=number,
            )  # fmt: skip
            self._append(name, trace, number, LabelAdded(label))
        for judged, value in (verdicts or {}).items():
            if value is VerdictValue.PRESENT:  # a label is the verdict
                self.mark(name, WHOLE_TRACE, trace=trace, number=number, mode=judged)
            else:
                self._append(name, trace, number, VerdictSet(judged, None, value))
        if saw_suggestions:
            self._append(name, trace, number, SuggestionsSeen())

    def finish(
        self,
        name: str,
        *targets: Target,
        trace: str = "t1",
        number: int = 1,
        kind: PassKind = PassKind.BLIND,
        value: VerdictValue | None = None,
        other_verdicts: Mapping[str, VerdictValue] | None = None,
        saw_suggestions: bool = False,
    ) -> None:
        """Record a whole pass: places or a verdict on the first mode, the others absent."""
        verdicts = {OTHER: ABSENT, THIRD: ABSENT, **(other_verdicts or {})}
        if value is not None:
            verdicts[MODE] = value
        self.start(name, trace, number=number, kind=kind)
        self.mark(
            name,
            *targets,
            trace=trace,
            number=number,
            verdicts=verdicts,
            saw_suggestions=saw_suggestions,
        )
        self.end(name, trace, number=number)

    def end(self, name: str, trace: str = "t1", *, number: int = 1) -> None:
        """Finish an open pass."""
        self._append(name, trace, number, PassFinished())

    def _append(self, name: str, trace: str, number: int, fact: Fact) -> None:
        self.workspace.append([NewEvent(name, trace, TAXONOMY.ref, number, fact)])


def with_one_conflict() -> AnnotatedWorkspace:
    """Return a workspace in which ann labels the mode at #3 and bob calls it absent."""
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(3, 5))
    annotated.finish("bob", value=ABSENT)
    return annotated


def adjudication(annotated: AnnotatedWorkspace, annotator: str = "ann") -> Adjudication:
    """Return the adjudication of the first trace."""
    return Adjudication(annotated.workspace, TAXONOMY, "t1", annotator, order=order)


def only_conflict(work: Adjudication) -> Conflict:
    """Return the one open conflict."""
    (conflict,) = work.gold.conflicts
    return conflict
