"""Descriptions of exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.session import hidden_words

_NAMES_SHOWN: Final = 10
_ROW_NAMES: Final = {"rows", "records"}
"""The counts of formats that hold verdicts and no labels."""


def written_lines(output: str, counts: Mapping[str, Any]) -> list[str]:
    """Say what was written where: how many of what, and the files beside it.

    Args:
        output: The file or folder.
        counts: What ``add_export`` or ``add_workspace`` has counted.
    """
    written = [
        counted(n, *_nouns(name))
        for name, n in counts.items()
        if isinstance(n, int) and not (name == "labels" and counts.keys() & _ROW_NAMES)
    ]
    beside = [f"{one}: written with it" for one in counts.get("beside", ())]
    return [f"{output}: {', '.join(written)}", *beside]


def _nouns(name: str) -> tuple[str, str]:
    """Return the singular and plural of what a field counts."""
    plural = name.replace("_", " ")
    return plural.removesuffix("s"), plural


def left_out_lines(counts: Mapping[str, Any], file_format: str, *, sight: bool = True) -> list[str]:
    """Say what is not in an export, why, and what to do.

    Args:
        counts: What ``add_export`` has counted.
        file_format: What was written.
        sight: Whether to say what is hidden from whom.
    """
    found = []
    told = counts.get("sight")
    if sight and told is not None and told["left_out"]:
        found.append(hidden_words(told["annotator"], told["left_out"]))
    missing = counts.get("without_text", 0)
    if missing:
        found.append(
            f"{counted(missing, 'trace is', 'traces are')} not at hand, so the text is missing; "
            "open the app or 'mast-tui judge' on the folder once, then export again"
        )
    return found + _without_id(counts.get("without_id", {}), file_format)


def _without_id(left_out: Mapping[str, Any], file_format: str) -> list[str]:
    """Say what the tool that the scores are for does not know."""
    found = []
    traces = left_out.get("traces", ())
    if traces:
        found.append(
            f"{counted(len(traces), 'trace')} left out, whose id in {file_format} is not known: "
            f"recorded by another tool, or without the file at hand: {_some(traces)}"
        )
    spans = [f"{one['key']} in {one['trace_id']}" for one in left_out.get("spans", ())]
    if spans:
        found.append(
            f"{counted(len(spans), 'labelled span')} left out, whose id in {file_format} is not "
            f"known: {_some(spans)}"
        )
    return found


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    left = len(names) - _NAMES_SHOWN
    return f"{shown} and {left} more; mast-tui export --json names all" if left > 0 else shown
