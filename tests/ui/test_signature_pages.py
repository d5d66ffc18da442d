"""The pages of the signatures screen: what stands behind each figure, and bars without colours."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.figures.signatures.model import ABSENT, PRESENT, ModeInfo, Places, SignatureInput
from mast_tui.figures.signatures.rates import rate
from mast_tui.figures.signatures.report import signature_report
from mast_tui.ui.signature_bars import count_bar, rate_bar, spread_bar
from mast_tui.ui.signature_behind import Wanted, chain_words, traces_behind
from mast_tui.ui.signature_figures import Choice, Signatures
from mast_tui.ui.signature_onset import OnsetPage
from mast_tui.ui.signature_pages import ModesPage, Page, TogetherPage
from mast_tui.ui.signature_traces import TracesPage
from mast_tui.ui.signature_words import mode_words, nothing_words

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
    return Signatures(Choice(), report=signature_report(given, rounds=0), given=given)


def pages(found: Signatures, group: str) -> list[Page]:
    """Every page whose cells count traces."""
    return [
        ModesPage(found, group),
        *(TogetherPage(found, group, every) for every in (False, True)),
        *(OnsetPage(found, group, every) for every in (False, True)),
    ]


def says(page: Page, row: str, column: str | None, cells: dict[str, str]) -> int | None:
    """How many traces a cell says that it counts, None where it tells something else."""
    if isinstance(page, ModesPage):
        modes = page.found.group(page.group)["modes"]
        rates = {"failed": modes[row]["failed"], "succeeded": modes[row]["succeeded"]}
        return (rates.get(column or "") or modes[row]["all"])["count"]
    if isinstance(page, OnsetPage):
        found = re.match(r"\d+", cells["number"])
        return None if found is None or row.startswith("onset") else int(found.group())
    return int(cells[column or ""].strip("=").replace("·", "0"))


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_behind_each_figure_stand_as_many_traces_as_it_counts(seed: int) -> None:
    found = made(seed)
    assert found.given is not None
    for group in found.groups:
        for page in pages(found, group):
            for row in page.rows(10):
                for column in page.choice or (None,):
                    count = says(page, row.id, column, dict(row.cells))
                    wanted = page.wanted(row.id, column)
                    assert page.words(row.id, column)
                    if wanted is None:
                        assert not count
                    elif count is not None:
                        assert traces_behind(found.given, group, wanted).total == count


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_each_trace_is_shown_with_its_modes_by_onset_and_the_shapes_are_the_reports(
    seed: int,
) -> None:
    found = made(seed)
    assert found.given is not None
    for group in found.groups:
        listed = TracesPage(found, group, every=False).listed
        shapes = [one.shape for one in listed.traces]
        counted = found.group(group)["shapes"]
        assert {name: shapes.count(name) for name in counted} == counted
        for one in listed.traces:
            placed = [code for step in one.chain for code in step]
            assert len(set(placed)) == len(placed)
            assert set(placed) <= set(one.modes)
            assert all(code in chain_words(one) for code in one.modes)
            assert (one.first is None) == (not placed)


def test_a_trace_is_opened_at_the_mode_that_was_asked_for() -> None:
    found = next(
        found for found in map(made, range(99)) if found.given and len(found.given.places.trace)
    )
    assert found.given is not None
    places = found.given.places
    row, mode = int(places.trace[-1]), int(places.mode[-1])
    group = found.given.group_names[int(found.given.group[row])]
    listed = traces_behind(found.given, group, Wanted("", modes=(CODES[mode],)))
    one = next(one for one in listed.traces if one.trace_id == f"t{row}")
    assert one.at == places.first[(places.trace == row) & (places.mode == mode)].min()


@given(st.integers(0, 200), st.integers(0, 200), st.integers(8, 40))
def test_a_bar_shows_share_and_interval_by_its_signs_alone(
    count: int, more: int, width: int
) -> None:
    bar = rate_bar(rate(count, count + more), width)
    assert re.fullmatch("█*▓*░*", bar)
    assert len(bar) <= width
    seen = len(bar.rstrip("░"))
    assert (seen > 0) == (count > 0)
    if count + more:
        assert abs(seen - width * count / (count + more)) <= 1
    else:
        assert not bar


@given(st.integers(0, 50), st.integers(1, 50), st.integers(8, 40))
def test_a_count_shows_unless_it_is_0_and_the_most_fill_the_bar(
    count: int, more: int, width: int
) -> None:
    bar = count_bar(count, count + more, width)
    assert bool(bar) == bool(count)
    assert len(bar) <= width
    assert count_bar(more, more, width) == "█" * width


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.integers(8, 40))
def test_quartiles_stand_around_the_median_along_the_run(ends: list[float], width: int) -> None:
    low, median, high = sorted(ends)
    bar = spread_bar(low, median, high, width)
    assert re.fullmatch("·*▓*█▓*·*", bar)
    assert len(bar) == width


@pytest.mark.parametrize("group", ["a", "b"])
def test_without_outcomes_bars_are_over_all_traces_and_it_is_told_how_to_give_them(
    group: str,
) -> None:
    found = made(7, outcomes=False)
    page = ModesPage(found, group)
    assert page.choice == ("all",)
    row = page.rows(10)[0]
    assert "failed" not in row.cells
    words = page.words(row.id, "all")
    assert "csv-wide" in words
    assert "--failed-below" in words


def test_what_is_undefined_has_a_reason_and_no_number() -> None:
    found = made(3)
    for group in found.groups:
        for code, mode in found.group(group)["modes"].items():
            words = mode_words(found, group, code)
            assert mode["severity"] in words
            assert "nan" not in words
            if mode["difference_pp"] is None:
                assert "nothing to compare" in words


def test_nothing_to_count_tells_what_to_do() -> None:
    assert "D finishes" in nothing_words(Signatures(Choice()))
    assert "o counts them" in nothing_words(Signatures(Choice(), hidden=("t1", "t2")))
    judge = nothing_words(Signatures(Choice(labels="judge:rules@1"), hidden=("t1",)))
    assert "is hidden from you" in judge
    assert "o counts" not in judge
    assert "no such\x1b" not in nothing_words(Signatures(Choice(), problem="no such\x1b file"))
