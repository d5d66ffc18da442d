"""Input and report on few made-up traces, with hostile names."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from msgspec.structs import replace

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    PRESENT,
    SUCCEEDED,
    UNKNOWN,
    Places,
    SignatureInput,
)
from mast_tui.figures.signatures.report import SignatureReport, signature_report
from mast_tui.reports.signature_document import signature_document
from mast_tui.taxonomy.loader import load_mast

PLAIN = "plain"
HOSTILE = (
    '"><script>window.hacked=1</script><img src=x onerror="window.hacked=2">'
    "\u202egpj.exe\x1b[31m 'quoted' & a very long name that no column has room for"
)
LONG = "9.9"
"""The code of the mode with a name that is too long for any line."""


def small_input(*, traces: int = 40, outcomes: bool = True, places: bool = True) -> SignatureInput:
    """Return two groups of equal size under MAST, with one mode of a long and hostile name."""
    modes = [*load_mast().modes[:-1], replace(load_mast().modes[-1], code=LONG, name=HOSTILE)]
    generator = np.random.default_rng(7)
    is_present = generator.random((traces, len(modes))) < np.linspace(0.05, 0.6, len(modes))
    row, column = np.nonzero(is_present) if places else (np.zeros(0, int), np.zeros(0, int))
    first = generator.integers(0, 30, len(row))
    outcome = np.where(np.arange(traces) % 3 < 2, FAILED, SUCCEEDED)
    return SignatureInput(
        taxonomy_ref="mast@3",
        modes=tuple(modes),
        categories=load_mast().at_level(0),
        by="model",
        label_source=HOSTILE,
        label_source_kind="human",
        traces=tuple(f"trace-{i:02d}" for i in range(traces)),
        group_names=(PLAIN, HOSTILE),
        group=np.arange(traces) // 3 % 2,
        outcome=(outcome if outcomes else np.full(traces, UNKNOWN)).astype(np.int8),
        score=np.full(traces, np.nan),
        verdicts=np.where(is_present, PRESENT, ABSENT).astype(np.uint8),
        spans=np.full(traces, 40, dtype=np.int64),
        places=Places(row, column, first, first + 2, np.zeros(len(row), dtype=bool)),
    )


@cache
def small_report(
    *, traces: int = 40, outcomes: bool = True, places: bool = True
) -> SignatureReport:
    """Return the report on ``small_input``; callers must not change it."""
    inputs = small_input(traces=traces, outcomes=outcomes, places=places)
    return signature_report(inputs, Resampling(50))


def small_document() -> Any:
    return signature_document(small_report())
