"""Tables of verdicts and documents of reports for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mast_tui.figures.agreement.coefficients import MISSING
from mast_tui.figures.agreement.counting import CELL_OF, VALUE_OF, VerdictTable
from mast_tui.figures.agreement.report import StudyInput, agreement_figures, agreement_json
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.spans.input import SpanInput
from mast_tui.figures.spans.report import span_figures, spans_json
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.model import Mode

Verdicts = Mapping[tuple[str, str, str], VerdictValue]
"""Verdicts by annotator, trace id and slug; missing ones are open."""


def agreement_document(study: StudyInput, *, rounds: int = 2000, seed: int = 0) -> dict[str, Any]:
    """Return the document of ``agree --json`` on a study."""
    return agreement_json(agreement_figures(study, Resampling(rounds, seed)))


def span_document(given: SpanInput, *, rounds: int = 2000, seed: int = 0) -> dict[str, Any]:
    """Return the part ``spans`` of the document of ``agree --json``."""
    return spans_json(span_figures(given, Resampling(rounds, seed)))


def verdict_table(
    modes: Iterable[Mode], finished: Mapping[str, frozenset[str]], said: Verdicts
) -> VerdictTable:
    """Return the verdicts on these modes in the traces that each annotator has finished."""
    slugs = tuple(mode.slug for mode in modes)
    traces = tuple(sorted(frozenset().union(*finished.values())))
    cells = np.full((len(finished), len(traces), len(slugs)), MISSING, dtype=np.int8)
    for (name, trace, slug), value in said.items():
        if trace in finished[name]:
            place = [*finished].index(name), traces.index(trace), slugs.index(slug)
            cells[place] = CELL_OF[value]
    return VerdictTable(tuple(finished), traces, slugs, cells)


def retest_table(
    modes: Iterable[Mode],
    traces: Iterable[str],
    first: Mapping[tuple[str, str], VerdictValue],
    again: Mapping[tuple[str, str], VerdictValue],
) -> VerdictTable:
    """Return the first verdicts of one person and those of the retest."""
    sides = {"first": first, "retest": again}
    said = {(side, *unit): value for side, of in sides.items() for unit, value in of.items()}
    return verdict_table(modes, dict.fromkeys(sides, frozenset(traces)), said)


def verdicts_in(table: VerdictTable) -> Verdicts:
    """Return the verdicts of a table."""
    cells = table.verdicts
    return {
        (table.annotators[a], table.traces[t], table.slugs[m]): VALUE_OF[int(cells[a, t, m])]
        for a, t, m in np.argwhere(cells != MISSING).tolist()
    }


def rotating_lines() -> dict[str, str]:
    """Return verdicts of three people on 60 traces, of whom two in turn label each."""
    random = np.random.default_rng(3)
    lines = {"ann": "", "bob": "", "cat": ""}
    for trace in range(60):
        shows = random.random() < 0.4
        for place, name in enumerate(lines):
            said = shows if random.random() < 0.85 else not shows
            lines[name] += "." if place == trace % 3 else str(int(said))
    return lines
