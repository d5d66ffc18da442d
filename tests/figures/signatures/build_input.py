"""Inputs of reports on signatures from short lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    OPEN,
    PRESENT,
    SUCCEEDED,
    UNKNOWN,
    UNRESOLVED,
    Places,
    SignatureInput,
)
from mast_tui.figures.signatures.report import signature_report
from mast_tui.reports.signature_document import signature_document
from mast_tui.taxonomy.model import Group, Mode


def document_of(signatures: SignatureInput, rounds: int = 2000, **options: Any) -> Any:
    return signature_document(signature_report(signatures, Resampling(rounds), **options))


MODES = (Mode("loop", "1.3", "Step repetition", "1"), Mode("stop", "3.1", "Early end", "3"))
_VERDICTS = {"1": PRESENT, "0": ABSENT, "?": OPEN, "!": UNRESOLVED}
_OUTCOMES = {"F": FAILED, "S": SUCCEEDED, "?": UNKNOWN}


def input_of(
    *rows: str,
    by: str = "model",
    groups: Sequence[str] = (),
    places: Sequence[tuple[int, int, int, bool]] = (),
    **more: Any,
) -> SignatureInput:
    """Return the input of lines ``group task outcome verdicts``, as in ``gpt t1 F 10``.

    A task ``-`` is none; ``groups`` gives their order; ``places`` are (trace, mode, span, fatal).
    """
    cells = [row.split() for row in rows]
    names = tuple(groups or sorted({group for group, *_ in cells}))
    tasks = sorted({task for _, task, *_ in cells} - {"-"})
    group = np.array([names.index(name) for name, *_ in cells], dtype=np.int64)
    task = [tasks.index(name) if name != "-" else -1 for _, name, *_ in cells]
    trace, mode, first, fatal = zip(*places, strict=True) if places else ((), (), (), ())
    spans = np.array(first, dtype=np.int64)
    return SignatureInput(
        taxonomy_ref="small@1",
        modes=MODES,
        categories=(Group("1", "Design", ("loop",)), Group("3", "Verification", ("stop",))),
        by=by,
        label_source="gold",
        label_source_kind="gold",
        traces=tuple(f"t{i}" for i in range(len(cells))),
        group_names=names,
        group=group,
        outcome=np.array([_OUTCOMES[letter] for *_, letter, _ in cells], dtype=np.int8),
        score=np.full(len(cells), np.nan),
        verdicts=np.array([[_VERDICTS[v] for v in row] for *_, row in cells], dtype=np.uint8),
        spans=np.full(len(cells), 10, dtype=np.int64),
        places=Places(
            np.array(trace, dtype=np.int64),
            np.array(mode, dtype=np.int64),
            spans,
            spans,
            np.array(fatal, dtype=bool),
        ),
        task_numbers=np.array(task, dtype=np.int64),
        **more,
    )
