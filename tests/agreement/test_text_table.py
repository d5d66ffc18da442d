"""The report as text: aligned, within its width, honest about what is undefined."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from mast_tui.agreement.study import Report, StudyInput, agreement_report
from mast_tui.agreement.text_table import is_kappa_paradox, render_table
from mast_tui.labels import VerdictValue

CELLS = {"both": (1, 1), "first": (1, 0), "second": (0, 1), "neither": (0, 0)}
VALUES = (VerdictValue.ABSENT, VerdictValue.PRESENT)


def report(*tables: tuple[int, int, int, int], name: str = "Step repetition") -> Report:
    """The report on one mode per two-by-two table of ann and bob."""
    modes = tuple((f"m{i}", f"1.{i + 1}", name) for i in range(len(tables)))
    verdicts = {}
    for (slug, _, _), table in zip(modes, tables, strict=True):
        answers = [pair for pair, n in zip(CELLS.values(), table, strict=True) for _ in range(n)]
        for i, (first, second) in enumerate(answers):
            verdicts["ann", f"t{i}", slug] = VALUES[first]
            verdicts["bob", f"t{i}", slug] = VALUES[second]
    traces = frozenset(f"t{i}" for i in range(max(sum(t) for t in tables)))
    study = StudyInput(
        "mast@3", modes, ("ann", "bob"), "1", verdicts, {"ann": traces, "bob": traces}
    )
    return agreement_report(study)


def row(lines: list[str], start: str) -> str:
    return next(line for line in lines if line.lstrip().startswith(start))


def test_a_row_holds_the_figures_of_its_mode() -> None:
    line = row(render_table(report((20, 5, 10, 15))), "1.1")
    cells = line.split()
    assert cells[-7:-5] == ["0.50/0.60", "0.700"]
    assert "0.400" in cells


def test_undefined_is_said_in_words_where_the_figures_would_stand() -> None:
    lines = render_table(report((20, 5, 10, 15), (0, 0, 0, 30)))
    assert row(lines, "1.2").endswith("— no variance")
    assert "1.000" in row(lines, "1.2")
    assert "nan" not in "\n".join(lines).lower()


def test_raw_agreement_and_ac1_stand_beside_the_other_figures() -> None:
    head = render_table(report((20, 5, 10, 15)))[0].split()
    assert {"raw", "Ppos", "Pneg", "κ", "α", "AC1"} <= set(head)


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
    figures = report(table)["modes"]["1.1"]
    lines = render_table(report(table))
    assert is_kappa_paradox(figures) is paradox
    assert ("AC1, Ppos and Pneg" in " ".join(lines)) is paradox
    assert ("*" in row(lines, "1.1")) is paradox


def test_columns_are_aligned_with_wide_characters_too() -> None:
    lines = render_table(report((20, 5, 10, 15), name="步骤重复 repetition"))
    ends = {cell_len(line) for line in (lines[0], row(lines, "1.1"), row(lines, "pooled"))}
    assert len(ends) == 1


def test_names_give_way_to_the_width_and_figures_do_not() -> None:
    long = "Unaware of termination conditions and of much else that could be named"
    wide, narrow = (render_table(report((20, 5, 10, 15), name=long), w) for w in (None, 80))
    assert long in row(wide, "1.1")
    assert all(cell_len(line) <= 80 for line in narrow)
    assert row(narrow, "1.1").split()[-6:] == row(wide, "1.1").split()[-6:]


def test_three_annotators_get_the_range_of_prevalence_and_fleiss() -> None:
    modes = (("m", "1.1", "Mode"),)
    people = ("ann", "bob", "cat")
    said = {"ann": "1100", "bob": "1110", "cat": "1000"}
    verdicts = {
        (name, f"t{i}", "m"): VALUES[int(letter)]
        for name in people
        for i, letter in enumerate(said[name])
    }
    traces = frozenset(f"t{i}" for i in range(4))
    study = StudyInput("mast@3", modes, people, "1", verdicts, dict.fromkeys(people, traces))
    lines = render_table(agreement_report(study))
    assert "Fleiss κ" in lines[0]
    assert "0.25–0.75" in row(lines, "1.1")
