"""Whose labels imported rows are."""

from __future__ import annotations

from collections.abc import Iterable

from mast_tui.exchange.errors import ExchangeError
from mast_tui.labels import JUDGE_PREFIX, checked_person


def one_name(annotator: str | None, names: Iterable[str]) -> None:
    """Refuse to give one name to the rows of several people."""
    if annotator is None:
        return
    found = sorted({name.strip() for name in names} - {""})
    if len(found) > 1:
        raise ExchangeError(
            f"the rows are by {', '.join(found)}; --annotator names one person's rows only"
        )


def annotator_of(cell: str, given: str | None) -> str:
    """The annotator of a row; raises ``ValueError`` where nobody is named, or no name."""
    name = (given or cell).strip()
    if not name:
        raise ValueError("'annotator' is empty; fill it in or name one with --annotator NAME")
    return checked_judge(name) if name.startswith(JUDGE_PREFIX) else checked_person(name)


def checked_judge(name: str) -> str:
    """A judge's name; raises ``ValueError`` where it cannot be one."""
    if len(name) > 128 or not name.isprintable() or "|" in name or "," in name:
        raise ValueError(f"{name!r} is no judge's name: '|' and ',' separate names in tables")
    return name
