"""Reading checked values out of the tables of a taxonomy file, with messages that help."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.errors import MastError


class TaxonomyError(MastError, ValueError):
    """A taxonomy that cannot be used; the message names file, place and what to do."""


_SLUG: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*\Z")
_TYPE_NAMES: Final = {bool: "true or false", int: "a number", float: "a number", str: "text"}


class Table:
    """One table of the file, and where it stands: ``FILE: mode 3 'step_repetition'``."""

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self._values = values
        self.where = where

    def called(self, name: str) -> None:
        """Name the table in messages from now on."""
        self.where = f"{self.where} {name!r}"

    def error(self, message: str) -> TaxonomyError:
        """An error at this table, to be raised."""
        return TaxonomyError(f"{self.where}: {message}")

    def only(self, known: Sequence[str]) -> None:
        """Refuse keys that nobody would read: most often they are slips of the pen."""
        for key in self._values:
            if key not in known:
                raise self.error(f"unknown key {key!r}; known are {', '.join(known)}")

    def text(self, key: str, *, default: str | None = None) -> str:
        """The prose under ``key``, its white space evened out."""
        value = self._values.get(key)
        if value is None:
            if default is None:
                raise self.error(f'{key!r} is missing; add {key} = "…"')
            return default
        if not isinstance(value, str):
            raise self.error(f'{key!r} is {_kind(value)}, not text; write {key} = "…"')
        text = _even(value)
        if not text and default is None:
            raise self.error(f"{key!r} is empty")
        _refuse_surrogates(self, key, text)
        return text

    def word(self, key: str, *, default: str | None = None) -> str:
        """A short name without white space, ``,``, ``|`` and ``@``, which separate names."""
        word = self.text(key, default=default)
        if not word:
            raise self.error(f"{key!r} is empty")
        if not word.isprintable() or len(word) > 64 or any(c in ",|@ " for c in word):
            raise self.error(
                f"{key!r} is {word!r}; it may have up to 64 printable characters "
                "and no space, ',', '|' or '@'"
            )
        return word

    def slug(self, key: str) -> str:
        """A lasting name: lower-case ASCII letters and digits, joined by ``_`` or ``-``."""
        slug = self.text(key)
        if len(slug) > 64 or _SLUG.match(slug) is None:
            raise self.error(
                f"{key!r} is {slug!r}; use up to 64 lower-case letters a to z and digits, "
                "joined by '_' or '-'"
            )
        return slug

    def choice(self, key: str, known: Sequence[str]) -> str:
        """One of the names in ``known``."""
        chosen = self.text(key)
        if chosen not in known:
            raise self.error(f"{key!r} is {chosen!r}; it must be one of {', '.join(known)}")
        return chosen

    def choices(self, key: str, known: Sequence[str]) -> tuple[str, ...]:
        """Any of the names in ``known``, each at most once."""
        chosen = self.texts(key)
        for name in chosen:
            if name not in known:
                raise self.error(f"{key!r} has {name!r}; known are {', '.join(known)}")
        if len(set(chosen)) < len(chosen):
            raise self.error(f"{key!r} names something twice")
        return chosen

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of texts under ``key``; none where the key is missing."""
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.error(f'{key!r} is {_kind(value)}, not a list; write {key} = ["…"]')
        texts = []
        for place, item in enumerate(value, start=1):
            if not isinstance(item, str) or not item.strip():
                what = "empty" if isinstance(item, str) else f"{_kind(item)}, not text"
                raise self.error(f"entry {place} of {key!r} is {what}")
            texts.append(_even(item))
            _refuse_surrogates(self, key, item)
        return tuple(texts)

    def tables(self, key: str, *, needed: bool = True) -> list[Table]:
        """The tables under ``key``: ``[[modes]]`` in a file; at least one where needed."""
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.error(f"{key!r} is {_kind(value)}, not a list of tables; write [[{key}]]")
        if needed and not value:
            raise self.error(f"no {key}; add at least one under [[{key}]]")
        noun = {"categories": "category", "modes": "mode", "aliases": "alias"}.get(key, key)
        tables = []
        for place, item in enumerate(value, start=1):
            if not isinstance(item, Mapping):
                raise self.error(f"{noun} {place} is {_kind(item)}, not a table")
            tables.append(Table(item, f"{self.where}: {noun} {place}"))
        return tables


def refuse_duplicates(source: str, noun: str, names: Sequence[Sequence[str]]) -> None:
    """Refuse two entries that share a name: a slug, code or name finds one entry only.

    ``names`` holds the names of each entry, the first of them the one used in messages. Case
    makes no difference, because what people type is matched without it.
    """
    seen: dict[str, int] = {}
    for place, entry in enumerate(names):
        for name in {name.casefold(): name for name in entry}.values():
            other = seen.setdefault(name.casefold(), place)
            if other != place:
                raise TaxonomyError(
                    f"{source}: {noun} {place + 1} {entry[0]!r}: {name!r} already names "
                    f"{noun} {other + 1} {names[other][0]!r}; give each its own"
                )


def _even(text: str) -> str:
    return " ".join(text.split())


def _kind(value: object) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def _refuse_surrogates(table: Table, key: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise table.error(f"{key!r} holds half a character (a lone surrogate)") from error
