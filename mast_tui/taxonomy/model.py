"""A failure taxonomy: categories, and modes with all that helps to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass


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


Identity = tuple[str, tuple[str, ...], tuple[tuple[str, str, str], ...]]
"""A taxonomy's ``ref``, the ids of its categories, and slug, code and category of its modes, all in
their order. Codes belong to it, for files that people keep name modes by them, and keys type them.
"""


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Categories and modes in the order of their file, with the hash of its content.

    ``ref`` is ``id@version``, under which labels are stored. ``content_hash`` names the revision:
    it changes with every word, where ``identity`` stays.
    """

    id: str
    version: str
    name: str
    categories: tuple[Category, ...]
    modes: tuple[Mode, ...]
    content_hash: str

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

    def mode(self, slug: str) -> Mode:
        """The mode with this slug; raises ``KeyError`` where there is none."""
        for mode in self.modes:
            if mode.slug == slug:
                return mode
        raise KeyError(slug)

    def find(self, text: str) -> Mode | None:
        """The mode with this slug, code or exact name (in any case), or None."""
        wanted = text.strip().casefold()
        for mode in self.modes:
            if wanted in (mode.slug.casefold(), mode.code.casefold(), mode.name.casefold()):
                return mode
        return None

    def by_digits(self, first: str, second: str) -> Mode | None:
        """The mode that two digit keys name.

        Where every code is two single digits with a dot, the digits are the code; elsewhere they
        are the mode's place in the file, from 01.
        """
        if self.coded_by_digits:
            return next((m for m in self.modes if m.code == f"{first}.{second}"), None)
        place = int(first + second) - 1
        return self.modes[place] if 0 <= place < len(self.modes) else None

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
        return f"{self.modes.index(mode) + 1:02d}"
