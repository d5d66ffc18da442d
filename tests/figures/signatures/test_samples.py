"""Onsets, cascades and places in the sample traces, beside the planted failures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest

from mast_tui.cli.report import ReportRequest, compute_report, signature_input
from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.csv_labels import read_csv_long
from mast_tui.figures.signatures.groups import SHAPES, trace_shapes
from mast_tui.figures.signatures.model import Rules, SignatureInput
from mast_tui.figures.signatures.onset import chains
from mast_tui.figures.signatures.onset import onsets as onsets_of
from mast_tui.reports.signature_document import signature_document
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, Workspace

LISTS = ("planted.jsonl", "clean.jsonl", "workspace.jsonl")


class Planted(NamedTuple):
    """A planted failure, with the indices of its first and last span."""

    mode: str
    first: int
    last: int
    decisive: bool


class Sample(NamedTuple):
    """The sample traces, the failures planted in each, and a workspace with both."""

    workspace: Workspace
    traces: dict[str, Trace]
    planted: dict[str, list[Planted]]

    def failed(self) -> Iterator[tuple[Trace, list[Planted]]]:
        for trace_id, trace in self.traces.items():
            if trace.meta.outcome == "failed":
                yield trace, self.planted[trace_id]


def onsets(planted: list[Planted]) -> dict[str, int]:
    """Return the first span of each mode."""
    first: dict[str, int] = {}
    for failure in planted:
        first[failure.mode] = min(failure.first, first.get(failure.mode, failure.first))
    return first


def chain(planted: list[Planted]) -> tuple[tuple[str, ...], ...]:
    """Return the modes by onset, those of one onset by their codes."""
    first = onsets(planted)
    return tuple(
        tuple(sorted(mode for mode, span in first.items() if span == onset))
        for onset in sorted(set(first.values()))
    )


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """Import the planted failures of all sample traces into a workspace."""
    folder: Path = tmp_path_factory.mktemp("samples")
    workspace = Workspace.open(folder / "workspace.db")
    by_name: dict[tuple[str, int | None], Trace] = {}
    for path in sorted(samples_folder().glob("*.json*")):
        for trace in () if path.name in LISTS else read_file(path, named=True).traces:
            read_fully(trace)
            workspace.register_trace(TraceRecord.from_trace(trace))
            by_name[path.name, trace.record] = trace
    planted: dict[str, list[Planted]] = {trace.identity.trace_id: [] for trace in by_name.values()}
    rows = ["trace_id,annotator,mode,value,span_first,span_last,severity"]
    for line in (samples_folder() / "planted.jsonl").read_text("utf-8").splitlines():
        failure: dict[str, Any] = json.loads(line)
        trace = by_name[failure["trace"], failure["record"]]
        first = trace.index_of(failure["first"])
        last = trace.index_of(failure["last"])
        assert first is not None
        assert last is not None
        trace_id = trace.identity.trace_id
        severity = "fatal" if failure["decisive"] else "benign"
        planted[trace_id].append(Planted(failure["mode"], first, last, failure["decisive"]))
        keys = f"{failure['first']},{failure['last']}"
        rows.append(f"{trace_id},planter,{failure['mode']},present,{keys},{severity}")
    for trace_id, failures in planted.items():
        absent_codes = {mode.code for mode in load_mast().modes} - {
            failure.mode for failure in failures
        }
        rows += [f"{trace_id},planter,{mode},absent,,," for mode in sorted(absent_codes)]
        rows.append(f"{trace_id},planter,,finished,,,")
    (folder / "planted.csv").write_text("\n".join(rows) + "\n", "utf-8")
    incoming = read_csv_long(
        [folder / "planted.csv"], taxonomy=load_mast(), find_taxonomy=lambda _ref: None
    )
    assert not incoming.problems
    apply_incoming(incoming, workspace, source="csv-long")
    yield Sample(workspace, {trace.identity.trace_id: trace for trace in by_name.values()}, planted)
    workspace.close()


@pytest.fixture(scope="module")
def group(sample: Sample) -> Any:
    """The figures of all sample traces in one group."""
    request = ReportRequest(by="all")
    signatures = signature_input(sample.workspace, load_mast(), request)
    report = compute_report(sample.workspace, load_mast(), signatures, request)
    return signature_document(report)["groups"]["all"]


@pytest.fixture(scope="module")
def signatures(sample: Sample) -> SignatureInput:
    return signature_input(sample.workspace, load_mast(), ReportRequest())


@pytest.mark.slow
def test_onsets_of_every_trace_are_the_planted_ones(
    sample: Sample, signatures: SignatureInput
) -> None:
    assert set(signatures.traces) == sample.traces.keys()
    codes = [mode.code for mode in signatures.modes]
    marked = onsets_of(signatures)
    chain_of = chains(marked, codes)
    first: dict[str, dict[str, int]] = {trace: {} for trace in signatures.traces}
    for row, mode, span in zip(marked.trace, marked.mode, marked.first, strict=True):
        first[signatures.traces[row]][codes[mode]] = span
    for row, trace_id in enumerate(signatures.traces):
        planted = sample.planted[trace_id]
        assert chain_of.get(row, ()) == chain(planted)
        assert first[trace_id] == onsets(planted)
        assert signatures.spans[row] == len(sample.traces[trace_id])


@pytest.mark.slow
def test_cascades_are_traces_with_many_planted_failures(
    sample: Sample, signatures: SignatureInput, group: Any
) -> None:
    numbers = {trace: len(onsets(planted)) for trace, planted in sample.planted.items()}
    shapes = trace_shapes(signatures.verdicts, Rules())
    for trace_id, shape in zip(signatures.traces, shapes, strict=True):
        number = numbers[trace_id]
        expected = "cascading" if number >= 4 else "isolated" if number else "none"
        if number == 3:
            expected = "between"
        assert SHAPES[shape] == expected
    failed = [numbers[trace.identity.trace_id] for trace, _ in sample.failed()]
    assert group["shapes"]["cascading"] == sum(number >= 4 for number in failed)
    assert group["shapes"]["isolated"] == sum(number <= 2 for number in failed)
    assert group["modes_per_failed_trace"]["value"] == pytest.approx(sum(failed) / len(failed))


def test_order_of_pairs_is_counted_over_failed_traces(sample: Sample, group: Any) -> None:
    expected: dict[tuple[str, str], list[int]] = {}
    for _, planted in sample.failed():
        first = onsets(planted)
        for a, b in combinations(sorted(first), 2):
            counts = expected.setdefault((a, b), [0, 0, 0])
            counts[0 if first[a] < first[b] else 1 if first[a] > first[b] else 2] += 1
    counted = {
        tuple(pair["modes"]): [pair["before"], pair["after"], pair["together"]]
        for pair in group["places"]["failed"]["order"]
    }
    assert counted == expected


def test_first_modes_transitions_and_chains_are_counted_over_failed_traces(
    sample: Sample, group: Any
) -> None:
    firsts: Counter[str] = Counter()
    steps: Counter[tuple[str, str]] = Counter()
    chain_counts: Counter[Any] = Counter()
    for _, planted in sample.failed():
        modes = chain(planted)
        chain_counts[modes] += 1
        firsts.update(modes[0])
        steps.update((a, b) for step, following in pairwise(modes) for a in step for b in following)
    places = group["places"]["failed"]
    assert {code: row["count"] for code, row in places["first_mode"].items()} == firsts
    assert {
        tuple(transition["modes"]): transition["count"] for transition in places["transitions"]
    } == steps
    chains = {tuple(map(tuple, row["steps"])): row["count"] for row in places["chains"]}
    assert chains == chain_counts


def test_places_of_first_failures_and_spans_after_fatal_ones(sample: Sample, group: Any) -> None:
    places = group["places"]["failed"]
    shares = [
        min(failure.first for failure in planted) / len(trace) for trace, planted in sample.failed()
    ]
    assert places["first_failure"]["n"] == len(shares)
    assert places["first_failure"]["median"] == pytest.approx(median(shares))
    assert places["first_failure"]["bins"] == [
        sum(int(share * 10) == tenth for share in shares) for tenth in range(10)
    ]
    spans_after = []
    for trace, planted in sample.failed():
        decisive = [failure for failure in planted if failure.decisive]
        if decisive:
            fatal = min(decisive, key=lambda failure: (failure.first, failure.last))
            spans_after.append(len(trace) - 1 - fatal.last)
    (by_labels,) = (failure for failure in places["after_fatal"] if failure["by"] == "labels")
    assert by_labels["spans_after"]["n"] == len(spans_after)
    assert by_labels["spans_after"]["median"] == median(spans_after)


def test_report_without_files_says_that_positions_are_unknown(sample: Sample) -> None:
    request = ReportRequest(by="all", without_places=True)
    signatures = signature_input(sample.workspace, load_mast(), request)
    report = signature_document(compute_report(sample.workspace, load_mast(), signatures, request))
    assert report["groups"]["all"]["places"] is None
    assert report["traces"]["labels_not_found"] == sum(map(len, sample.planted.values()))
    assert any("unknown position" in sentence for sentence in report["cannot_say"])
