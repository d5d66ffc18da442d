"""What ``mast-tui exam`` puts together: a labelled set, and what judges say of its traces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.adjudication import words_by_trace
from mast_tui.cli.agree import judge_named
from mast_tui.cli.shared.common import problem_lines
from mast_tui.exam.figures import (
    Answers,
    Decisive,
    Marks,
    Place,
    Question,
    StepScorer,
    contains_digits,
)
from mast_tui.exchange.crosswalk import crossed, find_crosswalk, read_crosswalk
from mast_tui.exchange.csv_long import read_csv_long
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.importers.agentrx import read_agentrx
from mast_tui.exchange.importers.mast_human import CONSENSUS, read_mast_human
from mast_tui.exchange.importers.trail import read_trail
from mast_tui.exchange.importers.who_and_when import MODE as DECISIVE_ERROR
from mast_tui.exchange.importers.who_and_when import read_who_and_when
from mast_tui.exchange.trace_files import read_traces, step_numbers, step_of_key
from mast_tui.figures.judge.input import GOLD, JudgeInput, Reference
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Finding, QuoteCounts, Severity, VerdictValue
from mast_tui.parallel import LostItem, each
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_fully
from mast_tui.traces.scan.each_trace import each_trace

if TYPE_CHECKING:
    from mast_tui.cli.shared.workers import WorkerPool
    from mast_tui.exchange.errors import RowProblem
    from mast_tui.exchange.import_batch import ImportedWork, Incoming
    from mast_tui.gold.model import GoldLabel
    from mast_tui.labels import Label
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.traces.model import Trace
    from mast_tui.workspace import Workspace

Unit = tuple[str, str]

SETS: Final[Mapping[str, tuple[Callable[[Sequence[Path]], Incoming], tuple[str, ...]]]] = {
    "who-and-when": (read_who_and_when, ("decisive",)),
    "agentrx": (read_agentrx, ("decisive", "places")),
    "trail": (read_trail, ("places",)),
    "mast-human": (read_mast_human, ("verdicts",)),
}
"""The sets that are read from their own files: by what, and how their labels are scored."""

PUBLISHED_SCORERS: Final[Mapping[str, StepScorer]] = {"who-and-when": contains_digits}
"""The rules by which published scorers count a named step as right, where they are not exact."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a trace: their number by the keys of spans, and whose they are.

    Of a trace that is not at hand only keys of message lists tell a number, and no agent.
    """

    numbers: Mapping[str, int] | None = None
    agents: tuple[str, ...] | None = None

    @classmethod
    def of(cls, trace: Trace) -> Steps:
        """Those of a trace that is read to its end."""
        numbers = step_numbers(trace)
        agents = [""] * (max(numbers.values(), default=-1) + 1)
        for index in range(len(trace)):
            span = trace.span(index)
            agents[numbers[span.key]] = agents[numbers[span.key]] or _plain(span.agent)
        return cls(numbers, tuple(agents))

    def number(self, key: str | None) -> int | None:
        """The number of the step that a span is a part of; None where nobody can tell."""
        if key is None:
            return None
        return step_of_key(key) if self.numbers is None else self.numbers.get(key)

    def agent(self, step: int) -> str | None:
        """Whose a step is, None where nobody can tell."""
        return None if self.agents is None else self.agents[step] or None


def _plain(agent: str) -> str:
    """An agent's name without the remark in brackets that some sets add."""
    return agent.split("(")[0].strip().casefold()


@dataclass(frozen=True, slots=True)
class AtHand:
    """What an exam wants of a trace, whichever process has read it.

    ``told`` is the agent that the trace itself names as the one that failed, ``found`` what rules
    find, None where none was asked.
    """

    trace_id: str
    path: Path
    steps: Steps
    told: str | None
    found: tuple[Finding, ...] | None = None

    @classmethod
    def of(cls, trace: Trace, rules: RulesJudge | None = None) -> AtHand:
        """Take what is wanted of a trace that is read to its end.

        Args:
            trace: The trace.
            rules: Who judges it; None for nobody.
        """
        told = dict(trace.meta.hidden).get("mistake_agent")
        found = None if rules is None else rules.judge(trace).findings
        return cls(trace.identity.trace_id, trace.path, Steps.of(trace), told, found)


@dataclass(frozen=True, slots=True)
class ExamSet:
    """A labelled set: its questions and how they are scored.

    ``scorings`` are of ``decisive``, ``places`` and ``verdicts``. ``reference`` says what shows in
    a trace. ``traces`` are those that are at hand, ``files`` those of the set, ``problems`` what of
    them could not be read. ``modes`` are those that its labels can tell of, None for all.
    """

    name: str
    taxonomy: Taxonomy
    scorings: tuple[str, ...]
    questions: tuple[Question, ...]
    reference: Reference
    traces: Mapping[str, AtHand]
    files: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    modes: frozenset[str] | None = None

    def asks_about(self, mode: str) -> bool:
        """Whether the set's labels can tell of a mode."""
        return self.modes is None or mode in self.modes

    def hashes(self) -> list[dict[str, str]]:
        """The files with their SHA-256, by which somebody else knows that theirs are the same."""
        return [
            {"path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
            for file in self.files
        ]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A judge that sits the exam: what it says, and what that took.

    ``judged`` is what its verdicts are compared by, None where the set has none. ``cost`` is what
    it used on average for a trace and ``quotes`` how its quotes were found, by kind; None where no
    model was asked.
    """

    name: str
    answers: Answers
    judged: JudgeInput | None = None
    cost: Mapping[str, float | None] | None = None
    quotes: Mapping[str, int] | None = None


def _of_label(label: Label) -> Finding:
    """What a label says, as a judge would: decisive is the step that was fatal."""
    fatal = label.severity is Severity.FATAL or bool(label.decisive)
    fatal = fatal or label.mode == DECISIVE_ERROR
    place = label.target
    return Finding(label.mode, place.first, place.last, "", label.confidence or 0.0, fatal)


def _of_gold(label: GoldLabel) -> Finding:
    fatal = label.severity is Severity.FATAL
    return Finding(label.mode, label.target.first, label.target.last, "", 0.0, fatal)


def _marks(said: Iterable[Finding], steps: Steps, *, truth: bool) -> Marks:
    """What somebody says, step by step.

    The decisive step is the earliest one called so. A judge that calls none so means the one that
    it is surest of, and of equally sure ones the earliest; a truth that calls none so has none.
    """
    known = [one for one in said if one.first is not None]
    placed = [(step, one) for one in known if (step := steps.number(one.first)) is not None]
    chosen = [(step, one) for step, one in placed if one.decisive] or ([] if truth else placed)
    decisive = None
    if chosen:
        step, one = min(
            chosen, key=lambda pair: (0.0 if pair[1].decisive else -pair[1].confidence, pair[0])
        )
        named = None if one.mode == DECISIVE_ERROR else one.mode
        decisive = Decisive(step, steps.agent(step), named)
    places: set[Place] = set()
    for one in known:
        step = steps.number(one.first)
        places.add((one.first or "" if step is None else step, one.mode))
    return Marks(decisive, frozenset(places))


def _question(trace_id: str, said: Iterable[Finding], trace: AtHand | None) -> Question:
    steps = Steps() if trace is None else trace.steps
    marks = _marks(said, steps, truth=True)
    if trace is not None and trace.told and marks.decisive is not None:
        marks = replace(marks, decisive=replace(marks.decisive, agent=_plain(trace.told)))
    return Question(trace_id, marks, steps.agents)


def set_from_files(
    name: str,
    paths: tuple[Path, ...],
    rules: RulesJudge | None,
    pool: WorkerPool,
    crosswalk: Path | None = None,
) -> ExamSet:
    """Read a set that has a reader.

    Args:
        name: The set's.
        paths: Where its files lie.
        rules: Who judges its traces, None for nobody.
        pool: Who reads them.
        crosswalk: What makes modes of MAST of its categories; those without a link are left out,
            and so is what a judge says of other modes.

    Raises:
        ExchangeError: Nothing of the set is there, or the crosswalk does not fit.
    """
    reader, scorings = SETS[name]
    if name == "who-and-when":
        read = read_who_and_when(pool.reachable(paths), workers=pool.workers)
    else:
        read = reader(pool.reachable(paths))
    modes = None
    if crosswalk is not None:
        file = find_crosswalk(crosswalk)
        entries = read_crosswalk(file)
        read = crossed(read, entries, load_mast(), file)
        targets = {name for entry in entries for name in entry.targets}
        modes = frozenset(mode.slug for name in targets if (mode := load_mast().find(name)))
    work = list(read.work)
    if name == "mast-human":
        work = [one for one in work if one.annotator == CONSENSUS]
    refs = {one.taxonomy for one in work}
    mast = load_mast()
    taxonomy = next((known for known in (mast, *read.taxonomies) if known.ref in refs), mast)
    files = sorted({one.path for one in read.traces if one.path is not None})
    look = partial(_in_files, rules, frozenset(one.trace_id for one in work))
    traces: list[AtHand] = []
    found_in = zip(files, each(look, files, pool.workers), strict=True)
    for number, (file, said) in enumerate(found_in, 1):
        if isinstance(said, LostItem):
            raise ExchangeError(f"{file}: {said.reason}")
        traces += said
        pool.on_trace(len(said))
        pool.tell(number, len(files))
    found = _set_of(name, taxonomy, work, traces, read.problems, scorings)
    return replace(found, modes=modes)


def _asked(rules: RulesJudge | None, asked: frozenset[str], trace: Trace) -> AtHand | None:
    """A trace, if it is one of those asked about."""
    read_fully(trace)
    return AtHand.of(trace, rules) if trace.identity.trace_id in asked else None


def _in_files(
    rules: RulesJudge | None, asked: frozenset[str], files: Sequence[Path]
) -> list[list[AtHand]]:
    """Those in each file."""
    looked = ((_asked(rules, asked, trace) for trace in read_traces(file)) for file in files)
    return [[one for one in found if one is not None] for found in looked]


def set_from_table(
    file: Path,
    taxonomy: Taxonomy,
    paths: tuple[Path, ...],
    rules: RulesJudge | None,
    pool: WorkerPool,
) -> ExamSet:
    """Take the word of the one annotator of a ``csv-long`` file for the truth.

    Args:
        file: The table.
        taxonomy: Under which its rows are read.
        paths: Where the traces lie.
        rules: Who judges them, None for nobody.
        pool: Who reads them.

    Raises:
        ExchangeError: It is no such table, or holds the words of none or of several.
    """
    read = read_csv_long([file], taxonomy=taxonomy, find_taxonomy={taxonomy.ref: taxonomy}.get)
    work = [one for one in read.work if one.taxonomy == taxonomy.ref]
    names = sorted({one.annotator for one in work})
    if len(names) != 1:
        raise ExchangeError(
            f"{file}: the truth of an exam is one annotator's word, and here are those of "
            f"{', '.join(names) or 'nobody'}"
        )
    look = partial(_asked, rules, frozenset(one.trace_id for one in work))
    traces: list[AtHand] = []
    for _, found in each_trace(pool.reachable(paths), look, pool.workers, tell=pool.tell):
        for trace in found:
            traces += () if trace is None else (trace,)
            pool.on_trace()
    return _set_of(str(file), taxonomy, work, traces, read.problems)


def _set_of(
    name: str,
    taxonomy: Taxonomy,
    work: Sequence[ImportedWork],
    traces: Iterable[AtHand],
    problems: Iterable[RowProblem],
    scorings: tuple[str, ...] | None = None,
) -> ExamSet:
    """A set from what was read of files; without ``scorings`` as its labels can be scored."""
    at_hand = {trace.trace_id: trace for trace in traces}
    questions, verdicts = [], {}
    for one in sorted(work, key=lambda one: one.trace_id):
        trace = at_hand.get(one.trace_id)
        questions.append(_question(one.trace_id, map(_of_label, one.labels.values()), trace))
        for mode, value in one.verdicts.items():
            verdicts[one.trace_id, mode] = value
        for label in one.labels.values():
            verdicts[one.trace_id, label.mode] = VerdictValue.PRESENT
    files = {trace.path for trace in at_hand.values()} | {one.file for one in work}
    return ExamSet(
        name,
        taxonomy,
        _scorings(questions, verdicts) if scorings is None else scorings,
        tuple(questions),
        Reference(name, verdicts),
        at_hand,
        tuple(sorted(files)),
        tuple(problem_lines((str(one.file), one.place, one.reason) for one in problems)),
    )


def _scorings(
    questions: Iterable[Question], verdicts: Mapping[Unit, VerdictValue]
) -> tuple[str, ...]:
    """By what labels can be scored: what nobody calls absent cannot be wrong."""
    truths = [question.truth for question in questions]
    there = {
        "decisive": any(truth.decisive is not None for truth in truths),
        "places": any(truth.places for truth in truths),
        "verdicts": VerdictValue.ABSENT in verdicts.values(),
    }
    return tuple(scoring for scoring in there if there[scoring])


def set_from_workspace(
    place: Workspace,
    name: str,
    taxonomy: Taxonomy,
    trace_of: Callable[[str], Trace | None],
    may_see: Callable[[str], bool],
) -> ExamSet:
    """Take gold, or what one annotator says, for the truth, on the traces that may be seen."""
    said: dict[str, list[Finding]] = {}
    verdicts: dict[Unit, VerdictValue] = {}
    seen: set[Unit] = set()
    if name == GOLD:
        for trace_id, words in words_by_trace(place, taxonomy).items():
            gold = words.gold(taxonomy)
            said[trace_id] = list(map(_of_gold, gold.labels))
            for verdict in gold.verdicts:
                if verdict.value is not None:
                    verdicts[trace_id, verdict.mode] = verdict.value
                    if verdict.judge_seen:
                        seen.add((trace_id, verdict.mode))
    else:
        labels = _by_trace(place.labels(annotator=name, taxonomy=taxonomy.ref))
        looked_at = _looked_at(place, name, taxonomy.ref)
        said = {one: list(map(_of_label, labels.get(one, ()))) for one in looked_at}
        for one in place.verdicts(annotator=name, taxonomy=taxonomy.ref):
            verdicts[one.trace_id, one.mode] = one.value
    traces: dict[str, AtHand | None] = {}
    for trace_id in filter(may_see, sorted(said)):
        trace = trace_of(trace_id)
        traces[trace_id] = None if trace is None else AtHand.of(trace)
    questions = [_question(one, said[one], found) for one, found in traces.items()]
    return ExamSet(
        name,
        taxonomy,
        _scorings(questions, verdicts),
        tuple(questions),
        Reference(
            name,
            {unit: value for unit, value in verdicts.items() if unit[0] in traces},
            frozenset(seen),
        ),
        {trace_id: found for trace_id, found in traces.items() if found is not None},
    )


def rules_candidate(exam: ExamSet, judge: RulesJudge) -> Candidate:
    """Take what rules find in the traces of a set that are at hand.

    Args:
        exam: The set, whose traces they have judged.
        judge: The rules.
    """
    same = exam.taxonomy.ref == load_mast().ref
    answers, verdicts = {}, {}
    for trace_id, trace in exam.traces.items():
        found = [one for one in trace.found or () if exam.asks_about(one.mode)]
        answers[trace_id] = _marks(found, trace.steps, truth=False)
        shown = {finding.mode for finding in found}
        for mode in judge.looks_at:
            present = mode in shown
            verdicts[trace_id, mode] = VerdictValue.PRESENT if present else VerdictValue.ABSENT
    return Candidate(
        judge.name, Answers(answers, same), _judged(exam, judge.name, verdicts if same else {})
    )


def candidate_from_workspace(
    place: Workspace, exam: ExamSet, name: str, may_see: Callable[[str], bool]
) -> Candidate:
    """Take what a judge, or anybody whose answers were imported, says in a workspace.

    Args:
        place: The workspace.
        exam: The set.
        name: The judge's, or the annotator's.
        may_see: Of which traces it may be told.
    """
    asked = {one.trace_id for one in exam.questions if may_see(one.trace_id)}
    refs = {one.taxonomy for one in place.passes(annotator=name)}
    refs |= {one.taxonomy for one in place.judgements(annotator=name)}
    ref = exam.taxonomy.ref if exam.taxonomy.ref in refs else min(refs, default=exam.taxonomy.ref)
    same = ref == exam.taxonomy.ref
    labels = place.labels(annotator=name, taxonomy=ref)
    of_trace = _by_trace(label for label in labels if exam.asks_about(label.mode))
    answers = {
        trace_id: _marks(
            map(_of_label, of_trace.get(trace_id, ())),
            exam.traces[trace_id].steps if trace_id in exam.traces else Steps(),
            truth=False,
        )
        for trace_id in _looked_at(place, name, ref)
        if trace_id in asked
    }
    said = place.verdicts(annotator=name, taxonomy=ref) if same else ()
    # ``answers`` has the traces that the judge has finished.
    verdicts = {(one.trace_id, one.mode): one.value for one in said if one.trace_id in answers}
    quoted = [one.evidence for one in labels if one.trace_id in asked]
    quotes = QuoteCounts.of(quoted)
    return Candidate(
        name,
        Answers(answers, same),
        _judged(exam, name, verdicts),
        _cost(place, name),
        asdict(quotes) if quotes.all else None,
    )


def annotator_named(place: Workspace, text: str) -> str:
    """Whoever has this name, or the one judge whose name begins so."""
    return text if text in {one.name for one in place.annotators()} else judge_named(place, text)


def _judged(exam: ExamSet, name: str, verdicts: Mapping[Unit, VerdictValue]) -> JudgeInput | None:
    if "verdicts" not in exam.scorings or not verdicts:
        return None
    modes = tuple((mode.slug, mode.code, mode.name) for mode in exam.taxonomy.modes)
    return JudgeInput(exam.taxonomy.ref, modes, name, verdicts, exam.reference)


def _by_trace(labels: Iterable[Label]) -> dict[str, list[Label]]:
    found: dict[str, list[Label]] = {}
    for label in labels:
        found.setdefault(label.trace_id, []).append(label)
    return found


def _looked_at(place: Workspace, name: str, ref: str) -> list[str]:
    """The traces that somebody has finished, or a judge has judged."""
    finished = {p.trace_id for p in place.passes(annotator=name, taxonomy=ref) if p.finished}
    judged = {one.trace_id for one in place.judgements(annotator=name, taxonomy=ref)}
    return sorted(finished | judged)


def _cost(place: Workspace, name: str) -> dict[str, float | None] | None:
    """What a model's runs used on average for a trace that they judged."""
    runs = [run for run in place.runs() if run.judge == name and run.usage.requests]
    traces = sum(one.problem is None for run in runs for one in run.traces)
    if not traces:
        return None
    costs = [run.cost for run in runs]
    known = [cost for cost in costs if cost is not None]
    return {
        "traces": traces,
        "requests": sum(run.usage.requests for run in runs) / traces,
        "tokens_in": sum(run.usage.tokens_in for run in runs) / traces,
        "tokens_out": sum(run.usage.tokens_out for run in runs) / traces,
        "cost": sum(known) / traces if len(known) == len(costs) else None,
    }
