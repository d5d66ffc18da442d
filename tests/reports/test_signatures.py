"""The report on failure signatures: sections, tables, sources, and sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.intervals import MARGIN, more_for
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.signatures.costs import SpanUsage
from mast_tui.figures.signatures.report import SignatureReport, signature_report
from mast_tui.reports.examples import Extras
from mast_tui.reports.model import Report, Text
from mast_tui.reports.render.markdown import render_markdown
from mast_tui.reports.render.text import render_text
from mast_tui.reports.signature_document import signature_document
from mast_tui.reports.signatures import MOST_QUOTED, group_report, signatures_report
from mast_tui.taxonomy.loader import load_mast
from tests.figures.signatures.build_input import input_of
from tests.figures.signatures.small_report import HOSTILE, PLAIN, small_input, small_report
from tests.reports.reading import all_notes, estimate, table
from tests.reports.small_extras import small_extras


@pytest.fixture(scope="module")
def figures() -> SignatureReport:
    return small_report()


@pytest.fixture(scope="module")
def document(figures: SignatureReport) -> Any:
    return signature_document(figures)


@pytest.fixture(scope="module")
def made(figures: SignatureReport) -> Report:
    return signatures_report(figures, extras=small_extras())


def texts(report: Report) -> dict[str, Text]:
    """Return the texts of a report by their ids."""
    return {
        part.id: part
        for section in report.sections
        for part in section.parts
        if isinstance(part, Text)
    }


def all_text(report: Report) -> str:
    """Return every sentence of a report."""
    paragraphs = [line for text in texts(report).values() for line in text.paragraphs]
    return " ".join([report.about, all_notes(report), *paragraphs])


def test_report_has_a_section_for_each_group_and_the_method(made: Report) -> None:
    ids = [section.id for section in made.sections]
    assert ids[:2] == ["group-all", "group-plain"]
    assert ids[3:] == ["method"]
    assert [section.title for section in made.sections][:3] == ["All traces", PLAIN, HOSTILE]
    idents = [part.id for section in made.sections for part in section.parts]
    assert len(idents) == len(set(idents))


def test_rows_of_modes_have_shares_differences_classes_and_missing_ratios(
    document: Any, made: Report
) -> None:
    modes = document["groups"][PLAIN]["modes"]
    shown = table(made, "modes-plain")
    notes = " ".join(note.text for note in shown.notes)
    assert any(mode["risk_ratio"] is None for mode in modes.values())
    for row in shown.rows:
        mode = modes[row.id]
        failed = row.cells["rate:failed"]
        points = row.cells["difference"]
        assert isinstance(failed, Figure)
        assert isinstance(points, Figure)
        assert failed.value == mode["failed"]["rate"]
        assert list(failed.interval or ()) == mode["failed"]["ci"]
        assert 100 * (points.value or 0) == pytest.approx(mode["difference_pp"])
        assert row.cells["severity"] == mode["severity"]
        assert row.cells["stated"] == mode["stated"]
        without_ratio = mode["risk_ratio"] is None
        assert (row.id in notes) == without_ratio
        assert (
            any("risk ratio is undefined" in sentence for sentence in row.detail) == without_ratio
        )
    titles = [column.title for column in shown.columns]
    assert "published" in titles
    assert "stated" not in titles
    for row in table(made, "mode_shares-plain").rows:
        mode = modes[row.id]
        assert mode["more_labels"] == more_for(mode["count"], mode["n"], MARGIN)
        assert row.cells["more_labels"] == mode["more_labels"]
    for text in (render_markdown(made), " ".join(render_text(made, 100))):
        assert "further traces for an interval of ± 3 points" in text
    counts = table(made, "counts-plain")
    for row in counts.rows:
        for key, side in modes[row.id]["success_given"].items():
            share = row.cells[f"rate:success_if_{key}"]
            assert isinstance(share, Figure)
            assert share.value == side["rate"]
    assert "not an effect" in counts.notes[0].text


def test_weights_are_told() -> None:
    weighted = replace(small_input(), weights=np.ones(40))
    text = all_text(signatures_report(signature_report(weighted, Resampling(0))))
    assert "weighted by the inverse probability" in text


def test_report_tells_its_labels_and_what_is_missing() -> None:
    report = signatures_report(small_report(outcomes=False, places=False))
    assert "labels: " in report.about
    assert "mast@3" in report.about
    assert "No trace is known to have failed" in all_text(report)
    assert [one.id for one in report.sections[0].tables][:1] == ["mode_shares-all"]
    assert not any(one.id.startswith("modes-") for one in report.tables)
    alone = group_report(small_report(outcomes=False, places=False), PLAIN)
    assert "Outcomes come from the trace files" in all_text(alone)
    assert "no figures on places" in all_text(alone)
    empty = signatures_report(small_report(traces=0), extras=Extras(load_mast()))
    assert empty.charts == []
    assert "There are no figures" in all_text(empty)


def test_remedies_are_in_the_order_of_the_traces_decided(
    figures: SignatureReport, document: Any, made: Report
) -> None:
    shown = texts(made)["helps-plain"].paragraphs
    assert shown[1].startswith("3.1 Premature termination decided 4 and occurs in")
    assert shown[2].startswith("1.3 Step repetition decided 1 and occurs in")
    assert "if its labels there are fatal" in shown[0]
    assert texts(made)["helps-more-plain"].folded
    for fix in load_mast().mode("premature_termination").fixes:
        assert " ".join(fix.split()) in " ".join(shown)
    # Without fatal labels, the class of the mode decides.
    alone = table(group_report(figures, HOSTILE, extras=small_extras()), "helps")
    for row in alone.rows:
        mode = document["groups"][HOSTILE]["modes"][row.id]
        decisive = mode["severity"] == "fatal"
        assert row.cells["decided"] == (mode["failed"]["count"] if decisive else 0)
    assert "Labels make no mode fatal" in alone.notes[0].text


def test_measured_effects_are_told_with_their_source_for_mast(
    made: Report, figures: SignatureReport
) -> None:
    measured = texts(made)["measured"]
    assert "15.6 points" in " ".join(measured.paragraphs)
    assert measured.links[0][1] == "https://arxiv.org/abs/2503.13657"
    assert "measured" not in texts(signatures_report(figures))


def test_examples_are_folded_and_shortened(made: Report) -> None:
    examples = texts(made)["examples-plain"]
    assert examples.folded
    first, second = examples.paragraphs
    assert "#3–#5, labelled fatal" in first
    assert "window.hacked=3" in first
    assert "\n" not in first
    assert len(second) < MOST_QUOTED + 100
    assert second.endswith("…”")


def test_judged_shares_are_shown_with_their_correction() -> None:
    inputs = small_input()
    corrected = []
    for code, value, ends, reason in (
        ("1.1", 0.31, (0.2, 0.4), ""),
        ("1.2", None, None, "no_positives"),
    ):
        scope = FigureScope("prevalence", group=PLAIN, mode=code, subject=(inputs.label_source,))
        corrected += [
            scope.number("n_unlabelled", 120),
            scope.figure("apparent", Figure(value=0.5, interval=(0.4, 0.6))),
            scope.figure("corrected", Figure(value=value, interval=ends, reason=reason)),
        ]
    report = signatures_report(signature_report(inputs, Resampling(0), corrected=corrected))
    first, second = table(report, "corrected-plain").rows
    assert estimate(first, "apparent").interval == (0.4, 0.6)
    assert estimate(first, "corrected").interval == (0.2, 0.4)
    assert "31% (20% to 40%); uncorrected: 50%; 120 judged traces" in first.detail[0]
    assert estimate(second, "corrected").undefined == "no_positives"
    assert "gold has no present verdict" in second.detail[0]
    assert [one.id for one in report.tables].count("corrected-plain") == 1


def test_report_on_one_group_has_the_traces_behind_its_cells(
    figures: SignatureReport, document: Any
) -> None:
    report = group_report(figures, PLAIN, extras=small_extras())
    assert [section.id for section in report.sections] == ["modes", "onset", "together", "helps"]
    assert report.charts == []
    row = table(report, "modes").rows[-1]
    sources = row.cell_sources["rate:failed"]
    assert sources is not None
    assert (sources.group, sources.where) == (PLAIN, (("outcome", "failed"),))
    assert row.sources is not None
    assert (row.sources.group, row.sources.where) == (PLAIN, ())
    assert row.sources.modes == sources.modes
    tenths = table(report, "first_failure").rows
    assert len(tenths) == 10
    counts = document["groups"][PLAIN]["places"]["failed"]["first_failure"]["bins"]
    for place, (tenth, count) in enumerate(zip(tenths, counts, strict=True)):
        assert tenth.cells["traces"] == count
        assert (tenth.sources is None) == (count == 0)
        if tenth.sources is not None:
            assert dict(tenth.sources.where)["tenth"] == str(place)
    (first,) = table(report, "first_mode").rows[:1]
    assert first.sources is not None
    assert dict(first.sources.where)["first"] == first.cells["code"]
    (step,) = table(report, "transitions").rows[:1]
    assert step.sources is not None
    assert dict(step.sources.where)["step"].replace("|", " → ") == step.cells["step"]
    onset = table(report, "mode_onsets").rows[0]
    assert onset.sources is not None
    assert dict(onset.sources.where)["placed"] == "yes"


def test_matrix_counts_pairs_and_single_modes_on_the_diagonal(
    figures: SignatureReport, document: Any
) -> None:
    group = document["groups"][PLAIN]
    for every, which in ((False, "failed"), (True, "all")):
        shown = table(group_report(figures, PLAIN, over_all_traces=every), "together")
        both: dict[frozenset[str], int] = {
            frozenset(pair["modes"]): pair["both"]
            for pair in group["together"]["all" if every else "failed"]
        }
        for row in shown.rows:
            mode: Any = group["modes"][row.id]
            assert row.cells[f"with {row.id}"] == mode[which]["count"]
            for other in (one.id for one in shown.rows if one.id != row.id):
                count = both.get(frozenset((row.id, other)), 0)
                assert row.cells[f"with {other}"] == count
                assert (f"with {other}" in row.cell_sources) == bool(count)


def test_reversal_within_models_is_a_warning() -> None:
    """Within each model a mode shows more often in failed traces, over all less often."""
    counts = [
        (0, "F", 20, 18),
        (0, "S", 80, 64),
        (1, "F", 80, 16),
        (1, "S", 20, 2),
    ]
    rows = [
        (model, f"all - {outcome} {int(i < present)}0")
        for model, outcome, traces, present in counts
        for i in range(traces)
    ]
    rows += [(-1, "all - F 00")] * 3
    models, lines = zip(*rows, strict=True)
    given = input_of(*lines, by="all", stratum_numbers=np.array(models), stratum_names=("a", "b"))
    shown = table(signatures_report(signature_report(given, Resampling(0))), "stratified-all")
    assert shown.rows[0].mark == "†"
    assert [note.reason for note in shown.notes if note.warning] == ["reversed"]
    assert "For 1.3, the difference within models" in shown.notes[0].text
    assert any("3 traces of an unknown model" in note.text for note in shown.notes)


def test_trends_have_tables() -> None:
    names = ("2.0", "10.0")
    made = replace(
        small_input(),
        by="version",
        group_names=names,
        group_parts=tuple((name,) for name in names),
        group=np.arange(40) % 2,
    )
    figures = signature_report(made, Resampling(0))
    document = signature_document(figures)
    report = signatures_report(figures)
    trend = document["trend"]
    assert trend is not None
    rows = table(report, "trend").rows
    for row in rows:
        slope = row.cells["slope"]
        points = trend["modes"]["failed"][row.id]["slope_pp"]
        assert isinstance(slope, Figure)
        assert slope.value == (None if points is None else pytest.approx(points / 100))
    assert table(report, "trend-all").folded
    assert [section.id for section in report.sections][-2:] == ["trend", "method"]


def test_tokens_of_failed_runs_have_a_table() -> None:
    usage = SpanUsage(np.ones((40, 2), dtype=np.int64), None)
    made = small_input()
    places = replace(made.places, fatal=np.ones(len(made.places.trace), dtype=bool))
    figures = signature_report(
        replace(made, places=places), Resampling(0), usage_of=lambda _trace: usage
    )
    (row, *_) = table(signatures_report(figures), "bill-plain").rows
    bill = signature_document(figures)["groups"][PLAIN]["bill"]
    assert bill is not None
    sums = bill[0]["tokens"]
    assert sums is not None
    assert row.cells["total"] == sums["total"]
    assert row.cells["share"] == sums["share_after"]
