"""The input of ``mast-tui exam``: a labelled set, and the answers of judges on its traces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from mast_tui.adjudication import read_work_by_trace
from mast_tui.cli.agree import find_judge
from mast_tui.cli.shared.common import problem_lines
from mast_tui.exam.coverage import step_features
from mast_tui.exam.figures import (
    Answers,
    Decisive,
    Location,
    Question,
    StepMarks,
    StepScorer,
    contains_digits,
)
from mast_tui.exchange.crosswalk import find_crosswalk, read_crosswalk, translated
from mast_tui.exchange.csv_labels import read_csv_long
from mast_tui.exchange.errors import ExchangeError, RowProblem
from mast_tui.exchange.importers.labelled_sets import (
    DECISIVE_ERROR,
    plain_agent_name,
    read_agentrx,
    read_trail,
    read_who_and_when,
)
from mast_tui.exchange.importers.mast_human import CONSENSUS, read_mast_human
from mast_tui.exchange.trace_files import read_traces, step_numbers, step_of_key
from mast_tui.figures.judge.input import JudgeInput, Reference, Unit
from mast_tui.grouping import values_by_key
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import GOLD, Finding, Label, QuoteCounts, Severity, VerdictValue
from mast_tui.parallel import LostItem, each
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_fully
from mast_tui.traces.scan.each_trace import each_trace

if TYPE_CHECKING:
    from mast_tui.cli.shared.workers import WorkerPool
    from mast_tui.exchange.import_batch import ImportedWork, Incoming
    from mast_tui.gold.model import GoldLabel
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.traces.model import Trace
    from mast_tui.workspace import Workspace

SETS: Final[Mapping[str, tuple[Callable[[Sequence[Path]], Incoming], tuple[str, ...]]]] = {
    "who-and-when": (read_who_and_when, ("decisive",)),
    "agentrx": (read_agentrx, ("decisive", "places")),
    "trail": (read_trail, ("places",)),
    "mast-human": (read_mast_human, ("verdicts",)),
}
"""The sets with their own file formats: the reader of each, and the scorings of its labels."""

PUBLISHED_SCORERS: Final[Mapping[str, StepScorer]] = {"who-and-when": contains_digits}
"""The published scorers that count more than the exact step as right, by set."""


@dataclass(frozen=True, slots=True)
class TraceSteps:
    """The numbers of a trace's steps by span key, and the agents of the steps.

    Without the trace, numbers are known only from the keys of message lists, and agents are
    unknown.
    """

    numbers: Mapping[str, int] | None = None
    agents: tuple[str, ...] | None = None

    @classmethod
    def from_trace(cls, trace: Trace) -> TraceSteps:
        """Number the steps of a trace that was read to its end."""
        numbers = step_numbers(trace)
        # The agent of a step is that of its first span with an agent.
        agents = [""] * (max(numbers.values(), default=-1) + 1)
        for index in range(len(trace)):
            span = trace.span(index)
            agents[numbers[span.key]] = agents[numbers[span.key]] or plain_agent_name(span.agent)
        return cls(numbers, tuple(agents))

    def number(self, key: str | None) -> int | None:
        """Return the number of the step that contains a span; None if unknown."""
        if key is None:
            return None
        return step_of_key(key) if self.numbers is None else self.numbers.get(key)

    def agent(self, step: int) -> str | None:
        """Return the agent of a step; None if unknown."""
        return None if self.agents is None else self.agents[step] or None


@dataclass(frozen=True, slots=True)
class ExamTrace:
    """The facts of a trace that an exam needs, small enough to send between processes.

    ``named_agent`` is the agent to which the trace's own metadata attributes the failure.
    ``rule_findings`` are None if no rules were run. ``features`` has a tuple for each step.
    """

    trace_id: str
    path: Path
    steps: TraceSteps
    named_agent: str | None
    rule_findings: tuple[Finding, ...] | None = None
    features: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def from_trace(cls, trace: Trace, rules: RulesJudge | None = None) -> ExamTrace:
        """Extract the facts of a trace that was read to its end.

        Args:
            trace: The trace.
            rules: The rules to run on it; None for none.
        """
        # The agent of the decisive step in files of Who&When.
        named_agent = dict(trace.meta.hidden).get("mistake_agent")
        findings = None if rules is None else rules.judge(trace).findings
        features = step_features(trace, step_numbers(trace))
        return cls(
            trace.identity.trace_id,
            trace.path,
            TraceSteps.from_trace(trace),
            named_agent,
            rule_findings=findings,
            features=features,
        )


@dataclass(frozen=True, slots=True)
class ExamSet:
    """A labelled set: its questions and their scorings.

    Attributes:
        name: The name of the set.
        taxonomy: The taxonomy of its labels.
        scorings: Some of ``decisive``, ``places`` and ``verdicts``.
        questions: The questions on its traces.
        reference: The true verdicts.
        traces: The traces whose files were read, by id.
        files: The files of the set.
        problems: Sentences on the parts of the files that could not be read.
        modes: The slugs of the modes that the set's labels can name; None for all modes.
    """

    name: str
    taxonomy: Taxonomy
    scorings: tuple[str, ...]
    questions: tuple[Question, ...]
    reference: Reference
    traces: Mapping[str, ExamTrace]
    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    modes: frozenset[str] | None = None

    @property
    def features(self) -> dict[str, tuple[tuple[float, ...], ...]]:
        """The features of the steps of each trace that was read, by trace id."""
        return {trace_id: trace.features for trace_id, trace in self.traces.items()}

    def asks_about(self, mode: str) -> bool:
        """Check whether the set's labels can name a mode."""
        return self.modes is None or mode in self.modes

    def without_open_modes(self, answers: Answers) -> Answers:
        """Return the answers without the locations of modes that are open in a trace.

        A mode is open if the set has neither the verdict absent nor a location of the mode.
        """
        if "verdicts" not in self.scorings or not answers.uses_set_taxonomy:
            return answers
        closed_units = {
            unit for unit, value in self.reference.verdicts.items() if value is VerdictValue.ABSENT
        } | {
            (question.trace_id, mode)
            for question in self.questions
            for _, mode in question.truth.locations
        }
        marks_by_trace = {
            trace_id: replace(
                marks,
                locations=frozenset(
                    (place, mode)
                    for place, mode in marks.locations
                    if (trace_id, mode) in closed_units
                ),
            )
            for trace_id, marks in answers.by_trace.items()
        }
        return replace(answers, by_trace=marks_by_trace)

    def hashes(self) -> list[dict[str, str]]:
        """Return the files with their SHA-256, by which others can compare their copies."""
        return [
            {"path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
            for file in self.files
        ]


@dataclass(frozen=True, slots=True)
class ExamCandidate:
    """A judge that takes the exam, with its answers and their cost.

    Attributes:
        name: The name of the judge.
        answers: Its answers to the questions.
        judged: Its verdicts for the comparison with the reference; None if the set has no verdicts.
        cost: The mean cost of a trace; None without a model.
        quotes: The number of its quotes by kind of match; None without quotes.
    """

    name: str
    answers: Answers
    judged: JudgeInput | None = None
    cost: Mapping[str, float | None] | None = None
    quotes: Mapping[str, int] | None = None


def _finding_of_label(label: Label) -> Finding:
    """Convert a label to a judge's finding; a fatal step counts as decisive."""
    is_decisive = (
        label.severity is Severity.FATAL or bool(label.decisive) or label.mode == DECISIVE_ERROR
    )
    target = label.target
    return Finding(label.mode, target.first, target.last, "", label.confidence or 0.0, is_decisive)


def _finding_of_gold(label: GoldLabel) -> Finding:
    """Convert a gold label to a judge's finding; a fatal step counts as decisive."""
    return Finding(
        label.mode, label.target.first, label.target.last, "", 0.0, label.severity is Severity.FATAL
    )


def _step_marks(findings: Iterable[Finding], steps: TraceSteps, *, is_truth: bool) -> StepMarks:
    """Convert findings to marks on steps.

    The decisive step is the earliest step with a decisive finding. Without such a finding, a
    judge's decisive step is that of its highest confidence, and a truth has none.
    """
    # A span without a step has no number, and its key is its location.
    locations: set[Location] = set()
    numbered_findings: list[tuple[int, Finding]] = []
    for finding in findings:
        if finding.first is None:
            continue
        number = steps.number(finding.first)
        locations.add((finding.first if number is None else number, finding.mode))
        if number is not None:
            numbered_findings.append((number, finding))

    def rank(candidate: tuple[int, Finding]) -> tuple[float, int]:
        """Return the sort key of a candidate; the lowest key is the decisive step.

        Confidence is ignored among decisive findings.
        """
        step, finding = candidate
        return (0.0 if finding.decisive else -finding.confidence, step)

    candidates = [(step, finding) for step, finding in numbered_findings if finding.decisive]
    if not candidates and not is_truth:
        candidates = numbered_findings
    if not candidates:
        return StepMarks(None, frozenset(locations))
    step, finding = min(candidates, key=rank)
    category = None if finding.mode == DECISIVE_ERROR else finding.mode
    return StepMarks(Decisive(step, steps.agent(step), category), frozenset(locations))


def _make_question(trace_id: str, findings: Iterable[Finding], trace: ExamTrace | None) -> Question:
    """Make the question on a trace, with the findings as its true marks.

    An agent in the trace's metadata replaces that of the decisive step.
    """
    steps = TraceSteps() if trace is None else trace.steps
    marks = _step_marks(findings, steps, is_truth=True)
    if trace is not None and trace.named_agent and marks.decisive is not None:
        decisive = replace(marks.decisive, agent=plain_agent_name(trace.named_agent))
        marks = replace(marks, decisive=decisive)
    return Question(trace_id, marks, steps.agents)


def set_from_files(
    name: str,
    paths: tuple[Path, ...],
    rules: RulesJudge | None,
    pool: WorkerPool,
    crosswalk: Path | None = None,
) -> ExamSet:
    """Read a set with its own file format.

    Args:
        name: The name of the set, a key of ``SETS``.
        paths: The files and folders of the set.
        rules: The rules to run on its traces; None for none.
        pool: The processes that read the files.
        crosswalk: A crosswalk from the set's categories to modes of MAST. Categories without a
            link, and a judge's findings of other modes, are left out.

    Raises:
        ExchangeError: The paths have nothing of the set, or the crosswalk does not fit.
    """
    reader, scorings = SETS[name]
    if name == "who-and-when":  # the only reader that uses several processes
        incoming = read_who_and_when(pool.reachable(paths), workers=pool.workers)
    else:
        incoming = reader(pool.reachable(paths))
    mast_taxonomy = load_mast()
    modes = None
    if crosswalk is not None:
        incoming, modes = _translated_to_modes(incoming, crosswalk, mast_taxonomy)
    works = list(incoming.work)
    if name == "mast-human":  # the set also has the labels of each annotator
        works = [work for work in works if work.annotator == CONSENSUS]
    refs = {work.taxonomy for work in works}
    taxonomies = (mast_taxonomy, *incoming.taxonomies)
    taxonomy = next((taxonomy for taxonomy in taxonomies if taxonomy.ref in refs), mast_taxonomy)
    trace_ids = frozenset(work.trace_id for work in works)
    files = sorted({trace.path for trace in incoming.traces if trace.path is not None})
    traces = _traces_in(files, partial(_traces_by_file, rules, trace_ids), pool)
    exam = _make_set(name, taxonomy, works, traces, incoming.problems, scorings)
    return replace(exam, modes=modes)


def _translated_to_modes(
    incoming: Incoming, crosswalk: Path, taxonomy: Taxonomy
) -> tuple[Incoming, frozenset[str]]:
    """Translate labels by a crosswalk; also return the slugs of the modes that can result."""
    file = find_crosswalk(crosswalk)
    entries = read_crosswalk(file)
    targets = (taxonomy.find(target) for entry in entries for target in entry.targets)
    modes = frozenset(mode.slug for mode in targets if mode is not None)
    return translated(incoming, entries, taxonomy, file), modes


def _traces_in(
    files: Sequence[Path],
    read_files: Callable[[Sequence[Path]], list[list[ExamTrace]]],
    pool: WorkerPool,
) -> Iterator[ExamTrace]:
    """Yield the traces of files, which the processes of the pool read, and show the progress.

    Raises:
        ExchangeError: A file could not be read.
    """
    results = zip(files, each(read_files, files, pool.workers), strict=True)
    for number, (file, file_traces) in enumerate(results, 1):
        if isinstance(file_traces, LostItem):
            raise ExchangeError(f"{file}: {file_traces.reason}")
        yield from file_traces
        pool.on_trace(len(file_traces))
        pool.show_progress(number, len(files))


def _exam_trace(
    rules: RulesJudge | None, trace_ids: frozenset[str], trace: Trace
) -> ExamTrace | None:
    """Read a trace to its end and return its facts; None if the set has no question on it."""
    read_fully(trace)
    return ExamTrace.from_trace(trace, rules) if trace.identity.trace_id in trace_ids else None


def _traces_by_file(
    rules: RulesJudge | None, trace_ids: frozenset[str], files: Sequence[Path]
) -> list[list[ExamTrace]]:
    """Return for each file its traces on which the set has a question."""
    traces_by_file = []
    for file in files:
        traces = (_exam_trace(rules, trace_ids, trace) for trace in read_traces(file))
        traces_by_file.append([trace for trace in traces if trace is not None])
    return traces_by_file


def set_from_table(
    file: Path,
    taxonomy: Taxonomy,
    paths: tuple[Path, ...],
    rules: RulesJudge | None,
    pool: WorkerPool,
) -> ExamSet:
    """Return a labelled set from a ``csv-long`` file with the labels of one annotator.

    Args:
        file: The table.
        taxonomy: The taxonomy of its rows.
        paths: The files and folders of the traces.
        rules: The rules to run on the traces; None for none.
        pool: The processes that read the traces.

    Raises:
        ExchangeError: The file is no such table, or does not have exactly one annotator.
    """
    incoming = read_csv_long([file], taxonomy=taxonomy, find_taxonomy={taxonomy.ref: taxonomy}.get)
    works = [work for work in incoming.work if work.taxonomy == taxonomy.ref]
    names = sorted({work.annotator for work in works})
    if len(names) != 1:
        found_text = ", ".join(names) or "none"
        if not names and incoming.problems:
            found_text += f" ({incoming.problems[0].place}: {incoming.problems[0].reason})"
        raise ExchangeError(f"{file}: expected the labels of one annotator, found {found_text}")
    read_trace = partial(_exam_trace, rules, frozenset(work.trace_id for work in works))
    traces: list[ExamTrace] = []
    for _, file_traces in each_trace(
        pool.reachable(paths), read_trace, pool.workers, tell=pool.show_progress
    ):
        for trace in file_traces:
            if trace is not None:
                traces.append(trace)
            pool.on_trace()
    return _make_set(str(file), taxonomy, works, traces, incoming.problems)


def _make_set(
    name: str,
    taxonomy: Taxonomy,
    works: Sequence[ImportedWork],
    traces: Iterable[ExamTrace],
    problems: Iterable[RowProblem],
    scorings: tuple[str, ...] | None = None,
) -> ExamSet:
    """Return a labelled set of imported work.

    ``scorings`` is None for all scorings that the labels allow.
    """
    traces_by_id = {trace.trace_id: trace for trace in traces}
    questions = []
    verdicts = {}
    for work in sorted(works, key=lambda work: work.trace_id):
        findings = map(_finding_of_label, work.labels.values())
        questions.append(_make_question(work.trace_id, findings, traces_by_id.get(work.trace_id)))
        for mode, value in work.verdicts.items():
            verdicts[work.trace_id, mode] = value
        for label in work.labels.values():
            verdicts[work.trace_id, label.mode] = VerdictValue.PRESENT
    files = {trace.path for trace in traces_by_id.values()} | {work.file for work in works}
    problem_fields = ((str(problem.file), problem.place, problem.reason) for problem in problems)
    return ExamSet(
        name=name,
        taxonomy=taxonomy,
        scorings=_possible_scorings(questions, verdicts) if scorings is None else scorings,
        questions=tuple(questions),
        reference=Reference(name, verdicts),
        traces=traces_by_id,
        files=tuple(sorted(files)),
        problems=tuple(problem_lines(problem_fields)),
    )


def _possible_scorings(
    questions: Iterable[Question], verdicts: Mapping[Unit, VerdictValue]
) -> tuple[str, ...]:
    """Return the scorings that labels allow.

    Verdicts are scored only if one of them is absent, because otherwise every "present" is right.
    """
    truths = [question.truth for question in questions]
    is_possible = {
        "decisive": any(truth.decisive is not None for truth in truths),
        "places": any(truth.locations for truth in truths),
        "verdicts": VerdictValue.ABSENT in verdicts.values(),
    }
    return tuple(scoring for scoring in is_possible if is_possible[scoring])


def set_from_workspace(
    workspace: Workspace,
    name: str,
    taxonomy: Taxonomy,
    trace_of: Callable[[str], Trace | None],
    may_see: Callable[[str], bool],
) -> ExamSet:
    """Make a labelled set from the gold, or one annotator's labels and verdicts, of a workspace.

    Args:
        workspace: The workspace.
        name: ``gold``, or the name of the annotator.
        taxonomy: The taxonomy of the labels.
        trace_of: Returns the trace with an id, or None if its file cannot be read.
        may_see: Returns True if the user may see the labels on a trace, by its id.
    """
    truth = (
        _gold_truth(workspace, taxonomy)
        if name == GOLD
        else _annotator_truth(workspace, name, taxonomy)
    )
    traces: dict[str, ExamTrace] = {}
    questions = []
    for trace_id in filter(may_see, sorted(truth.findings)):
        trace = trace_of(trace_id)
        if trace is not None:
            traces[trace_id] = ExamTrace.from_trace(trace)
        questions.append(_make_question(trace_id, truth.findings[trace_id], traces.get(trace_id)))
    asked = {question.trace_id for question in questions}
    verdicts = {
        (trace_id, mode): value
        for (trace_id, mode), value in truth.verdicts.items()
        if trace_id in asked
    }
    return ExamSet(
        name=name,
        taxonomy=taxonomy,
        scorings=_possible_scorings(questions, truth.verdicts),
        questions=tuple(questions),
        reference=Reference(name, verdicts, truth.judge_seen),
        traces=traces,
    )


@dataclass(frozen=True, slots=True)
class _Truth:
    """The true answers in a workspace.

    Attributes:
        findings: The findings by trace id.
        verdicts: The verdicts.
        judge_seen: The verdicts by people who had seen a judge's answer.
    """

    findings: Mapping[str, Sequence[Finding]]
    verdicts: Mapping[Unit, VerdictValue]
    judge_seen: frozenset[Unit] = frozenset()


def _gold_truth(workspace: Workspace, taxonomy: Taxonomy) -> _Truth:
    """Return the gold of all traces as true answers."""
    gold_by_trace = {
        trace_id: work.gold(taxonomy)
        for trace_id, work in read_work_by_trace(workspace, taxonomy).items()
    }
    verdicts = {
        (trace_id, verdict.mode): verdict
        for trace_id, gold in gold_by_trace.items()
        for verdict in gold.verdicts
    }
    return _Truth(
        {
            trace_id: list(map(_finding_of_gold, gold.labels))
            for trace_id, gold in gold_by_trace.items()
        },
        {unit: verdict.value for unit, verdict in verdicts.items() if verdict.value is not None},
        frozenset(
            unit
            for unit, verdict in verdicts.items()
            if verdict.value is not None and verdict.judge_seen
        ),
    )


def _annotator_truth(workspace: Workspace, name: str, taxonomy: Taxonomy) -> _Truth:
    """Return the labels and verdicts of an annotator on finished traces as true answers."""
    all_labels = workspace.labels(annotator=name, taxonomy=taxonomy.ref)
    labels = values_by_key((label.trace_id, label) for label in all_labels)
    findings = {
        trace_id: list(map(_finding_of_label, labels.get(trace_id, ())))
        for trace_id in _finished_traces(workspace, name, taxonomy.ref)
    }
    return _Truth(
        findings,
        {
            (record.trace_id, record.mode): record.value
            for record in workspace.verdicts(annotator=name, taxonomy=taxonomy.ref)
        },
    )


def rules_candidate(exam: ExamSet, judge: RulesJudge) -> ExamCandidate:
    """Return the rules as a candidate of the exam, with their findings as answers.

    Args:
        exam: The set; the rules have run on its traces.
        judge: The rules.
    """
    # The rules find modes of MAST.
    uses_set_taxonomy = exam.taxonomy.ref == load_mast().ref
    answers = {}
    verdicts = {}
    for trace_id, trace in exam.traces.items():
        findings = [
            finding for finding in trace.rule_findings or () if exam.asks_about(finding.mode)
        ]
        answers[trace_id] = _step_marks(findings, trace.steps, is_truth=False)
        present_modes = {finding.mode for finding in findings}
        for mode in judge.looks_at:
            verdicts[trace_id, mode] = (
                VerdictValue.PRESENT if mode in present_modes else VerdictValue.ABSENT
            )
    return ExamCandidate(
        judge.name,
        Answers(answers, uses_set_taxonomy),
        _judge_input(exam, judge.name, verdicts if uses_set_taxonomy else {}),
    )


def candidate_from_workspace(
    workspace: Workspace, exam: ExamSet, name: str, may_see: Callable[[str], bool]
) -> ExamCandidate:
    """Return a judge or annotator in a workspace as a candidate, with its labels as answers.

    Without work under the taxonomy of the set, work under another taxonomy is used.

    Args:
        workspace: The workspace.
        exam: The labelled set.
        name: The name of the judge or annotator.
        may_see: Returns True if the user may see the labels on a trace, by its id.
    """
    visible_trace_ids = {
        question.trace_id for question in exam.questions if may_see(question.trace_id)
    }
    ref = _taxonomy_of_work(workspace, name, exam.taxonomy.ref)
    # Labels under another taxonomy show the steps of errors, but not their modes.
    uses_set_taxonomy = ref == exam.taxonomy.ref
    labels = workspace.labels(annotator=name, taxonomy=ref)
    labels_by_trace = values_by_key(
        (label.trace_id, label) for label in labels if exam.asks_about(label.mode)
    )
    answers = {
        trace_id: _step_marks(
            map(_finding_of_label, labels_by_trace.get(trace_id, ())),
            exam.traces[trace_id].steps if trace_id in exam.traces else TraceSteps(),
            is_truth=False,
        )
        for trace_id in _finished_traces(workspace, name, ref)
        if trace_id in visible_trace_ids
    }
    records = workspace.verdicts(annotator=name, taxonomy=ref) if uses_set_taxonomy else ()
    # Verdicts count only on finished traces, which are the keys of ``answers``.
    verdicts = {
        (record.trace_id, record.mode): record.value
        for record in records
        if record.trace_id in answers
    }
    quotes = QuoteCounts.count(
        [label.evidence for label in labels if label.trace_id in visible_trace_ids]
    )
    return ExamCandidate(
        name=name,
        answers=Answers(answers, uses_set_taxonomy),
        judged=_judge_input(exam, name, verdicts),
        cost=_mean_cost(workspace, name),
        quotes=asdict(quotes) if quotes.all else None,
    )


def _taxonomy_of_work(workspace: Workspace, name: str, preferred: str) -> str:
    """Return a taxonomy under which an annotator has worked, preferably ``preferred``."""
    refs = {labelling_pass.taxonomy for labelling_pass in workspace.passes(annotator=name)}
    refs |= {judgement.taxonomy for judgement in workspace.judgements(annotator=name)}
    return preferred if preferred in refs else min(refs, default=preferred)


def annotator_named(workspace: Workspace, text: str) -> str:
    """Return the annotator with this name, or the only judge whose name begins with it.

    Args:
        workspace: The workspace.
        text: A name, or the beginning of a judge's name.

    Raises:
        click.ClickException: No judge has such a name, or several have.
    """
    names = {annotator.name for annotator in workspace.annotators()}
    return text if text in names else find_judge(workspace, text)


def _judge_input(
    exam: ExamSet, name: str, verdicts: Mapping[Unit, VerdictValue]
) -> JudgeInput | None:
    """Return verdicts for the comparison with the reference; None if they cannot be scored."""
    if "verdicts" not in exam.scorings or not verdicts:
        return None
    return JudgeInput(
        exam.taxonomy.ref,
        exam.taxonomy.modes,
        name,
        verdicts,
        exam.reference,
    )


def _finished_traces(workspace: Workspace, name: str, ref: str) -> list[str]:
    """Return the ids of the traces that an annotator has finished, or a judge has judged."""
    passes = workspace.passes(annotator=name, taxonomy=ref)
    finished = {labelling_pass.trace_id for labelling_pass in passes if labelling_pass.finished}
    return sorted(
        finished
        | {judgement.trace_id for judgement in workspace.judgements(annotator=name, taxonomy=ref)}
    )


def _mean_cost(workspace: Workspace, name: str) -> dict[str, float | None] | None:
    """Return the mean cost of a trace by the runs of a judge with a model; None without one."""
    runs = [run for run in workspace.runs() if run.judge == name and run.usage.requests]
    trace_count = sum(trace.problem is None for run in runs for trace in run.traces)
    if not trace_count:
        return None
    costs = [run.cost for run in runs if run.cost is not None]
    return {
        "traces": trace_count,
        "requests": sum(run.usage.requests for run in runs) / trace_count,
        "tokens_in": sum(run.usage.tokens_in for run in runs) / trace_count,
        "tokens_out": sum(run.usage.tokens_out for run in runs) / trace_count,
        "cost": sum(costs) / trace_count if len(costs) == len(runs) else None,
    }
