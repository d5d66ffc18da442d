"""A failure taxonomy: categories, and modes with all that helps to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Category:
    """A group of modes."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name under which a mode stands in older files, and where."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Confusable:
    """A mode that is easily taken for this one, and how to tell the two apart."""

    slug: str
    difference: str


@dataclass(frozen=True, slots=True)
class Mode:
    """One failure mode.

    ``slug`` names it for good within its taxonomy; ``code`` is the short form people type, such
    as ``1.3``. ``stages`` are of ``pre``, ``execution``, ``post``.
    """

    slug: str
    code: str
    name: str
    category: str
    stages: tuple[str, ...] = ()
    definition: str = ""
    applies: tuple[str, ...] = ()
    applies_not: tuple[str, ...] = ()
    confusable: tuple[Confusable, ...] = ()
    detection: str = ""
    fixes: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()


OPEN_SLUG: Final = "none_of_these"
"""The slug under which labels stand that are none of a taxonomy's modes: open codes."""

_OPEN_NAME: Final = "Something, none of these"
_OPEN_CODE: Final = "0.0"
_OPEN_DEFINITION: Final = (
    "Something went wrong here that no mode describes. Write down what, in a few words of your "
    "own: such notes are gathered, and may become a mode."
)


def open_mode(code: str = _OPEN_CODE, name: str = _OPEN_NAME) -> Mode:
    """Make the mode of open coding: a failure that is none of the modes there are.

    Args:
        code: What people type and tables show.
        name: What it is called.
    """
    return Mode(OPEN_SLUG, code, name, category="", definition=_OPEN_DEFINITION)


Identity = tuple[str, tuple[str, ...], tuple[tuple[str, str, str], ...]]
"""A taxonomy's ``ref``, the ids of its categories, and slug, code and category of its modes, all in
their order. Codes belong to it, for files that people keep name modes by them, and keys type them.
"""


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Categories and modes in the order of their file, with the hash of its content.

    ``ref`` is ``id@version``, under which labels are stored. ``content_hash`` names the revision:
    it changes with every word, where ``identity`` stays. ``own_open`` is the open mode where the
    file names its own.
    """

    id: str
    version: str
    name: str
    categories: tuple[Category, ...]
    modes: tuple[Mode, ...]
    content_hash: str
    own_open: Mode | None = None

    @property
    def ref(self) -> str:
        """The name under which labels keep the taxonomy: ``id@version``."""
        return f"{self.id}@{self.version}"

    @property
    def identity(self) -> Identity:
        """What labels rely on: two taxonomies that are equal in it differ in their texts alone."""
        categories = tuple(category.id for category in self.categories)
        modes = tuple((mode.slug, mode.code, mode.category) for mode in self.modes)
        return self.ref, categories, modes

    @property
    def open_mode(self) -> Mode:
        """The mode of labels that are none of ``modes``, among which it never is.

        A taxonomy in which that slug is a mode has no other.
        """
        own = next((mode for mode in self.modes if mode.slug == OPEN_SLUG), None) or self.own_open
        if own is not None:
            return own
        is_taken = any(mode.code == _OPEN_CODE for mode in self.modes)
        return open_mode(OPEN_SLUG if is_taken else _OPEN_CODE)

    @property
    def all_modes(self) -> tuple[Mode, ...]:
        """All that a label can be of: the modes, and last the open one."""
        found = self.open_mode
        return self.modes if found in self.modes else (*self.modes, found)

    def mode(self, slug: str) -> Mode:
        """The mode with this slug, also the open one; raises ``KeyError`` where there is none."""
        for mode in self.modes:
            if mode.slug == slug:
                return mode
        if slug == OPEN_SLUG:
            return self.open_mode
        raise KeyError(slug)

    def find(self, text: str) -> Mode | None:
        """The mode with this slug, code or exact name (in any case), or None."""
        wanted = text.strip().casefold()
        for mode in self.all_modes:
            if wanted in (mode.slug.casefold(), mode.code.casefold(), mode.name.casefold()):
                return mode
        return None

    def by_digits(self, first: str, second: str) -> Mode | None:
        """The mode that two digit keys name.

        Where every code is two single digits with a dot, the digits are the code; elsewhere they
        are the mode's place in the file, from 01, and 00 is the open one.
        """
        if self.coded_by_digits:
            return next((m for m in self.all_modes if m.code == f"{first}.{second}"), None)
        place = int(first + second)
        if place == 0:
            return self.open_mode
        return self.modes[place - 1] if place <= len(self.modes) else None

    @property
    def coded_by_digits(self) -> bool:
        """Whether every code has the form ``d.d``."""
        return all(
            len(m.code) == 3 and m.code[0].isdigit() and m.code[1] == "." and m.code[2].isdigit()
            for m in self.modes
        )

    def keys_of(self, mode: Mode) -> str:
        """The two digits that label with this mode, as typed."""
        if self.coded_by_digits:
            return mode.code.replace(".", "")
        return f"{self.modes.index(mode) + 1:02d}" if mode in self.modes else "00"
