"""Print how well each rule of the rules judge does, set by set.

    python scripts/rules_figures.py [--half seen|unseen|both] [--misses] [--write]

On the ``sample_traces`` the rules were made: there a plant is found, and a negative hit, where a
suggestion of the same mode overlaps its spans, and the figures are figures of fit. The labelled
sets of the corpus are split once, by task and seed, into a half that is looked at while rules are
mended and a half that never is. What counts as right on each set stands with the function that
reads it, and in docs/lint.md. No set can tell of the rules that are on by default: what those
suggest was read, and ``rules_read.csv`` says of each what it is.

``--write`` puts the table of rules between the comments in docs/lint.md, and all figures into
docs/rules.csv.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
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

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLES: Final = ROOT / "sample_traces"
CORPUS: Final = ROOT.parent / "shared" / "corpus"
READ: Final = Path(__file__).with_name("rules_read.csv")
PAGE: Final = ROOT / "docs" / "lint.md"
FIGURES: Final = ROOT / "docs" / "rules.csv"
BEGIN: Final = "<!-- rules figures -->"
END: Final = "<!-- /rules figures -->"
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
    """How many of something there are, and how many were suggested, per mode."""

    total: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)

    def add(self, code: str, hit: bool) -> None:
        self.total[code] += 1
        self.hit[code] += hit


Found = list[tuple[Rule, Finding]]


class RuleFindings:
    """Traces with what all rules say about them, each read and judged once."""

    def __init__(self) -> None:
        self._judge = RulesJudge(RULES)
        self._files: dict[Path, list[tuple[Trace, Found]]] = {}

    def of(self, path: Path) -> list[tuple[Trace, Found]]:
        """The traces of a file in their order, with what each rule finds."""
        if path not in self._files:
            judged = []
            for trace in read_file(path, True).traces:
                read_fully(trace)
                judged.append((trace, self._judge.findings(trace)))
            self._files[path] = judged
        return self._files[path]

    def hits(self, row: PlantedFailure, rules: Sequence[Rule]) -> list[Finding]:
        """The findings of the row's mode, by these rules, that overlap its spans."""
        trace, found = self.of(SAMPLES / row.file)[row.record]
        first, last = place_of(trace, row.first, row.last)
        hits = []
        for rule, finding in found:
            begin, end = place_of(trace, finding.first, finding.last)
            if rule in rules and rule.mode == row.slug and begin <= last and first <= end:
                hits.append(finding)
        return hits


def place_of(trace: Trace, first: str | None, last: str | None) -> tuple[int, int]:
    """The indices of two spans."""
    begin, end = trace.index_of(first or ""), trace.index_of(last or "")
    if begin is None or end is None:
        raise SystemExit(f"{trace.path}: no span {first!r} or {last!r}")
    return begin, end


def rows(name: str) -> Iterator[PlantedFailure]:
    """The rows of a file beside the samples."""
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
    judged: RuleFindings, rules: Sequence[Rule]
) -> tuple[dict[str, RuleTally], list[str]]:
    """The tallies on plants and negatives, and the lines that tell what went wrong."""
    tallies = {
        name: RuleTally() for name in ("mechanical", "all plants", "clean", "clean looked at")
    }
    looked_at = {rule.mode for rule in rules}
    wrong = []
    for row in rows("planted.jsonl"):
        found = bool(judged.hits(row, rules))
        tallies["all plants"].add(row.code, found)
        if row.mechanical:
            tallies["mechanical"].add(row.code, found)
            if not found:
                wrong.append(f"missed {row.code} in {row.file}, {row.first}: {row.why}")
    for row in rows("clean.jsonl"):
        hits = judged.hits(row, rules)
        tallies["clean"].add(row.code, bool(hits))
        if row.slug in looked_at:
            tallies["clean looked at"].add(row.code, bool(hits))
        wrong += [f"hit clean {row.code} in {row.file}: {hit.rationale}" for hit in hits]
    return tallies, wrong


@dataclass(frozen=True, slots=True)
class Truth:
    """What a set says of one trace.

    ``places`` are the spans (indices) that it marks, each of which can be missed. ``right`` tells
    of a suggestion whether it is right, or None where the set cannot tell. ``whole`` says that the
    set labels traces, not places: then a rule's suggestions of a trace count as one, and ``modes``
    are those that the trace shows.
    """

    right: Callable[[Rule, range], bool | None]
    places: tuple[range, ...] = ()
    whole: bool = False
    modes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RuleCase:
    """A labelled trace of a set, with what the rules find and the task by which it is split."""

    task: str
    trace: Trace
    found: Found
    truth: Truth

    @property
    def half(self) -> str:
        """In which half it is; runs of one task are in the same, also across sets."""
        digest = hashlib.sha256(f"{SEED}:{self.task}".encode()).digest()
        return HALVES[digest[0] % 2]


Labelled = Mapping[str, Sequence[RuleCase]]
"""By the name of a set its traces."""


def touches(place: range, places: Iterable[range]) -> bool:
    """Whether a range of spans overlaps one of others."""
    return any(place.start < other.stop and other.start < place.stop for other in places)


def of_mast_human(judged: RuleFindings, corpus: Path) -> Iterator[RuleCase]:
    """Three people on whole traces; the majority is the truth.

    A suggestion is right where they call its mode present, wrong where absent. Only modes count
    that had a nameable ancestor in the rounds' taxonomies.
    """
    names = _names_in_older_schemes()
    for record, trace, found in _labelled_records(judged, corpus):
        people = _majority(record["hf_annotations"], names)

        def right(rule: Rule, _: range, people: Mapping[str, bool] = people) -> bool | None:
            return people.get(rule.mode)

        modes = frozenset(mode for mode, present in people.items() if present)
        truth = Truth(right, whole=True, modes=modes)
        yield RuleCase(trace.identity.content_hash, trace, found, truth)


def _labelled_records(judged: RuleFindings, corpus: Path) -> Iterator[tuple[Any, Trace, Found]]:
    """The people's records, each with its trace and what the rules find there."""
    traces: dict[str, tuple[Trace, Found]] = {}
    for path in sorted((corpus / "mast-human").glob("iaa_*.json")):
        records = json.loads(path.read_text(encoding="utf-8"))
        for trace, found in judged.of(path):
            traces[f"hf_{records[trace.record or 0]['index']}"] = trace, found
    for path in sorted((corpus / "mast-human").glob("annotations_*.json")):
        for record in json.loads(path.read_text(encoding="utf-8")):
            yield record, *traces[record["trace_id"]]


def _names_in_older_schemes() -> dict[str, str]:
    """Slug by the name that a mode had in the study's first two rounds."""
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


def of_agentrx(judged: RuleFindings, corpus: Path) -> Iterator[RuleCase]:
    """Every failed step of a run, in categories that are the mode of no rule."""
    yield from _only_marked(judged, read_agentrx([corpus / "agentrx"]))


def of_who_and_when(judged: RuleFindings, corpus: Path) -> Iterator[RuleCase]:
    """The one decisive step of a failed run: what else went wrong nobody has marked."""
    yield from _only_marked(judged, read_who_and_when([corpus / "who-and-when"]))


def _only_marked(judged: RuleFindings, read: Incoming) -> Iterator[RuleCase]:
    """Yield the traces of a set in which a step without a mark says nothing."""
    for task, trace, found, places in _marked(judged, read):
        yield RuleCase(task, trace, found, Truth(lambda rule, place: None, tuple(places)))


def _marked(
    judged: RuleFindings, read: Incoming
) -> Iterator[tuple[str, Trace, Found, list[range]]]:
    """The traces that an importer has labels of, with the places that these mark."""
    files = {record.trace_id: Path(record.path) for record in read.traces if record.path}
    for work in read.work:
        for trace, found in judged.of(files[work.trace_id]):
            if trace.identity.trace_id == work.trace_id:
                places = []
                for label in work.labels.values():
                    first, last = place_of(trace, label.target.first, label.target.last)
                    places.append(range(first, last + 1))
                yield _task_of(trace), trace, found, places


def _task_of(trace: Trace) -> str:
    """The benchmark's id of a trace's task."""
    document = json.loads(trace.path.read_text("utf-8"))
    for name in ("question_ID", "trajectory_id"):
        if isinstance(document, dict) and name in document:
            return str(document[name])
    return trace.path.stem if trace.record is None else f"{trace.path.stem}:{trace.record}"


def of_tau_bench(judged: RuleFindings, corpus: Path) -> Iterator[RuleCase]:
    """Whether a run reached its goal."""
    for path in sorted((corpus / "tau-bench").glob("*.json")):
        yield from _with_outcomes(judged, path, "tau")


def of_inspect(judged: RuleFindings, corpus: Path) -> Iterator[RuleCase]:
    """Whether a run got its points."""
    yield from _with_outcomes(judged, corpus / "inspect" / "docent_log.eval", "docent")


def _with_outcomes(judged: RuleFindings, path: Path, name: str) -> Iterator[RuleCase]:
    """The runs of a file that end well or not.

    Two rules say that they did not (3.1 by the last words, 3.3 by the last check): they are right
    where the run failed, wrong where it succeeded. Of the others an outcome says nothing.
    """
    ends = {endings.PREMATURE_TERMINATION, endings.INCORRECT_VERIFICATION}
    for trace, found in judged.of(path):
        failed = trace.meta.outcome is Outcome.FAILED

        def right(rule: Rule, _: range, failed: bool = failed) -> bool | None:
            return failed if rule.mode in ends else None

        yield RuleCase(f"{name}:{trace.record}", trace, found, Truth(right))


def of_agentrx_recorded(judged: RuleFindings, corpus: Path) -> Iterator[RuleCase]:
    """Simulated runs with one planted fault, and nothing else wrong.

    A suggestion is right where it covers the planted step, else wrong.
    """
    folder = corpus / "agentrx-recorded"
    runs = sorted((folder / "runs" / "agentrx").glob("*/*/trajectory_ir.json"))
    for task, trace, found, places in _marked(
        judged, read_agentrx([folder / "ground_truth", *runs])
    ):

        def right(_: Rule, place: range, places: Sequence[range] = places) -> bool | None:
            return touches(place, places)

        yield RuleCase(task, trace, found, Truth(right, tuple(places)))


SETS: Final = {
    "mast-human": of_mast_human,
    "agentrx": of_agentrx,
    "agentrx-recorded": of_agentrx_recorded,
    "who-and-when": of_who_and_when,
    "tau-bench": of_tau_bench,
    "inspect": of_inspect,
}


@dataclass(slots=True)
class Count:
    """What came of a rule on a half of a set.

    ``traces`` are those with a suggestion. Of the suggestions ``right`` and ``wrong`` are told by
    the set. ``touched`` of ``placed`` lie on a marked step, ``chance`` is how many would if they
    were put anywhere. ``met`` of ``marked`` is what it was to find and has.
    """

    said: int = 0
    right: int = 0
    wrong: int = 0
    placed: int = 0
    touched: int = 0
    chance: float = 0.0
    met: int = 0
    marked: int = 0

    def add(self, case: RuleCase, rules: Sequence[Rule]) -> list[tuple[Rule, range, bool | None]]:
        """Count a trace, and give what was judged."""
        truth = case.truth
        mine = []
        for rule, finding in case.found:
            if rule in rules:
                first, last = place_of(case.trace, finding.first, finding.last)
                mine.append((rule, range(first, last + 1)))
        told = [(rule, place, truth.right(rule, place)) for rule, place in mine]
        if truth.whole:
            # One word for each rule's mode: the labels say no more.
            told = list({one[0].mode: one for one in told}.values())
            wanted = truth.modes & {rule.mode for rule in rules}
            self.marked += len(wanted)
            self.met += len(wanted & {rule.mode for rule, _ in mine})
        self.said += len(told)
        self.right += sum(right is True for *_, right in told)
        self.wrong += sum(right is False for *_, right in told)
        if truth.places:
            self.placed += len(mine)
            self.touched += sum(touches(place, truth.places) for _, place in mine)
            self.chance += sum(_chance(place, truth.places, len(case.trace)) for _, place in mine)
            self.marked += len(truth.places)
            self.met += sum(touches(place, [one for _, one in mine]) for place in truth.places)
        return told

    def __add__(self, other: Count) -> Count:
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)
        }
        return Count(**sums)


def _chance(place: range, places: Sequence[range], spans: int) -> float:
    """How often a range of this length, put anywhere in a trace, lies on one of the places."""
    starts = range(spans - len(place) + 1)
    return sum(touches(range(at, at + len(place)), places) for at in starts) / len(starts)


Counts = dict[tuple[str, str], dict[str, Count]]
"""By rule's name (or ``on``, ``all``) and half, then by set (or ``pooled``)."""


def labelled(judged: RuleFindings, corpus: Path) -> Labelled:
    """The labelled traces of each set that is there."""
    return {
        name: list(read(judged, corpus)) for name, read in SETS.items() if (corpus / name).is_dir()
    }


def on_corpus(labelled: Labelled, halves: Sequence[str]) -> tuple[Counts, list[str]]:
    """What comes of each rule on these halves of each set, and a line for every suggestion."""
    groups = {rule.name: (rule,) for rule in RULES} | {"on": DEFAULT, "all": RULES}
    counts: Counts = {}
    lines = []
    for name, cases in labelled.items():
        for case in cases:
            if case.half not in halves:
                continue
            for group, rules in groups.items():
                of_half = counts.setdefault((group, case.half), {})
                told = of_half.setdefault(name, Count()).add(case, rules)
                of_half.setdefault("pooled", Count()).add(case, rules)
                if group == "all":
                    lines += [_line(name, case, rule, place, right) for rule, place, right in told]
    return counts, lines


def _line(name: str, case: RuleCase, rule: Rule, place: range, right: bool | None) -> str:
    word = {True: "right", False: "wrong", None: "untold"}[right]
    why = next(
        finding.rationale
        for one, finding in case.found
        if one is rule and place_of(case.trace, finding.first, finding.last)[0] == place.start
    )
    return f"{word}: {name} {case.trace.identity.trace_id} {rule.name}: {why}"


@dataclass(frozen=True, slots=True)
class Read:
    """A suggestion of a rule that is on, as somebody read it; the spans count from 1."""

    set: str
    trace: str
    rule: str
    first: int
    last: int
    right: bool
    why: str


def read_by_hand() -> list[Read]:
    """All that was read."""
    with READ.open(encoding="utf-8", newline="") as file:
        return [
            Read(
                row["set"],
                row["trace"],
                row["rule"],
                int(row["first"]),
                int(row["last"]),
                row["right"] == "yes",
                row["why"],
            )
            for row in csv.DictReader(file)
        ]


def _read_count(labelled: Labelled, rule: Rule, halves: Sequence[str]) -> tuple[int, int]:
    """Return how many suggestions of a rule were right when read, and how many were read.

    Only suggestions count that the rule still makes. One that was not read counts as wrong.
    """
    verdicts = {
        (one.set, one.trace, one.rule, one.first, one.last): one.right for one in read_by_hand()
    }
    right = 0
    made = 0
    for name, cases in labelled.items():
        for case in cases:
            for found_by, finding in case.found:
                if found_by is not rule or case.half not in halves:
                    continue
                first, last = place_of(case.trace, finding.first, finding.last)
                trace_id = case.trace.identity.trace_id
                made += 1
                right += verdicts.get((name, trace_id, rule.name, first + 1, last + 1), False)
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
    """Return the row of a share with its interval.

    Args:
        subject: The rule or the set.
        figure: The name of the figure.
        hits: The count.
        n: Of how many.
    """
    interval = share(hits, n).interval
    low, high = (f"{end:.3f}" for end in interval) if interval else ("", "")
    return FigureRow(subject, figure, hits, n, low, high)


def _pooled_counts(counts: Counts, halves: Sequence[str]) -> Iterator[tuple[Rule, Count]]:
    """Yield each rule with what it said in all sets.

    Args:
        counts: What was counted, by group and half.
        halves: The halves that count.
    """
    for rule in RULES:
        count = Count()
        for half in halves:
            count += counts.get((rule.name, half), {}).get("pooled", Count())
        yield rule, count


def _rule_rows(counts: Counts, labelled: Labelled, halves: Sequence[str]) -> Iterator[FigureRow]:
    for rule, count in _pooled_counts(counts, halves):
        yield FigureRow(rule.name, "suggestions", count.said)
        if told := count.right + count.wrong:
            yield _share_row(rule.name, "precision by labels", count.right, told)
        if count.placed:
            row = _share_row(rule.name, "on a marked step", count.touched, count.placed)
            yield row._replace(by_chance=f"{count.chance:.1f}")
        right, made = _read_count(labelled, rule, halves)
        if rule.default and made:
            yield _share_row(rule.name, "precision when read", right, made)


def _recall_rows(counts: Counts, halves: Sequence[str]) -> Iterator[FigureRow]:
    for name in SETS:
        for group, words in (("on", "recall of the default rules"), ("all", "recall of all rules")):
            count = Count()
            for half in halves:
                count += counts.get((group, half), {}).get(name, Count())
            if count.marked:
                yield _share_row(name, words, count.met, count.marked)
            if count.said and group == "all":
                yield FigureRow(name, "suggestions of all rules", count.said)


def _sample_rows(judged: RuleFindings) -> Iterator[FigureRow]:
    for rules, words in ((DEFAULT, "default rules"), (RULES, "all rules")):
        tallies = on_samples(judged, rules)[0]
        for name, figure in (
            ("mechanical", "countable plants found"),
            ("all plants", "all plants found"),
            ("clean", "hard negatives hit"),
        ):
            tally = tallies[name]
            yield FigureRow("samples", f"{figure}, {words}", tally.hit.total(), tally.total.total())


def _alarm_rows(labelled: Labelled) -> Iterator[FigureRow]:
    """Yield how many successful runs have a suggestion, which need not be wrong."""
    for name, cases in labelled.items():
        well = [case for case in cases if case.trace.meta.outcome is Outcome.SUCCEEDED]
        if well:
            on = sum(any(rule.default for rule, _ in case.found) for case in well)
            every = sum(bool(case.found) for case in well)
            yield FigureRow(name, "successful runs with a default suggestion", on, len(well))
            yield FigureRow(name, "successful runs with any suggestion", every, len(well))


def figure_rows(
    judged: RuleFindings, labelled: Labelled, halves: Sequence[str]
) -> Iterator[FigureRow]:
    """Yield all figures.

    Args:
        judged: The sample traces with what the rules find.
        labelled: The labelled sets.
        halves: The halves of them that count.
    """
    counts = on_corpus(labelled, halves)[0]
    yield from _rule_rows(counts, labelled, halves)
    yield from _sample_rows(judged)
    yield from _recall_rows(counts, halves)
    yield from _alarm_rows(labelled)


def csv_text(rows: Iterable[FigureRow]) -> str:
    """Return the figures as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FigureRow._fields)
    writer.writerows(rows)
    return text.getvalue()


def rule_table(labelled: Labelled, halves: Sequence[str]) -> str:
    """Return the page's table of the rules in Markdown.

    Args:
        labelled: The labelled sets.
        halves: The halves of them that count.
    """
    codes = {mode.slug: mode.code for mode in load_mast().modes}
    lines = ["| rule | mode | what it sees | suggestions | right |", "|---|---|---|---:|---|"]
    for rule, count in _pooled_counts(on_corpus(labelled, halves)[0], halves):
        right, made = count.right, count.right + count.wrong
        if rule.default:
            right, made = _read_count(labelled, rule, halves)
        name = f"`{rule.name}`{' (default)' if rule.default else ''}"
        share_right = f"{right} of {made}" if made else "—"
        lines.append(
            f"| {name} | {codes[rule.mode]} | {rule.sees} | {count.said} | {share_right} |"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--half",
        choices=(*HALVES, "both"),
        default="seen",
        help="which half of the corpus; 'unseen' is for the end alone",
    )
    parser.add_argument(
        "--misses", action="store_true", help="name what went wrong, on the half that is looked at"
    )
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where the corpus lies")
    parser.add_argument(
        "--write", action="store_true", help="write docs/lint.md and docs/rules.csv"
    )
    options = parser.parse_args(arguments)
    if options.write and not options.corpus.is_dir():
        parser.error(f"--write: no corpus in {options.corpus}, and the page would lose its figures")
    judged = RuleFindings()
    cases = labelled(judged, options.corpus)
    halves = HALVES if options.half == "both" else (options.half,)
    figures = csv_text(figure_rows(judged, cases, halves))
    if options.write:
        page = PAGE.read_text("utf-8")
        before, rest = page.split(BEGIN)
        table = rule_table(cases, halves)
        PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}", "utf-8")
        FIGURES.write_text(figures, "utf-8")
        return
    print(figures, end="")
    if options.misses:
        print(*on_samples(judged, RULES)[1], sep="\n")
        print(*on_corpus(cases, ("seen",))[1], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
