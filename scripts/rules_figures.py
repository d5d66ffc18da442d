"""Print the precision and recall of each rule of the rules judge.

    python scripts/rules_figures.py [--half seen|unseen|both] [--misses] [--write]

The rules were developed on ``sample_traces``, so these figures measure fit: a planted failure is
found, and a hard negative hit, if a suggestion of the same mode overlaps its spans. The labelled
sets of the corpus are split by task and seed into a half for development and a half for tests. The
functions that read the sets, and docs/lint.md, define a right suggestion. No set has labels for the
default rules: their suggestions were read, and ``rules_read.csv`` has the verdicts.

``--write`` writes the table of rules between the comments in docs/lint.md, and all figures to
docs/rules.csv.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from mast_tui.exchange.import_batch import Incoming
from mast_tui.exchange.importers.labelled_sets import read_agentrx, read_who_and_when
from mast_tui.figures.intervals import share
from mast_tui.judges.rules import DEFAULT, RULES, Rule, RulesJudge, endings
from mast_tui.labels import Finding
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Outcome, Trace
from scripts.pages import csv_text, with_table

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLES: Final = ROOT / "sample_traces"
CORPUS: Final = ROOT.parent / "shared" / "corpus"
READ: Final = Path(__file__).with_name("rules_read.csv")
PAGE: Final = ROOT / "docs" / "lint.md"
FIGURES: Final = ROOT / "docs" / "rules.csv"
SEED: Final = "rules-2"
HALVES: Final = ("seen", "unseen")


@dataclass(frozen=True, slots=True)
class PlantedFailure:
    """One line of ``planted.jsonl`` or ``clean.jsonl``."""

    file: str
    record: int
    code: str
    slug: str
    first: str
    last: str
    mechanical: bool
    why: str


@dataclass(slots=True)
class RuleTally:
    """The number of planted failures or hard negatives, and of those with a suggestion."""

    total: int = 0
    hit: int = 0

    def add(self, hit: bool) -> None:
        """Count one."""
        self.total += 1
        self.hit += hit


Findings = list[tuple[Rule, Finding]]


class JudgedTraces:
    """Traces with the findings of all rules; each file is read and judged once."""

    def __init__(self) -> None:
        self._judge = RulesJudge(RULES)
        self._files: dict[Path, list[tuple[Trace, Findings]]] = {}

    def in_file(self, path: Path) -> list[tuple[Trace, Findings]]:
        """Return the traces of a file in their order, with the findings of all rules."""
        if path not in self._files:
            judged = []
            for trace in read_file(path, True).traces:
                read_fully(trace)
                judged.append((trace, self._judge.findings(trace)))
            self._files[path] = judged
        return self._files[path]

    def hits(self, row: PlantedFailure, rules: Sequence[Rule]) -> list[Finding]:
        """Return the findings of a planted failure.

        Args:
            row: The planted failure.
            rules: The rules whose findings count.
        """
        trace, findings = self.in_file(SAMPLES / row.file)[row.record]
        spans = [span_range(trace, row.first, row.last)]
        return [
            finding
            for rule, finding in findings
            if rule in rules
            and rule.mode == row.slug
            and overlaps(span_range(trace, finding.first, finding.last), spans)
        ]


def span_range(trace: Trace, first: str | None, last: str | None) -> range:
    """Return the indices of some spans.

    Args:
        trace: The trace.
        first: The key of the first span.
        last: The key of the last span.
    """
    start = trace.index_of(first or "")
    end = trace.index_of(last or "")
    if start is None or end is None:
        raise SystemExit(f"{trace.path}: no span {first!r} or {last!r}")
    return range(start, end + 1)


def overlaps(spans: range, ranges: Iterable[range]) -> bool:
    """Return whether a range of spans overlaps one of several ranges.

    Args:
        spans: The range.
        ranges: The other ranges.
    """
    return any(spans.start < other.stop and other.start < spans.stop for other in ranges)


def _planted_failures(name: str) -> Iterator[PlantedFailure]:
    """Yield the rows of ``planted.jsonl`` or ``clean.jsonl``."""
    for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        yield PlantedFailure(
            file=values["trace"],
            record=values["record"] or 0,
            code=values["mode"],
            slug=values["slug"],
            first=values["first"],
            last=values["last"],
            mechanical=values.get("mechanical", False),
            why=values["why"],
        )


def on_samples(
    judged: JudgedTraces, rules: Sequence[Rule]
) -> tuple[dict[str, RuleTally], list[str]]:
    """Count the planted failures and the hard negatives with a suggestion.

    Args:
        judged: The sample traces with their findings.
        rules: The rules whose findings count.

    Returns:
        The tallies, and a line for each missed countable failure and each hit of a hard negative.
    """
    tallies = {
        name: RuleTally() for name in ("mechanical", "all plants", "clean", "clean looked at")
    }
    looked_at = {rule.mode for rule in rules}
    wrong = []
    for row in _planted_failures("planted.jsonl"):
        is_found = bool(judged.hits(row, rules))
        tallies["all plants"].add(is_found)
        if row.mechanical:
            tallies["mechanical"].add(is_found)
            if not is_found:
                wrong.append(f"missed {row.code} in {row.file}, {row.first}: {row.why}")
    for row in _planted_failures("clean.jsonl"):
        hits = judged.hits(row, rules)
        tallies["clean"].add(bool(hits))
        if row.slug in looked_at:
            tallies["clean looked at"].add(bool(hits))
        wrong += [f"hit clean {row.code} in {row.file}: {hit.rationale}" for hit in hits]
    return tallies, wrong


@dataclass(frozen=True, slots=True)
class Truth:
    """The labels of a set on one trace.

    Attributes:
        right: A function that returns whether a suggestion is right; None if that is unknown.
        marked: The indices of the spans of each labelled failure.
        whole: Whether labels are on whole traces. All suggestions of a mode then count as one.
        modes: The modes that are present, for labels on whole traces.
    """

    right: Callable[[Rule, range], bool | None]
    marked: tuple[range, ...] = ()
    whole: bool = False
    modes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RuleCase:
    """A labelled trace of a set, with its task and the findings of the rules."""

    task: str
    trace: Trace
    findings: Findings
    truth: Truth

    @property
    def half(self) -> str:
        """The half, which is the same for all runs of a task in all sets."""
        digest = hashlib.sha256(f"{SEED}:{self.task}".encode()).digest()
        return HALVES[digest[0] % 2]


LabelledSets = Mapping[str, Sequence[RuleCase]]
"""The traces of each set, by its name."""


def _mast_human(judged: JudgedTraces, corpus: Path) -> Iterator[RuleCase]:
    """Yield whole traces that three people labelled; the majority is the truth.

    A suggestion is right if its mode is present, and wrong if it is absent. Only modes count
    that had a name in the study's first taxonomies.
    """
    names = _names_in_older_schemes()
    for record, trace, findings in _labelled_records(judged, corpus):
        people = _majority(record["hf_annotations"], names)
        modes = frozenset(mode for mode, present in people.items() if present)
        truth = Truth(partial(_by_mode, people), whole=True, modes=modes)
        yield RuleCase(trace.identity.content_hash, trace, findings, truth)


def _by_mode(people: Mapping[str, bool], rule: Rule, _spans: range) -> bool | None:
    return people.get(rule.mode)


def _labelled_records(judged: JudgedTraces, corpus: Path) -> Iterator[tuple[Any, Trace, Findings]]:
    """Yield the records of people's labels, each with its trace and the findings of the rules."""
    traces: dict[str, tuple[Trace, Findings]] = {}
    for path in sorted((corpus / "mast-human").glob("iaa_*.json")):
        records = json.loads(path.read_text(encoding="utf-8"))
        for trace, findings in judged.in_file(path):
            traces[f"hf_{records[trace.record or 0]['index']}"] = trace, findings
    for path in sorted((corpus / "mast-human").glob("annotations_*.json")):
        for record in json.loads(path.read_text(encoding="utf-8")):
            yield record, *traces[record["trace_id"]]


def _names_in_older_schemes() -> dict[str, str]:
    """Return the slugs of modes by their names in the study's first two rounds."""
    return {
        alias.name.casefold(): mode.slug
        for mode in load_mast().modes
        for alias in mode.aliases
        if "human labels, round" in alias.source and "nearest mode" not in alias.source
    }


def _majority(
    annotations: Mapping[str, Mapping[str, bool]], names: Mapping[str, str]
) -> dict[str, bool]:
    people = {}
    for heading, votes in annotations.items():
        name = heading.split("\n")[0].split(" ", 1)[1].strip().casefold()
        if name in names:
            people[names[name]] = 2 * sum(votes.values()) > len(votes)
    return people


def _agentrx(judged: JudgedTraces, corpus: Path) -> Iterator[RuleCase]:
    """Yield runs with all failed steps marked, in categories that are the mode of no rule."""
    yield from _marked_cases(judged, read_agentrx([corpus / "agentrx"]))


def _who_and_when(judged: JudgedTraces, corpus: Path) -> Iterator[RuleCase]:
    """Yield failed runs with only the decisive step marked."""
    yield from _marked_cases(judged, read_who_and_when([corpus / "who-and-when"]))


def _agentrx_recorded(judged: JudgedTraces, corpus: Path) -> Iterator[RuleCase]:
    """Yield simulated runs with one planted fault and no other.

    A suggestion is right if it covers the planted step, else wrong.
    """
    folder = corpus / "agentrx-recorded"
    runs = sorted((folder / "runs" / "agentrx").glob("*/*/trajectory_ir.json"))
    incoming = read_agentrx([folder / "ground_truth", *runs])
    yield from _marked_cases(judged, incoming, others_are_wrong=True)


def _marked_cases(
    judged: JudgedTraces, incoming: Incoming, *, others_are_wrong: bool = False
) -> Iterator[RuleCase]:
    """Yield the traces with imported labels; suggestions on other spans may be wrong."""
    files = {record.trace_id: Path(record.path) for record in incoming.traces if record.path}
    for work in incoming.work:
        for trace, findings in judged.in_file(files[work.trace_id]):
            if trace.identity.trace_id == work.trace_id:
                marked = tuple(
                    span_range(trace, label.target.first, label.target.last)
                    for label in work.labels.values()
                )
                right = partial(_by_spans, marked) if others_are_wrong else _unknown
                yield RuleCase(_task_of(trace), trace, findings, Truth(right, marked))


def _by_spans(marked: Sequence[range], _rule: Rule, spans: range) -> bool:
    return overlaps(spans, marked)


def _unknown(_rule: Rule, _spans: range) -> None:
    return None


def _task_of(trace: Trace) -> str:
    """Return the benchmark's id of a trace's task."""
    document = json.loads(trace.path.read_text("utf-8"))
    for name in ("question_ID", "trajectory_id"):
        if isinstance(document, dict) and name in document:
            return str(document[name])
    return trace.path.stem if trace.record is None else f"{trace.path.stem}:{trace.record}"


def _tau_bench(judged: JudgedTraces, corpus: Path) -> Iterator[RuleCase]:
    """Yield runs with outcomes."""
    for path in sorted((corpus / "tau-bench").glob("*.json")):
        yield from _runs_with_outcomes(judged, path, "tau")


def _inspect(judged: JudgedTraces, corpus: Path) -> Iterator[RuleCase]:
    """Yield runs whose outcomes are their scores."""
    yield from _runs_with_outcomes(judged, corpus / "inspect" / "docent_log.eval", "docent")


def _runs_with_outcomes(judged: JudgedTraces, path: Path, name: str) -> Iterator[RuleCase]:
    """Yield the runs of a file with outcomes.

    The rules of 3.1 and 3.3 state that a run failed: they are right if it did. An outcome does not
    show whether other rules are right.
    """
    for trace, findings in judged.in_file(path):
        failed = trace.meta.outcome is Outcome.FAILED
        truth = Truth(partial(_by_outcome, failed))
        yield RuleCase(f"{name}:{trace.record}", trace, findings, truth)


def _by_outcome(failed: bool, rule: Rule, _spans: range) -> bool | None:
    states_failure = rule.mode in (endings.PREMATURE_TERMINATION, endings.INCORRECT_VERIFICATION)
    return failed if states_failure else None


SETS: Final = {
    "mast-human": _mast_human,
    "agentrx": _agentrx,
    "agentrx-recorded": _agentrx_recorded,
    "who-and-when": _who_and_when,
    "tau-bench": _tau_bench,
    "inspect": _inspect,
}


@dataclass(slots=True)
class Count:
    """The results of some rules on a half of a set.

    Attributes:
        suggestions: The number of suggestions.
        right: The suggestions that the labels call right.
        wrong: The suggestions that the labels call wrong.
        placed: The suggestions on traces with marked spans.
        on_marked: Those of them that overlap a marked span.
        by_chance: The expected number of them if suggestions were at random positions.
        marked: The labelled failures that the rules can find.
        recalled: The labelled failures with a suggestion.
    """

    suggestions: int = 0
    right: int = 0
    wrong: int = 0
    placed: int = 0
    on_marked: int = 0
    by_chance: float = 0.0
    marked: int = 0
    recalled: int = 0

    def add(self, case: RuleCase, rules: Sequence[Rule]) -> list[tuple[Rule, range, bool | None]]:
        """Count the suggestions on a trace.

        Args:
            case: The trace.
            rules: The rules whose suggestions count.

        Returns:
            The rule and the spans of each suggestion, and whether it is right.
        """
        truth = case.truth
        suggested = [
            (rule, span_range(case.trace, finding.first, finding.last))
            for rule, finding in case.findings
            if rule in rules
        ]
        verdicts = [(rule, spans, truth.right(rule, spans)) for rule, spans in suggested]
        if truth.whole:
            # The labels have one verdict for each mode.
            verdicts = list({verdict[0].mode: verdict for verdict in verdicts}.values())
            modes = truth.modes & {rule.mode for rule in rules}
            self.marked += len(modes)
            self.recalled += len(modes & {rule.mode for rule, _ in suggested})
        self.suggestions += len(verdicts)
        self.right += sum(right is True for *_, right in verdicts)
        self.wrong += sum(right is False for *_, right in verdicts)
        if truth.marked:
            ranges = [spans for _, spans in suggested]
            self.placed += len(ranges)
            self.on_marked += sum(overlaps(spans, truth.marked) for spans in ranges)
            self.by_chance += sum(
                _chance_of_overlap(len(spans), truth.marked, len(case.trace)) for spans in ranges
            )
            self.marked += len(truth.marked)
            self.recalled += sum(overlaps(spans, ranges) for spans in truth.marked)
        return verdicts

    def __add__(self, other: Count) -> Count:
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
        }
        return Count(**sums)


def _chance_of_overlap(length: int, marked: Sequence[range], span_count: int) -> float:
    """Return the probability that a random range of spans overlaps a marked one."""
    starts = range(span_count - length + 1)
    return sum(overlaps(range(start, start + length), marked) for start in starts) / len(starts)


Counts = dict[tuple[str, str], dict[str, Count]]
"""The counts by group and half, then by set.

A group is the name of a rule, ``on`` for the default rules, or ``all``. The set ``pooled`` is the
sum over all sets.
"""


def labelled(judged: JudgedTraces, corpus: Path) -> LabelledSets:
    """Return the labelled traces of each set in a corpus.

    Args:
        judged: The traces with their findings, which are read here.
        corpus: The folder of the sets.
    """
    return {
        name: list(read(judged, corpus)) for name, read in SETS.items() if (corpus / name).is_dir()
    }


def on_corpus(labelled: LabelledSets, halves: Sequence[str]) -> tuple[Counts, list[str]]:
    """Count the suggestions on some halves of the sets.

    Args:
        labelled: The labelled sets.
        halves: The halves that count.

    Returns:
        The counts, and a line for every suggestion.
    """
    groups = {rule.name: (rule,) for rule in RULES} | {"on": DEFAULT, "all": RULES}
    counts: Counts = {}
    lines = []
    for name, cases in labelled.items():
        for case in cases:
            if case.half not in halves:
                continue
            for group, rules in groups.items():
                counts_by_set = counts.setdefault((group, case.half), {})
                verdicts = counts_by_set.setdefault(name, Count()).add(case, rules)
                counts_by_set.setdefault("pooled", Count()).add(case, rules)
                if group == "all":
                    lines += [_line(name, case, *verdict) for verdict in verdicts]
    return counts, lines


def _line(name: str, case: RuleCase, rule: Rule, spans: range, right: bool | None) -> str:
    """Return the line of a suggestion with its rationale."""
    verdict = {True: "right", False: "wrong", None: "unknown"}[right]
    why = next(
        finding.rationale
        for other, finding in case.findings
        if other is rule and case.trace.index_of(finding.first or "") == spans.start
    )
    return f"{verdict}: {name} {case.trace.identity.trace_id} {rule.name}: {why}"


def _read_verdicts() -> set[tuple[str, ...]]:
    """Return the set, trace, rule, first and last span of each suggestion that was read as right.

    Spans count from 1.
    """
    columns = ("set", "trace", "rule", "first", "last")
    with READ.open(encoding="utf-8", newline="") as file:
        return {
            tuple(row[column] for column in columns)
            for row in csv.DictReader(file)
            if row["right"] == "yes"
        }


def _read_count(labelled: LabelledSets, rule: Rule, halves: Sequence[str]) -> tuple[int, int]:
    """Return the numbers of suggestions of a rule that were read as right, and of all.

    A suggestion that was not read counts as wrong.
    """
    read_as_right = _read_verdicts()
    right = 0
    made = 0
    for name, cases in labelled.items():
        for case in cases:
            trace_id = case.trace.identity.trace_id
            for finding_rule, finding in case.findings:
                if finding_rule is rule and case.half in halves:
                    spans = span_range(case.trace, finding.first, finding.last)
                    key = (name, trace_id, rule.name, str(spans.start + 1), str(spans.stop))
                    made += 1
                    right += key in read_as_right
    return right, made


class FigureRow(NamedTuple):
    """A row of ``docs/rules.csv``: a share of ``n`` with its interval, or a count alone."""

    subject: str
    figure: str
    hits: int
    n: int | None = None
    low: str = ""
    high: str = ""
    by_chance: str = ""


def _share_row(subject: str, figure: str, hits: int, n: int) -> FigureRow:
    """Return the row of a share with its interval."""
    interval = share(hits, n).interval
    low, high = (f"{end:.3f}" for end in interval) if interval else ("", "")
    return FigureRow(subject, figure, hits, n, low, high)


def _pooled_counts(counts: Counts, halves: Sequence[str]) -> Iterator[tuple[Rule, Count]]:
    """Yield each rule with its counts over all sets and some halves."""
    for rule in RULES:
        count = Count()
        for half in halves:
            count += counts.get((rule.name, half), {}).get("pooled", Count())
        yield rule, count


def _rule_rows(
    counts: Counts, labelled: LabelledSets, halves: Sequence[str]
) -> Iterator[FigureRow]:
    for rule, count in _pooled_counts(counts, halves):
        yield FigureRow(rule.name, "suggestions", count.suggestions)
        if judged := count.right + count.wrong:
            yield _share_row(rule.name, "precision by labels", count.right, judged)
        if count.placed:
            row = _share_row(rule.name, "on a marked step", count.on_marked, count.placed)
            yield row._replace(by_chance=f"{count.by_chance:.1f}")
        right, made = _read_count(labelled, rule, halves)
        if rule.default and made:
            yield _share_row(rule.name, "precision when read", right, made)


def _recall_rows(counts: Counts, halves: Sequence[str]) -> Iterator[FigureRow]:
    for name in SETS:
        for group, rules in (("on", "the default rules"), ("all", "all rules")):
            count = Count()
            for half in halves:
                count += counts.get((group, half), {}).get(name, Count())
            if count.marked:
                yield _share_row(name, f"recall of {rules}", count.recalled, count.marked)
            if count.suggestions and group == "all":
                yield FigureRow(name, "suggestions of all rules", count.suggestions)


def _sample_rows(judged: JudgedTraces) -> Iterator[FigureRow]:
    for rules, rules_text in ((DEFAULT, "default rules"), (RULES, "all rules")):
        tallies = on_samples(judged, rules)[0]
        for name, figure in (
            ("mechanical", "countable plants found"),
            ("all plants", "all plants found"),
            ("clean", "hard negatives hit"),
        ):
            tally = tallies[name]
            yield FigureRow("samples", f"{figure}, {rules_text}", tally.hit, tally.total)


def _alarm_rows(labelled: LabelledSets) -> Iterator[FigureRow]:
    """Yield the numbers of successful runs with a suggestion, which may be right."""
    for name, cases in labelled.items():
        successful = [case for case in cases if case.trace.meta.outcome is Outcome.SUCCEEDED]
        if successful:
            runs = len(successful)
            on = sum(any(rule.default for rule, _ in case.findings) for case in successful)
            every = sum(bool(case.findings) for case in successful)
            yield FigureRow(name, "successful runs with a default suggestion", on, runs)
            yield FigureRow(name, "successful runs with any suggestion", every, runs)


def figure_rows(
    judged: JudgedTraces, labelled: LabelledSets, halves: Sequence[str]
) -> Iterator[FigureRow]:
    """Yield all figures.

    Args:
        judged: The sample traces with their findings.
        labelled: The labelled sets.
        halves: The halves that count.
    """
    counts = on_corpus(labelled, halves)[0]
    yield from _rule_rows(counts, labelled, halves)
    yield from _sample_rows(judged)
    yield from _recall_rows(counts, halves)
    yield from _alarm_rows(labelled)


def rule_table(labelled: LabelledSets, halves: Sequence[str]) -> str:
    """Return the page's table of the rules in Markdown.

    Args:
        labelled: The labelled sets.
        halves: The halves that count.
    """
    codes = {mode.slug: mode.code for mode in load_mast().modes}
    lines = ["| rule | mode | what it sees | suggestions | right |", "|---|---|---|---:|---|"]
    for rule, count in _pooled_counts(on_corpus(labelled, halves)[0], halves):
        right = count.right
        judged = count.right + count.wrong
        if rule.default:
            right, judged = _read_count(labelled, rule, halves)
        name = f"`{rule.name}`{' (default)' if rule.default else ''}"
        cells = (
            name,
            codes[rule.mode],
            rule.sees,
            str(count.suggestions),
            f"{right} of {judged}" if judged else "—",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print or write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--half",
        choices=(*HALVES, "both"),
        default="seen",
        help="the half of the corpus; 'unseen' is for the final figures only",
    )
    parser.add_argument(
        "--misses", action="store_true", help="print wrong results on the seen half"
    )
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="the folder of the corpus")
    parser.add_argument(
        "--write", action="store_true", help="write docs/lint.md and docs/rules.csv"
    )
    options = parser.parse_args(arguments)
    if options.write and not options.corpus.is_dir():
        parser.error(f"--write: no corpus in {options.corpus}, and the page would lose its figures")
    judged = JudgedTraces()
    cases = labelled(judged, options.corpus)
    halves = HALVES if options.half == "both" else (options.half,)
    figures = csv_text(FigureRow._fields, figure_rows(judged, cases, halves))
    if options.write:
        page = with_table(PAGE, "rules figures", rule_table(cases, halves))
        PAGE.write_text(page, "utf-8")
        FIGURES.write_text(figures, "utf-8")
        return
    print(figures, end="")
    if options.misses:
        print(*on_samples(judged, RULES)[1], sep="\n")
        print(*on_corpus(cases, ("seen",))[1], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
