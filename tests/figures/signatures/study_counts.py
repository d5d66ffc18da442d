"""Counts in the figures of the ITBench study, as rows of ``csv-wide``."""

from __future__ import annotations

from typing import Final

TRACES: Final = {"Gemini-3-Flash": (14, 44), "GPT-OSS-120B": (10, 79)}
"""Successful and failed traces of each model."""

COUNTS: Final = {
    "1.1": ((3, 12), (5, 55)),
    "1.2": ((0, 0), (0, 3)),
    "1.3": ((10, 26), (9, 77)),
    "1.4": ((0, 0), (1, 20)),
    "1.5": ((0, 7), (1, 39)),
    "2.1": ((0, 0), (0, 11)),
    "2.2": ((0, 4), (2, 15)),
    "2.3": ((1, 1), (0, 10)),
    "2.4": ((0, 1), (0, 8)),
    "2.5": ((0, 0), (0, 0)),
    "2.6": ((2, 16), (8, 76)),
    "3.1": ((1, 18), (1, 33)),
    "3.2": ((0, 0), (0, 0)),
    "3.3": ((2, 29), (5, 74)),
}
"""Successful and failed traces with each mode, for each model."""


def csv_wide() -> str:
    """Return a row for each trace; modes rotate over the traces."""
    lines = [f"trace_id,annotator,system,model,benchmark,outcome,{','.join(COUNTS)}"]
    for model_index, (model, sizes) in enumerate(TRACES.items()):
        for side, outcome in enumerate(("succeeded", "failed")):
            size = sizes[side]
            cells = {}
            start = 0
            for mode, counts in COUNTS.items():
                count = counts[model_index][side]
                cells[mode] = {(start + k) % size for k in range(count)}
                start += count
            for row in range(size):
                values = ",".join("1" if row in cells[mode] else "0" for mode in COUNTS)
                lines.append(
                    f"{model}-{outcome}-{row},study,codex,{model},ITBench,{outcome},{values}"
                )
    return "\n".join(lines) + "\n"
