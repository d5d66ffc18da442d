"""``datasheet.toml``: what no event tells of a set of labels, for its datasheet and its card."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mast_tui.exchange.errors import ExchangeError
from mast_tui.reports.render.markdown import plain
from mast_tui.toml_text import parse_toml

Values = dict[str, Any]

NAME: Final = "datasheet.toml"
"""How the file is called that is read unasked, in the folder of the workspace."""

_TEXTS: Final = ("pretty_name", "description", "licence", "contact", "funding", "citation")
_LISTS: Final = ("languages", "task_categories")
_PEOPLE: Final = ("who", "recruitment", "training", "pay", "consent")
_KNOWN: Final = (*_TEXTS, *_LISTS, "people")

_SAID: Final = (
    ("description", "What this is"),
    ("licence", "Licence"),
    ("languages", "Languages"),
    ("contact", "Contact"),
    ("funding", "Funding"),
    ("citation", "To cite"),
)
_SAID_OF_PEOPLE: Final = (
    ("who", "Who labelled"),
    ("recruitment", "How they were found"),
    ("training", "Training"),
    ("pay", "Pay"),
    ("consent", "Consent"),
)


def read_datasheet(path: Path) -> Values:
    """What the file says, as it stands in gold.

    Raises:
        ExchangeError: it cannot be read, is not TOML in UTF-8, or says something that nobody
            would read; the message names the file, the key and what to do.
    """
    try:
        document = parse_toml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExchangeError(f"{path}: not TOML in UTF-8: {error}") from None
    _check(document, str(path), _KNOWN)
    for name in _TEXTS:
        _check_text(document, name, str(path))
    for name in _LISTS:
        _check_list(document, name, str(path))
    people = document.get("people", {})
    if not isinstance(people, dict):
        raise ExchangeError(f"{path}: 'people' is no table; write [people] and its keys below")
    where = f"{path}: [people]"
    _check(people, where, _PEOPLE)
    for name in _PEOPLE:
        _check_text(people, name, where)
    return document


def _check(table: Mapping[str, object], where: str, known: tuple[str, ...]) -> None:
    """Refuse a key that nobody would read: most often it is a slip of the pen."""
    from rapidfuzz import fuzz, process

    for key in table:
        if key in known:
            continue
        near = process.extractOne(key.lower(), known, scorer=fuzz.ratio, score_cutoff=60)
        hint = f"known are {', '.join(known)}" if near is None else f"did you mean {near[0]!r}?"
        raise ExchangeError(f"{where}: unknown key {key!r}; {hint}")


def _check_text(table: Mapping[str, object], name: str, where: str) -> None:
    value = table.get(name, "")
    if not isinstance(value, str):
        raise ExchangeError(f'{where}: {name!r} is no text; write {name} = "…"')


def _check_list(table: Mapping[str, object], name: str, where: str) -> None:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ExchangeError(f'{where}: {name!r} is no list of texts; write {name} = ["…"]')


def card_values(said: Mapping[str, Any]) -> Values:
    """What of it the Hub wants in a card's heading, under the Hub's names."""
    found = {
        "pretty_name": said.get("pretty_name"),
        "license": said.get("licence"),
        "language": said.get("languages"),
        "task_categories": said.get("task_categories"),
    }
    return {name: value for name, value in found.items() if value}


def about_lines(said: Mapping[str, Any] | None) -> list[str]:
    """The part of the datasheet that people wrote, as Markdown; nothing where there is none."""
    if not said:
        return []
    people = said.get("people", {})
    rows = [(title, said.get(key)) for key, title in _SAID]
    rows += [(title, people.get(key)) for key, title in _SAID_OF_PEOPLE]
    lines = [f"- {title}: {_words(value)}" for title, value in rows if value]
    return ["## About this set", "", *lines] if lines else []


def _words(value: str | list[str]) -> str:
    return plain(value if isinstance(value, str) else ", ".join(value))
