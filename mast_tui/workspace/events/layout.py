"""How a record stands in JSON, said once for both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cached_property, partial
from inspect import Parameter, signature
from types import MappingProxyType, NoneType
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from mast_tui.workspace.events.fields import Fields

Record = TypeVar("Record")
Values = dict[str, object]


class _When(Enum):
    """When a field of a record is written."""

    ALWAYS = 0
    FILLED = 1
    KNOWN = 2


class Kind(NamedTuple):
    """How the values of a field are written, and read from the object that holds them, by name.

    ``read`` takes that object and the name; where it is ``deep``, also what the record around it
    was given.
    """

    write: Callable[[Any], object] | None
    read: Callable[..., object]
    deep: bool = False


class _Field(NamedTuple):
    name: str
    attribute: str
    when: _When
    write: Callable[[Any], object] | None
    read: Callable[..., object]
    deep: bool


Named = tuple[_When, tuple[str, ...]]


def always(*names: str) -> Named:
    """These fields are always written, and must be there; ``json:attribute`` where they differ."""
    return _When.ALWAYS, names


def filled(*names: str) -> Named:
    """These are left out where they are None, 0, false or empty."""
    return _When.FILLED, names


def known(*names: str) -> Named:
    """These are left out where they are None; 0 is a number, and an empty text a text."""
    return _When.KNOWN, names


def compact(values: Mapping[str, object]) -> Values:
    """The values without those that are None, 0, false or an empty text, list or object."""
    return {name: value for name, value in values.items() if value}


class Layout(Generic[Record]):
    """How records of one class stand in JSON, from the types of their fields.

    Texts, numbers, flags and enumerations stand as they are, tuples as lists, and records of other
    classes as their own layout has them. What may be None may be null or missing, and what has a
    default in its class and is not always written may be missing.

    Args:
        cls: A dataclass or a named tuple.
        fields: Its fields in the order in which they are written.
        given: Fields that stand with whatever holds the record, and are not repeated.
        parts: The layouts of records in it.
        kinds: What no type tells, by the name in JSON.
        check: Raises ``ValueError`` for a record that cannot be.
    """

    def __init__(
        self,
        cls: Callable[..., Record],
        *fields: Named,
        given: Iterable[str] = (),
        parts: Iterable[Layout[Any]] = (),
        kinds: Mapping[str, Kind] | None = None,
        check: Callable[[Record], None] | None = None,
    ) -> None:
        self.cls: Final = cls
        self._named = fields
        self._given = tuple(given)
        self._parts = tuple(parts)
        self._kinds = kinds or {}
        self._check = check

    @cached_property
    def _fields(self) -> Sequence[_Field]:
        # Only once it is used: most programs meet few of the records.
        layouts: dict[object, Layout[Any]] = {part.cls: part for part in self._parts}
        types, defaults = get_type_hints(self.cls), signature(self.cls).parameters
        found: list[_Field] = []
        for when, names in self._named:
            for text in names:
                name, _, other = text.partition(":")
                attribute = other or name
                default = Parameter.empty if when is _When.ALWAYS else defaults[attribute].default
                kind = self._kinds.get(name) or _kind_of(types[attribute], default, layouts)
                found.append(_Field(name, attribute, when, *kind))
        return found

    def write(self, record: Record) -> Values:
        """The record as plain values."""
        values: Values = {}
        for name, attribute, when, write, _, _ in self._fields:
            value = getattr(record, attribute)
            if value is not None and write is not None:
                value = write(value)
            if when is _When.ALWAYS or (value is not None if when is _When.KNOWN else value):
                values[name] = value
        return values

    def read(self, fields: Fields, given: Mapping[str, object] | None = None) -> Record:
        """The record.

        Args:
            fields: Its values.
            given: What is not repeated in it, or in a record in it, by name.

        Raises:
            ValueError: Something is missing or cannot be, in words.
        """
        values = {
            attribute: read(fields, name, given) if deep else read(fields, name)
            for name, attribute, _, _, read, deep in self._fields
        }
        if self._given and given is not None:
            values |= {name: given[name] for name in self._given}
        record = self.cls(**values)
        if self._check is not None:
            self._check(record)
        return record


def _kind_of(wanted: Any, default: object, layouts: Mapping[object, Layout[Any]]) -> Kind:
    """How values of a type stand in JSON.

    Args:
        wanted: The type.
        default: What a missing value is; empty where it must be there.
        layouts: Those of records, by their class.
    """
    choices = get_args(wanted)
    if NoneType in choices:
        (wanted,) = (one for one in choices if one is not NoneType)
        default = None
    part = layouts.get(wanted)
    if part is not None:

        def read_part(fields: Fields, name: str, given: Mapping[str, object] | None) -> object:
            # Most that may be None are.
            if default is not Parameter.empty and not fields.has(name):
                return default
            return part.read(fields.child(name), given)

        return Kind(part.write, read_part, True)
    if get_origin(wanted) is tuple:
        each = layouts.get(get_args(wanted)[0])
        if each is None:
            return Kind(list, Fields.texts)
        return Kind(
            lambda records: [each.write(one) for one in records],
            lambda f, name, given: tuple(each.read(one, given) for one in f.children(name)),
            True,
        )
    write = float if wanted is float else None
    return Kind(write, _reader(wanted, default))


def _reader(wanted: Any, default: Any) -> Callable[..., object]:
    """What reads a single value of a type, in as few calls as can be: there are very many."""
    needed: Callable[..., object]
    or_none: Callable[..., object]
    if issubclass(wanted, StrEnum):
        needed = partial(Fields.word, kind=wanted)
        or_none = partial(Fields.word_or_none, kind=wanted)
    else:
        needed, or_none = _PLAIN[wanted]
    if default is Parameter.empty:
        return needed
    if default is None:
        return or_none
    if wanted in (int, float):
        # No number at all is none, as it always was.
        return lambda fields, name: default if (n := or_none(fields, name)) is None else n
    return partial(needed, default=default)


_PLAIN: Final[Mapping[type, tuple[Callable[..., object], Callable[..., object]]]] = (
    MappingProxyType(
        {
            str: (Fields.text, Fields.text_or_none),
            bool: (Fields.flag, Fields.flag_or_none),
            int: (Fields.whole, Fields.whole_or_none),
            float: (Fields.number, Fields.number_or_none),
        }
    )
)
"""How a value is read that must be there, and one that may be missing."""
