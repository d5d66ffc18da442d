"""Print how well the rules judge does: on what was planted, on hard negatives, and against people.

    python scripts/rules_figures.py [--json] [--misses] [--corpus FOLDER …]

The plants and negatives are those of ``sample_traces``; a plant is found, and a negative hit, where
a suggestion of the same mode overlaps its spans. The people are those of the MAST study: trace ×
mode, their majority against whether the rules suggest the mode at all. What no rule looks at is
left out there; the plants that no rule could see are counted with and without. With several
folders the people's records of all of them are counted together.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mast_tui.figures.intervals import share
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Finding
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLES: Final = ROOT / "sample_traces"
CORPUS: Final = ROOT.parent / "shared" / "corpus"


@dataclass(frozen=True, slots=True)
class Row:
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
class Tally:
    """How many of something there are, and how many were suggested, per mode."""

    total: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)

    def add(self, code: str, hit: bool) -> None:
        self.total[code] += 1
        self.hit[code] += hit

    def as_json(self) -> dict[str, object]:
        modes = {
            code: {"n": self.total[code], "hit": self.hit[code]} for code in sorted(self.total)
        }
        return {"n": self.total.total(), "hit": self.hit.total(), "modes": modes}


class Judged:
    """Traces with what the rules say about them, each read and judged once."""

    def __init__(self) -> None:
        self._judge = RulesJudge()
        self._files: dict[Path, list[tuple[Trace, tuple[Finding, ...]]]] = {}

    def of(self, path: Path) -> list[tuple[Trace, tuple[Finding, ...]]]:
        """The traces of a file in their order, with their findings."""
        if path not in self._files:
            judged = []
            for trace in read_file(path, True).traces:
                read_fully(trace)
                judged.append((trace, self._judge.judge(trace).findings))
            self._files[path] = judged
        return self._files[path]

    def hits(self, row: Row) -> list[Finding]:
        """The findings of the row's mode that overlap its spans."""
        trace, findings = self.of(SAMPLES / row.file)[row.record]
        first, last = _range(trace, row.first, row.last)
        hits = []
        for finding in findings:
            begin, end = _range(trace, finding.first, finding.last)
            if finding.mode == row.slug and begin <= last and first <= end:
                hits.append(finding)
        return hits


def _range(trace: Trace, first: str, last: str) -> tuple[int, int]:
    begin, end = trace.index_of(first), trace.index_of(last)
    if begin is None or end is None:
        raise SystemExit(f"{trace.path}: no span {first!r} or {last!r}")
    return begin, end


def rows(name: str) -> Iterator[Row]:
    """The rows of a file beside the samples."""
    for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        yield Row(
            file=values["trace"],
            record=values["record"] or 0,
            code=values["mode"],
            slug=values["slug"],
            first=values["first"],
            last=values["last"],
            mechanical=values.get("mechanical", False),
            why=values["why"],
        )


def on_samples(judged: Judged) -> tuple[dict[str, Tally], list[str]]:
    """The tallies on plants and negatives, and the lines that tell what went wrong."""
    tallies = {name: Tally() for name in ("mechanical", "all plants", "clean", "clean looked at")}
    looked_at = RulesJudge().looks_at
    wrong = []
    for row in rows("planted.jsonl"):
        found = bool(judged.hits(row))
        tallies["all plants"].add(row.code, found)
        if row.mechanical:
            tallies["mechanical"].add(row.code, found)
            if not found:
                wrong.append(f"missed {row.code} in {row.file}, {row.first}: {row.why}")
    for row in rows("clean.jsonl"):
        hits = judged.hits(row)
        tallies["clean"].add(row.code, bool(hits))
        if row.slug in looked_at:
            tallies["clean looked at"].add(row.code, bool(hits))
        wrong += [f"hit clean {row.code} in {row.file}: {hit.rationale}" for hit in hits]
    return tallies, wrong


@dataclass(slots=True)
class People:
    """How often people and rules see each mode, and what the people's labels are worth.

    ``table`` is by code: both, people only, rules only, neither. ``blocks`` are the labels of whole
    records, each once: where there are fewer than records, some were copied. ``split`` counts the
    answers (mode of a record) on which the people differ.
    """

    table: dict[str, Counter[str]]
    records: int = 0
    blocks: set[str] = field(default_factory=set)
    answers: int = 0
    split: int = 0

    def count(self, people: int, rules: int) -> int:
        """How often both, one or neither of them (1 or 0) see a mode."""
        return sum(cells[f"people {people} rules {rules}"] for cells in self.table.values())

    def as_json(self) -> dict[str, object]:
        both, people, rules = self.count(1, 1), self.count(1, 0), self.count(0, 1)
        return {
            "records": self.records,
            "distinct_blocks": len(self.blocks),
            "answers": self.answers,
            "answers_that_differ": self.split,
            "precision": share(both, both + rules).to_json(),
            "recall": share(both, both + people).to_json(),
        }


def against_people(judged: Judged, corpora: Iterable[Path]) -> People:
    """Per mode how often people (their majority) and rules see it, over all corpora."""
    names = _names_in_older_schemes()
    mast = load_mast()
    looked_at = RulesJudge().looks_at
    found = People({mode.code: Counter() for mode in mast.modes if mode.slug in looked_at})
    for record, findings in _labelled_records(judged, corpora):
        suggested = {finding.mode for finding in findings}
        votes = record["hf_annotations"]
        people = _majority(votes, names)
        found.records += 1
        found.blocks.add(json.dumps(votes, sort_keys=True))
        found.answers += len(votes)
        found.split += sum(len(set(one.values())) > 1 for one in votes.values())
        for slug in looked_at:
            if slug in people:
                cell = f"people {people[slug]:d} rules {slug in suggested:d}"
                found.table[mast.mode(slug).code][cell] += 1
    return found


def _labelled_records(
    judged: Judged, corpora: Iterable[Path]
) -> Iterator[tuple[Any, tuple[Finding, ...]]]:
    """The people's records of all corpora, each with what the rules find in its trace."""
    for corpus in corpora:
        findings: dict[str, tuple[Finding, ...]] = {}
        for path in sorted((corpus / "mast-human").glob("iaa_*.json")):
            records = json.loads(path.read_text(encoding="utf-8"))
            for trace, found in judged.of(path):
                findings[f"hf_{records[trace.record or 0]['index']}"] = found
        for path in sorted((corpus / "mast-human").glob("annotations_*.json")):
            for record in json.loads(path.read_text(encoding="utf-8")):
                yield record, findings[record["trace_id"]]


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


def _print_tally(name: str, tally: Tally, codes: Iterable[str]) -> None:
    n, hit = tally.total.total(), tally.hit.total()
    print(f"{name}: {hit} of {n} ({100 * hit / n:.0f} %)")
    for code in codes:
        if tally.total[code]:
            print(f"  {code}  {tally.hit[code]:3d} of {tally.total[code]:3d}")


def _print_people(people: People) -> None:
    table = people.table
    print(
        f"against the majority of three people on {people.records} records, trace × mode "
        "(both, people only, rules only, none)"
    )
    total: Counter[str] = Counter()
    for code, cells in [*table.items(), ("all", total)]:
        counts = [cells[f"people {p} rules {r}"] for p, r in ((1, 1), (1, 0), (0, 1), (0, 0))]
        print(f"  {code:4}" + "".join(f"{count:5d}" for count in counts))
        total.update(cells)
    both = people.count(1, 1)
    for name, missed in (("precision", people.count(0, 1)), ("recall", people.count(1, 0))):
        figure = share(both, both + missed)
        value = "none" if figure.value is None else f"{figure.value:.2f}"
        ends = "" if figure.ci is None else f" [{figure.ci[0]:.2f}, {figure.ci[1]:.2f}]"
        print(f"  {name} {value}{ends} ({both} of {both + missed})")
    print(
        f"  the people's labels: {len(people.blocks)} distinct blocks on {people.records} records; "
        f"the people differ in {people.split} of {people.answers} answers"
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--misses", action="store_true", help="name what was missed and hit")
    parser.add_argument(
        "--corpus", type=Path, nargs="+", default=[CORPUS], help="where the corpus lies, or several"
    )
    options = parser.parse_args(arguments)
    judged = Judged()
    tallies, wrong = on_samples(judged)
    corpora = [one for one in options.corpus if (one / "mast-human").is_dir()]
    people = against_people(judged, corpora) if corpora else None
    if options.json:
        document: dict[str, object] = {name: tally.as_json() for name, tally in tallies.items()}
        document["people"] = None if people is None else people.table
        document["against_people"] = None if people is None else people.as_json()
        print(json.dumps(document, indent=2))
        return
    codes = [mode.code for mode in load_mast().modes]
    _print_tally("plants that a rule could see, found", tallies["mechanical"], codes)
    _print_tally(
        "all plants, with those that no rule could see, found", tallies["all plants"], codes
    )
    _print_tally("hard negatives, hit", tallies["clean"], ())
    _print_tally(
        "hard negatives of modes that a rule looks at, hit", tallies["clean looked at"], codes
    )
    if people is None:
        print("no corpus, so no comparison with people")
    else:
        _print_people(people)
    if options.misses:
        print(*wrong, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
