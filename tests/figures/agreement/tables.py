"""Tables of verdicts and documents of reports for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mast_tui.figures.agreement.counting import CELL_OF, MISSING, VALUE_OF, VerdictTable
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


def span_document(span_input: SpanInput, *, rounds: int = 2000, seed: int = 0) -> dict[str, Any]:
    """Return the part ``spans`` of the document of ``agree --json``."""
    return spans_json(span_figures(span_input, Resampling(rounds, seed)))


def verdict_table(
    modes: Iterable[Mode], finished: Mapping[str, frozenset[str]], verdicts: Verdicts
) -> VerdictTable:
    """Return the verdicts on these modes in the traces that each annotator has finished."""
    slugs = tuple(mode.slug for mode in modes)
    traces = tuple(sorted(frozenset().union(*finished.values())))
    cells = np.full((len(finished), len(traces), len(slugs)), MISSING, dtype=np.int8)
    for (name, trace, slug), value in verdicts.items():
        if trace in finished[name]:
            cell = [*finished].index(name), traces.index(trace), slugs.index(slug)
            cells[cell] = CELL_OF[value]
    return VerdictTable(tuple(finished), traces, slugs, cells)


def retest_table(
    modes: Iterable[Mode],
    traces: Iterable[str],
    first: Mapping[tuple[str, str], VerdictValue],
    retest: Mapping[tuple[str, str], VerdictValue],
) -> VerdictTable:
    """Return the first verdicts of one person and those of the retest."""
    sides = {"first": first, "retest": retest}
    verdicts = {(side, *u): value for side, units in sides.items() for u, value in units.items()}
    return verdict_table(modes, dict.fromkeys(sides, frozenset(traces)), verdicts)


def verdicts_in(table: VerdictTable) -> Verdicts:
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
        is_present = random.random() < 0.4
        for position, name in enumerate(lines):
            answer = is_present if random.random() < 0.85 else not is_present
            lines[name] += "." if position == trace % 3 else str(int(answer))
    return lines
