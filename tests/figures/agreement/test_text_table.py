"""The report as text: aligned, within its width, honest about what is undefined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from rich.cells import cell_len

from mast_tui.agreement.text_report import render_report
from mast_tui.agreement.text_table import is_kappa_paradox
from mast_tui.figures.agreement.report import Report, Retest, StudyInput, agreement_report
from mast_tui.labels import VerdictValue

CELLS = {"both": (1, 1), "first": (1, 0), "second": (0, 1), "neither": (0, 0)}
VALUES = (VerdictValue.ABSENT, VerdictValue.PRESENT)


def study(*tables: tuple[int, int, int, int], name: str = "Step repetition") -> StudyInput:
    """One mode per two-by-two table of ann and bob."""
    modes = tuple((f"m{i}", f"1.{i + 1}", name) for i in range(len(tables)))
    verdicts = {}
    for (slug, _, _), table in zip(modes, tables, strict=True):
        answers = [pair for pair, n in zip(CELLS.values(), table, strict=True) for _ in range(n)]
        for i, (first, second) in enumerate(answers):
            verdicts["ann", f"t{i}", slug] = VALUES[first]
            verdicts["bob", f"t{i}", slug] = VALUES[second]
    traces = frozenset(f"t{i}" for i in range(max(sum(t) for t in tables)))
    return StudyInput(
        "mast@3", modes, ("ann", "bob"), "1", verdicts, {"ann": traces, "bob": traces}
    )


def report(*tables: tuple[int, int, int, int], name: str = "Step repetition") -> Report:
    """The report on one mode per two-by-two table, with few resamples."""
    return agreement_report(study(*tables, name=name), rounds=50)


def many(said: dict[str, str]) -> StudyInput:
    """A study of one mode by a letter per trace: ``1``, ``0`` and ``·`` for not finished."""
    verdicts = {
        (name, f"t{i}", "m"): VALUES[int(letter)]
        for name, letters in said.items()
        for i, letter in enumerate(letters)
        if letter != "·"
    }
    finished = {
        name: frozenset(f"t{i}" for i, letter in enumerate(letters) if letter != "·")
        for name, letters in said.items()
    }
    return StudyInput("mast@3", (("m", "1.1", "Mode"),), tuple(said), "1", verdicts, finished)


def rows(lines: Iterable[str], start: str) -> list[str]:
    return [line for line in lines if line.lstrip().startswith(start)]


def table_lines(lines: list[str]) -> list[str]:
    """The lines of the two tables of modes."""
    return lines[2 : next(i for i, line in enumerate(lines) if line.startswith("n: "))]


def test_rows_hold_the_figures_of_their_mode_with_intervals() -> None:
    observed, corrected = rows(render_report(report((20, 5, 10, 15))), "1.1")
    assert "0.50/0.60" in observed
    assert observed.split()[-1] == "0.40"
    assert "0.70 [" in observed
    assert "0.40 [" in corrected


def test_undefined_is_said_in_words_where_the_figures_would_stand() -> None:
    lines = render_report(report((20, 5, 10, 15), (0, 0, 0, 30)))
    observed, corrected = rows(lines, "1.2")
    assert "1.00" in observed
    assert "— no variance" in observed
    assert corrected.endswith("— no variance")
    assert "nan" not in "\n".join(lines).lower()


def test_raw_agreement_and_ac1_never_stand_without_kappa() -> None:
    lines = render_report(report((20, 5, 10, 15)))
    heads = [line.split() for line in lines if "raw" in line.split() or "AC1" in line.split()]
    tables = [head for head in heads if "mode" in head]
    assert len(tables) == 2
    assert all("κ" in head for head in tables)


@pytest.mark.parametrize(
    ("table", "paradox"),
    [
        ((118, 5, 2, 0), True),
        ((2, 3, 3, 92), True),
        ((8, 3, 3, 86), False),  # as rare, but κ is 0.69
        ((20, 5, 10, 15), False),
        ((45, 5, 5, 45), False),
        ((0, 0, 0, 30), False),
    ],
)
def test_kappa_paradox_is_called_only_at_extreme_prevalence(
    table: tuple[int, int, int, int], paradox: bool
) -> None:
    found = report(table)
    lines = render_report(found)
    assert is_kappa_paradox(found["modes"]["1.1"]) is paradox
    assert ("AC1, Ppos and Pneg" in " ".join(lines)) is paradox
    assert all(("*" in row) is paradox for row in rows(lines, "1.1"))


def test_columns_are_aligned_with_wide_characters_too() -> None:
    lines = table_lines(render_report(report((20, 5, 10, 15), name="步骤重复 repetition")))
    starts = [
        cell_len(row[: row.index("[")]) for row in lines if "[" in row and "pooled" not in row
    ]
    observed, corrected = rows(lines, "1.1")
    first, second = rows(lines, "pooled")
    for row, other in ((observed, first), (corrected, second)):
        assert cell_len(row[: row.index("[")]) == cell_len(other[: other.index("[")])
    assert starts


@pytest.mark.parametrize("width", [80, 100])
def test_names_give_way_to_the_width_then_intervals_and_numbers_do_not(width: int) -> None:
    long = "Unaware of termination conditions and of much else that could be named"
    tables = ((20, 5, 10, 15), (118, 5, 2, 0), (0, 0, 0, 30))
    wide = render_report(report(*tables, name=long))
    narrow = render_report(report(*tables, name=long), width)
    assert long in rows(wide, "1.1")[0]
    assert all(cell_len(line) <= width for line in narrow)
    assert rows(narrow, "1.1")[0].split()[-1] == rows(wide, "1.1")[0].split()[-1]
    assert all("[" in row for row in rows(narrow, "1.1"))


def test_three_annotators_get_the_range_of_prevalence_fleiss_and_a_matrix() -> None:
    given = many({"ann": "1100", "bob": "1110", "cat": "1000"})
    lines = render_report(agreement_report(given, rounds=20))
    assert any("Fleiss κ" in line for line in lines)
    assert "0.25–0.75" in rows(lines, "1.1")[0]
    start = next(i for i, line in enumerate(lines) if line.startswith("Pairs"))
    assert lines[start + 1].split() == ["ann", "bob"]
    cat = next(line for line in lines[start:] if line.startswith("cat"))
    pairs = agreement_report(given, rounds=0)["pooled"]["pairs"]
    for pair in ("ann|cat", "bob|cat"):
        assert f"{pairs[pair]['cohen_kappa']['value']:.2f}" in cat


def test_a_pair_that_shares_nothing_says_so_in_the_matrix() -> None:
    given = many({"ann": "1100··", "bob": "1010··", "cat": "····10"})
    lines = render_report(agreement_report(given, rounds=20), 80)
    start = next(i for i, line in enumerate(lines) if line.startswith("Pairs"))
    assert "— no overlap" in next(line for line in lines[start:] if line.startswith("cat"))


def test_what_was_left_out_stands_under_the_figures() -> None:
    given = replace(many({"ann": "110·", "bob": "1011"}), unfinished={"ann": 3})
    words = " ".join(render_report(agreement_report(given, rounds=0), 80))
    assert "begun and not finished: ann 3 traces" in words
    assert "finished by nobody else: bob 1 traces" in words
    assert "no rounds of resampling" in words
    everything = many({"ann": "110", "bob": "101"})
    assert "Nothing was left out." in render_report(agreement_report(everything, rounds=0))


def test_more_traces_that_would_halve_an_interval_are_named_by_mode() -> None:
    words = " ".join(render_report(report((20, 5, 10, 15), (0, 0, 0, 30))))
    assert "halve the interval of κ: about 150: 1.1; no variance: 1.2." in words


def test_copied_blocks_are_a_warning_before_any_figure() -> None:
    modes = tuple((f"m{i}", f"1.{i}", f"Mode {i}") for i in range(8))
    odd = "10110100"
    verdicts = {}
    for trace in range(12):
        block = odd if trace < 6 else f"{trace * 37 % 256:08b}"
        for name in ("ann", "bob"):
            for (slug, _, _), letter in zip(modes, block, strict=True):
                verdicts[name, f"t{trace:02}", slug] = VALUES[int(letter)]
    traces = frozenset(f"t{i:02}" for i in range(12))
    given = StudyInput("m@1", modes, ("ann", "bob"), "1", verdicts, {"ann": traces, "bob": traces})
    lines = render_report(agreement_report(given, rounds=0))
    assert "6 traces share 1 block of labels" in lines[1]
    assert "t00, t01, t02, t03, t04, t05" in lines[2]


def test_rounds_and_retests_have_tables_of_their_own() -> None:
    given = study((6, 2, 1, 6))
    halves = {"1": frozenset({"t0", "t1", "t2", "t13"}), "2": frozenset({"t3", "t14"})}
    again = {("t0", "m0"): VALUES[1], ("t9", "m0"): VALUES[0]}
    both = Retest(frozenset({"t0", "t9"}), again, again)
    found = agreement_report(replace(given, rounds=halves, retests={"ann": both}), rounds=20)
    lines = render_report(found, 80)
    start = next(i for i, line in enumerate(lines) if line.startswith("Rounds"))
    assert [line.split()[:2] for line in lines[start + 3 : start + 5]] == [["1", "4"], ["2", "2"]]
    start = next(i for i, line in enumerate(lines) if line.startswith("Agreement with oneself"))
    assert lines[start + 3].split()[:3] == ["ann", "2", "2"]
