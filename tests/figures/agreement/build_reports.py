"""Degenerate studies, and reports with all their parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mast_tui.figures.agreement.report import Agreement, StudyInput, agreement_figures
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.spans.input import SpanInput
from mast_tui.figures.spans.report import span_figures
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.model import Group, Mode
from tests.figures.agreement.build_judge import counted
from tests.figures.agreement.tables import verdict_table

MODES = (Mode("m0", "1.1", "Step repetition", ""), Mode("m1", "1.2", "A | name * with _marks_", ""))
_VALUES: Final = {"1": VerdictValue.PRESENT, "0": VerdictValue.ABSENT, "?": VerdictValue.UNSURE}

DEGENERATE: Final[Mapping[str, tuple[Mapping[str, str], set[str]]]] = {
    "all absent": ({"ann": "0000", "bob": "0000"}, {"no_variance"}),
    "all present": ({"ann": "1111", "bob": "1111"}, {"no_variance"}),
    "nothing shared": ({"ann": "10··", "bob": "··01"}, {"no_overlap"}),
    "one person": ({"ann": "1010"}, {"single_rater"}),
    "one who said anything": ({"ann": "1010", "bob": "????"}, {"single_rater"}),
    "nobody": ({}, {"single_rater"}),
}
"""The verdicts of each on both modes, a letter per trace, and the reasons why κ is undefined."""


def study_by_modes(modes: Iterable[Mode], letters: Mapping[tuple[str, str], str]) -> StudyInput:
    """Return a study of verdicts by annotator and mode; ``·`` is an unfinished trace."""
    modes = tuple(modes)
    verdicts = {
        (name, f"t{number}", slug): _VALUES[letter]
        for (name, slug), line in letters.items()
        for number, letter in enumerate(line)
        if letter != "·"
    }
    finished = {
        name: frozenset(trace for other, trace, _ in verdicts if other == name)
        for name in dict.fromkeys(name for name, _ in letters)
    }
    table = verdict_table(modes, finished, verdicts)
    return StudyInput("mast@3", modes, tuple(finished), "1", table, finished)


def study_of(lines: Mapping[str, str]) -> StudyInput:
    """Return a study with the same verdicts on every mode, and a category of both modes."""
    letters = {(name, mode.slug): line for name, line in lines.items() for mode in MODES}
    return replace(study_by_modes(MODES, letters), categories=(Group("c", "Both", ("m0", "m1")),))


def full_report(lines: Mapping[str, str], table: tuple[int, int, int, int]) -> Agreement:
    """Return a report on spans without files, and on a judge with these TP, FP, FN, TN."""
    study = study_of(lines)
    resampling = Resampling(30)
    report = agreement_figures(study, resampling)
    finished = {name: len(traces) for name, traces in study.finished.items()}
    places = SpanInput("mast@3", MODES, study.annotators, "1", (), finished, not_at_hand=2)
    return replace(
        report,
        spans=span_figures(places, resampling),
        judge=judge_report(counted(*table), resampling),
    )


def figures_in(document: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(document, Mapping):
        if "value" in document:
            yield document
        else:
            for part in document.values():
                yield from figures_in(part)
    elif isinstance(document, list):
        for part in document:
            yield from figures_in(part)
