"""The traces behind the figures of failure signatures."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.figures.record import Sources
from mast_tui.figures.signatures.model import ABSENT, PRESENT, ModeInfo, Places, SignatureInput
from mast_tui.figures.signatures.report import signature_report
from mast_tui.reports.model import Estimate, Row
from mast_tui.reports.signatures import group_report
from mast_tui.ui.reports.signature_traces import TraceFilter, chain_text, failing_traces
from mast_tui.ui.reports.signatures import SignatureChoice, Signatures, no_signatures_text
from tests.ui.stage import shown_key

NOT_COUNTED = ("stratified", "helps")
"""Tables whose counts are of fewer traces than those behind their rows."""

CODES = ("1.1", "1.3", "2.6", "3.3")


def made(seed: int, *, outcomes: bool = True) -> Signatures:
    """Some traces in two groups, with verdicts and places at random."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    verdicts = rng.choice([0, PRESENT, ABSENT, 4], size=(n, len(CODES)), p=[0.1, 0.5, 0.3, 0.1])
    spans = np.where(rng.random(n) < 0.2, -1, rng.integers(1, 30, size=n))
    rows, modes = (verdicts == PRESENT).nonzero()
    kept = rng.random(len(rows)) < 0.8
    rows, modes = np.repeat(rows[kept], 2), np.repeat(modes[kept], 2)
    first = (rng.random(len(rows)) * np.maximum(spans[rows], 1)).astype(np.int64)
    given = SignatureInput(
        taxonomy_ref="mast@3",
        modes=tuple(ModeInfo(f"m{code}", code, f"mode {code}", "one") for code in CODES),
        categories=(("one", "One"),),
        by="model",
        labels="gold",
        labels_kind="gold",
        traces=tuple(f"t{i}" for i in range(n)),
        group_names=("a", "b"),
        group=rng.integers(0, 2, size=n),
        outcome=rng.integers(0, 3, size=n).astype(np.int8) * outcomes,
        score=np.full(n, np.nan),
        verdicts=verdicts.astype(np.uint8),
        spans=spans,
        places=Places(rows, modes, first, first, np.zeros(len(rows), dtype=bool)),
    )
    return Signatures(SignatureChoice(), report=signature_report(given, rounds=0), inputs=given)


def says(column: str | None, row: Row) -> int | None:
    """How many traces a cell or a row says that it counts, None where it tells something else."""
    cell = row.cells.get(column or "")
    if isinstance(cell, Estimate):
        return None if cell.value is None or cell.n is None else round(cell.value * cell.n)
    if isinstance(cell, int):
        return cell
    for key in ("traces", "both", "count"):
        count = row.cells.get(key)
        if isinstance(count, int):
            return count
    return None


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=20)
def test_behind_each_figure_stand_as_many_traces_as_it_counts(seed: int, every: bool) -> None:
    found = made(seed)
    assert found.report is not None
    assert found.inputs is not None
    for group in found.groups:
        report = group_report(found.report, group, over_all_traces=every)
        for table in report.tables:
            for row in table.rows:
                cells: dict[str | None, Sources | None] = dict(row.cell_sources.items())
                if row.sources is not None and not row.cell_sources:
                    cells[None] = row.sources
                for column, sources in cells.items():
                    count = says(column, row)
                    if count is not None and not table.id.startswith(NOT_COUNTED):
                        assert sources is not None
                        trace_filter = TraceFilter.for_sources(sources, found.inputs)
                        listed = failing_traces(found.inputs, group, trace_filter)
                        assert listed.total == count


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_each_trace_is_shown_with_its_modes_by_onset_and_the_shapes_are_the_reports(
    seed: int,
) -> None:
    found = made(seed)
    assert found.inputs is not None
    for group in found.groups:
        listed = failing_traces(found.inputs, group, TraceFilter(outcome="failed"))
        shapes = [one.shape for one in listed.traces]
        counted = found.groups[group].values("shape")
        assert {name: shapes.count(name) for name in counted} == counted
        for one in listed.traces:
            placed = [code for step in one.chain for code in step]
            assert len(set(placed)) == len(placed)
            assert set(placed) <= set(one.modes)
            assert all(code in chain_text(one) for code in one.modes)
            assert (one.first is None) == (not placed)


def test_a_trace_is_opened_at_the_mode_that_was_asked_for() -> None:
    found = next(
        found for found in map(made, range(99)) if found.inputs and len(found.inputs.places.trace)
    )
    assert found.inputs is not None
    places = found.inputs.places
    row, mode = int(places.trace[-1]), int(places.mode[-1])
    group = found.inputs.group_names[int(found.inputs.group[row])]
    listed = failing_traces(found.inputs, group, TraceFilter(modes=(CODES[mode],)))
    one = next(one for one in listed.traces if one.trace_id == f"t{row}")
    assert one.opens_at == places.first[(places.trace == row) & (places.mode == mode)].min()


def test_nothing_to_count_tells_what_to_do() -> None:
    assert "D finishes" in no_signatures_text(Signatures(SignatureChoice()), shown_key)
    hidden = no_signatures_text(Signatures(SignatureChoice(), hidden=("t1", "t2")), shown_key)
    assert "o = include them as adjudicator" in hidden
    judge = no_signatures_text(
        Signatures(SignatureChoice(labels="judge:rules@1"), hidden=("t1",)), shown_key
    )
    assert "hidden from you" in judge
    assert "o = include" not in judge
    broken = Signatures(SignatureChoice(), problem="no such\x1b file")
    assert "no such\x1b" not in no_signatures_text(broken, shown_key)
