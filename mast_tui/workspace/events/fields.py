"""Typed reading of JSON objects that came from a file."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

from mast_tui.errors import MastError

Word = TypeVar("Word", bound=StrEnum)

GREATEST_WHOLE: Final = (1 << 53) - 1
"""What every reader of JSON takes for a whole number, and every database keeps."""


class InvalidRecord(MastError, ValueError):
    """A record that is not what this version writes."""


class Fields:
    """The fields of one JSON object; whatever is missing or of another type is an error."""

    __slots__ = ("_fields", "_name")

    def __init__(self, value: object, name: str) -> None:
        # Nearly always the first, which is told much sooner.
        if not isinstance(value, dict) and not isinstance(value, Mapping):
            raise InvalidRecord(f"{name!r} is no JSON object")
        self._fields: Mapping[object, object] = value
        self._name = name

    def has(self, name: str) -> bool:
        """Whether there is such a field, and it is not null."""
        return self._fields.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string."""
        value = self._fields.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def text_or_none(self, name: str) -> str | None:
        """A string, or None where it is null or missing."""
        value = self._fields.get(name)
        return value if value is None or isinstance(value, str) else self.text(name)

    def whole(self, name: str) -> int:
        """A whole number."""
        value = self._fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name, "a whole number")
        if not -GREATEST_WHOLE <= value <= GREATEST_WHOLE:
            raise self._wrong(name, "a whole number of at most 53 bits")
        return value

    def whole_or_none(self, name: str) -> int | None:
        """A whole number, or None where it is null or missing."""
        return None if self._fields.get(name) is None else self.whole(name)

    def number(self, name: str) -> float:
        """A number."""
        value = self.number_or_none(name)
        if value is None:
            raise self._wrong(name, "a number")
        return value

    def number_or_none(self, name: str) -> float | None:
        """A number, or None where it is null or missing."""
        value = self._fields.get(name)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(name, "a number")
        return float(value)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self._fields.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def flag_or_none(self, name: str) -> bool | None:
        """True or false, or None where it is null or missing."""
        return None if self._fields.get(name) is None else self.flag(name)

    def word(self, name: str, kind: type[Word], default: Word | None = None) -> Word:
        """One of the words of an enumeration."""
        value = self._fields.get(name, default)
        try:
            return kind(value if isinstance(value, str) else self.text(name))
        except InvalidRecord:
            raise
        except ValueError:
            raise self._wrong(name, f"one of {', '.join(kind)}") from None

    def word_or_none(self, name: str, kind: type[Word]) -> Word | None:
        """One of the words of an enumeration, or None where it is null or missing."""
        return None if self._fields.get(name) is None else self.word(name, kind)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; none where it is missing."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise self._wrong(name, "a list of strings")
        return tuple(str(value) for value in values)

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of numbers; none where it is missing."""
        return tuple(Fields({name: value}, name).number(name) for value in self._list(name))

    def named_texts(self, name: str) -> tuple[tuple[str, str], ...]:
        """An object of strings, as pairs in its order; none where it is missing."""
        value = self._fields.get(name, {})
        if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
            raise self._wrong(name, "an object of strings")
        return tuple((str(key), str(text)) for key, text in value.items())

    def child(self, name: str) -> Fields:
        """An object in this one."""
        return Fields(self._fields.get(name), name)

    def child_or_none(self, name: str) -> Fields | None:
        """An object in this one, or None where it is null or missing."""
        return None if self._fields.get(name) is None else self.child(name)

    def children(self, name: str) -> tuple[Fields, ...]:
        """A list of objects; none where it is missing."""
        return tuple(Fields(value, name) for value in self._list(name))

    def _list(self, name: str) -> list[object]:
        value = self._fields.get(name, [])
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def _wrong(self, name: str, wanted: str) -> InvalidRecord:
        found = "missing" if name not in self._fields else repr(self._fields[name])[:60]
        return InvalidRecord(f"{name!r} in {self._name!r} is {found}, not {wanted}")
