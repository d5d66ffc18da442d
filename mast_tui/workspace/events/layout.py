"""How a record stands in JSON, said once for both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cached_property
from inspect import Parameter, signature
from types import NoneType
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

    ``read`` also takes what the record around it was given.
    """

    write: Callable[[Any], object] | None
    read: Callable[[Fields, str, Mapping[str, object]], object]


class _Field(NamedTuple):
    name: str
    attribute: str
    when: _When
    kind: Kind


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
                found.append(_Field(name, attribute, when, kind))
        return found

    def write(self, record: Record) -> Values:
        """The record as plain values."""
        values: Values = {}
        for name, attribute, when, (write, _) in self._fields:
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
        given = given or {}
        values = {
            attribute: kind.read(fields, name, given) for name, attribute, _, kind in self._fields
        }
        record = self.cls(**values, **{name: given[name] for name in self._given})
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
    optional = [one for one in get_args(wanted) if one is not NoneType]
    if NoneType in get_args(wanted):
        write, read = _plain(optional[0], layouts)
        return Kind(
            write,
            lambda fields, name, given: read(fields, name, given) if fields.has(name) else None,
        )
    write, read = _plain(wanted, layouts)
    if default is Parameter.empty or get_origin(wanted) is tuple:
        return Kind(write, read)
    null = wanted is int
    return Kind(
        write,
        lambda fields, name, given: (
            read(fields, name, given) if fields.has(name, null=not null) else default
        ),
    )


def _plain(wanted: Any, layouts: Mapping[object, Layout[Any]]) -> Kind:
    """How values of a type stand in JSON that are there."""
    if wanted in layouts:
        part = layouts[wanted]
        return Kind(part.write, lambda fields, name, given: part.read(fields.child(name), given))
    if get_origin(wanted) is tuple and get_args(wanted)[0] in layouts:
        part = layouts[get_args(wanted)[0]]
        return Kind(
            lambda records: [part.write(one) for one in records],
            lambda fields, name, given: tuple(
                part.read(one, given) for one in fields.children(name)
            ),
        )
    if get_origin(wanted) is tuple:
        return Kind(list, lambda fields, name, _: fields.texts(name))
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return Kind(None, lambda fields, name, _: fields.word(name, wanted))
    return {
        str: Kind(None, lambda fields, name, _: fields.text(name)),
        bool: Kind(None, lambda fields, name, _: fields.flag(name)),
        int: Kind(None, lambda fields, name, _: fields.whole(name)),
        # As it is read back: a whole number that stays one would be hashed as another.
        float: Kind(float, lambda fields, name, _: fields.number(name)),
    }[wanted]
