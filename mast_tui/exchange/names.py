"""The authors of imported rows."""

from __future__ import annotations

from collections.abc import Iterable

from mast_tui.exchange.errors import ExchangeError
from mast_tui.labels import (
    AGENT_PREFIX,
    JUDGE_PREFIX,
    InvalidName,
    ReservedName,
    checked_agent,
    checked_person,
)


def check_one_name(annotator: str | None, names: Iterable[str]) -> None:
    """Check that one name is not given to the rows of several people.

    Args:
        annotator: The name given with ``--annotator``, None for none.
        names: The names in the rows.

    Raises:
        ExchangeError: There is a name for all rows, but the rows are by several people.
    """
    if annotator is None:
        return
    authors = sorted({name.strip() for name in names} - {""})
    if len(authors) > 1:
        raise ExchangeError(
            f"the rows are by {', '.join(authors)}; --annotator names one person's rows only"
        )


def annotator_of(cell: str, author: str | None) -> str:
    """Return the annotator of a row.

    Args:
        cell: The name in the row.
        author: The name given with ``--annotator``, None for none.

    Raises:
        ValueError: There is no name, or an annotator cannot have it.
    """
    name = (author or cell).strip()
    if not name:
        raise InvalidName("'annotator' is empty; fill it in or name one with --annotator NAME")
    if name.startswith(JUDGE_PREFIX):
        return checked_judge(name)
    if name.startswith(AGENT_PREFIX):
        return checked_agent(name)
    try:
        return checked_person(name)
    except ReservedName:
        if author is not None:
            raise
        raise ReservedName(
            f'"{name}" is reserved. Import under another name: --annotator NAME'
        ) from None


def checked_judge(name: str) -> str:
    """Return a judge's name; raises ``ValueError`` if it is not valid."""
    if len(name) > 128 or not name.isprintable() or "|" in name or "," in name:
        raise ValueError(f"{name!r} is no judge's name: '|' and ',' separate names in tables")
    return name
