"""A failure taxonomy: categories, and modes with the texts that help to distinguish them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Category:
    """A group of modes or of other categories; ``under`` is the id of the category above it."""

    id: str
    name: str
    under: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a mode, and the source that uses it."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Confusable:
    """A mode that is easily mistaken for another one, and the difference between the two."""

    slug: str
    difference: str


@dataclass(frozen=True, slots=True)
class Mode:
    """A failure mode.

    ``slug`` is its permanent name within its taxonomy; ``code`` is the short form that people type,
    such as ``1.3``. ``stages`` are of ``pre``, ``execution``, ``post``.
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
"""The slug of open codes: labels of failures that no mode of the taxonomy describes."""

_OPEN_NAME: Final = "Something, none of these"
_OPEN_CODE: Final = "0.0"
_OPEN_DEFINITION: Final = (
    "Something went wrong here that no mode describes. Write down what, in a few words of your "
    "own: such notes are gathered, and may become a mode."
)


def open_mode(code: str = _OPEN_CODE, name: str = _OPEN_NAME) -> Mode:
    """Make the mode of open coding: a failure that no mode of the taxonomy describes.

    Args:
        code: The code that people type and tables show.
        name: The name of the mode.
    """
    return Mode(OPEN_SLUG, code, name, category="", definition=_OPEN_DEFINITION)


Identity = tuple[str, tuple[str, ...], tuple[tuple[str, str, str], ...]]
"""The ``ref`` of a taxonomy, its categories as ``id`` or ``above/id``, and the slug, code and
category of its modes, all in their order. Codes are included because people's files name modes by
them, and people type them.
"""

Group = tuple[str, str, tuple[str, ...]]
"""The id of a category, its name after those of the categories above it, and its modes by slug."""

LAST_PLACE: Final = 99
"""The last position of a mode that two digits can name."""


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Categories and modes in the order of their file, with the hash of its content.

    ``ref`` is ``id@version``, under which labels are stored. ``content_hash`` names the revision:
    it changes with every text, while ``identity`` stays. ``own_open`` is the open mode and
    ``own_levels`` are the names of the levels of categories, if the file has its own. ``places``
    are the positions of its modes, by slug, if earlier versions have fixed them.
    """

    id: str
    version: str
    name: str
    categories: tuple[Category, ...]
    modes: tuple[Mode, ...]
    content_hash: str
    own_open: Mode | None = None
    own_levels: tuple[str, ...] = ()
    places: tuple[tuple[str, int], ...] = ()

    @property
    def ref(self) -> str:
        """The name of the taxonomy in stored labels: ``id@version``."""
        return f"{self.id}@{self.version}"

    @property
    def identity(self) -> Identity:
        """The part that labels rely on: taxonomies of equal identity differ only in their texts."""
        categories = tuple(
            "/".join(above.id for above in self.path(category.id)) for category in self.categories
        )
        modes = tuple((mode.slug, mode.code, mode.category) for mode in self.modes)
        return self.ref, categories, modes

    # Levels

    def path(self, category: str) -> tuple[Category, ...]:
        """Return the categories above the one with this id, from the top, and that one itself."""
        by_id = {other.id: other for other in self.categories}
        path: list[Category] = []
        while category:
            path.insert(0, by_id[category])
            category = path[0].under
        return tuple(path)

    def title(self, category: str) -> str:
        """Return the name of a category after those of the categories above it."""
        return " › ".join(above.name for above in self.path(category))

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels of categories, from the top; modes are one level more."""
        depth = max(len(self.path(category.id)) for category in self.categories)
        default = ("category", "group", *(f"group {level}" for level in range(3, depth + 1)))
        return self.own_levels or default[:depth]

    def at_level(self, level: int) -> tuple[Group, ...]:
        """Return the categories of a level, from 0 at the top, with all modes in each.

        Every mode is in one of them: if its branch ends above the level, in the lowest category of
        the branch.
        """
        paths = {category.id: self.path(category.id) for category in self.categories}
        category_of = {mode.slug: paths[mode.category][: level + 1][-1].id for mode in self.modes}
        groups: list[Group] = []
        for ident, path in paths.items():
            slugs = tuple(slug for slug, category in category_of.items() if category == ident)
            if slugs or len(path) == level + 1:
                groups.append((ident, self.title(ident), slugs))
        return tuple(groups)

    @property
    def by_level(self) -> dict[str, tuple[Group, ...]]:
        """All levels of categories by name, from the top; empty if there is only one level."""
        names = self.levels
        return {name: self.at_level(n) for n, name in enumerate(names)} if names[1:] else {}

    def tree(self, under: str = "") -> Iterator[Category]:
        """Iterate over the categories below one, or over all: each before those below it."""
        for category in self.categories:
            if category.under == under:
                yield category
                yield from self.tree(category.id)

    @property
    def open_mode(self) -> Mode:
        """The mode of open codes: by slug one of ``modes``, that of the file, or the default."""
        defined = next((mode for mode in self.modes if mode.slug == OPEN_SLUG), None)
        defined = defined or self.own_open
        if defined is not None:
            return defined
        is_used = any(mode.code == _OPEN_CODE for mode in self.modes)
        return open_mode(OPEN_SLUG if is_used else _OPEN_CODE)

    @property
    def all_modes(self) -> tuple[Mode, ...]:
        """All modes that a label can have: those of the taxonomy, and last the open one."""
        open_mode = self.open_mode
        return self.modes if open_mode in self.modes else (*self.modes, open_mode)

    def mode(self, slug: str) -> Mode:
        """Return the mode with this slug, also the open one; raises ``KeyError`` without one."""
        for mode in self.modes:
            if mode.slug == slug:
                return mode
        if slug == OPEN_SLUG:
            return self.open_mode
        raise KeyError(slug)

    def find(self, text: str) -> Mode | None:
        """Return the mode with this slug, code or full name (in any case), or None."""
        name = text.strip().casefold()
        for mode in self.all_modes:
            if name in (mode.slug.casefold(), mode.code.casefold(), mode.name.casefold()):
                return mode
        return None

    def by_digits(self, first: str, second: str) -> Mode | None:
        """Return the mode that two digit keys name, or None.

        If every code is two single digits with a dot, the digits are the code. Otherwise they are
        the position of the mode, from 01, and 00 is the open one.

        Args:
            first: The first digit.
            second: The second digit.
        """
        if self.coded_by_digits:
            return next((m for m in self.all_modes if m.code == f"{first}.{second}"), None)
        position = int(first + second)
        if position == 0:
            return self.open_mode
        return next((m for m in self.modes if self._positions()[m.slug] == position), None)

    def _positions(self) -> dict[str, int]:
        """Return the position of each mode: that of earlier versions, else in the file, from 1."""
        return dict(self.places) or {m.slug: n for n, m in enumerate(self.modes, start=1)}

    @property
    def coded_by_digits(self) -> bool:
        """True if every code has the form ``d.d``."""
        return all(
            len(m.code) == 3 and m.code[0].isdigit() and m.code[1] == "." and m.code[2].isdigit()
            for m in self.modes
        )

    def keys_of(self, mode: Mode) -> str:
        """Return the two digits that people type for a mode, dots after the last position."""
        if self.coded_by_digits:
            return mode.code.replace(".", "")
        position = self._positions().get(mode.slug, 0)
        return f"{position:02d}" if position <= LAST_PLACE else "··"


def lasting_places(versions: Iterable[Taxonomy]) -> tuple[tuple[str, int], ...]:
    """Return the position of each mode of the last version: the one that it got when it was new.

    A new mode gets the position after all that were ever used. When the positions are used up, it
    gets one that has become free.

    Args:
        versions: The versions of one taxonomy, from the first to the last.
    """
    ever_used: dict[str, int] = {}
    positions: dict[str, int] = {}
    for version in versions:
        positions = {m.slug: ever_used[m.slug] for m in version.modes if m.slug in ever_used}
        for mode in version.modes:
            if mode.slug in positions:
                continue
            position = max(ever_used.values(), default=0) + 1
            if position > LAST_PLACE:
                free = (n for n in range(1, LAST_PLACE) if n not in positions.values())
                position = next(free, position)
            positions[mode.slug] = position
            ever_used[mode.slug] = position
    return tuple(positions.items())


def differences(old: Taxonomy, new: Taxonomy) -> tuple[str, ...]:
    """Describe the differences between the identities of two taxonomies of one name.

    Args:
        old: The stored taxonomy.
        new: The taxonomy to compare with it.

    Returns:
        A phrase for each difference; none if the identities are equal.
    """
    return tuple(_differences(old, new))


def _differences(old: Taxonomy, new: Taxonomy) -> Iterator[str]:
    was = {mode.slug: mode for mode in old.modes}
    now = {mode.slug: mode for mode in new.modes}
    for slug in (slug for slug in now if slug not in was):
        yield f"mode {slug!r} is new"
    for slug in (slug for slug in was if slug not in now):
        yield f"mode {slug!r} is gone"
    for slug in (slug for slug in was if slug in now):
        old_mode = was[slug]
        new_mode = now[slug]
        if old_mode.code != new_mode.code:
            yield f"{slug!r} has the code {new_mode.code}, not {old_mode.code}"
        if old_mode.category != new_mode.category:
            yield f"{slug!r} is under {new_mode.category!r}, not {old_mode.category!r}"
    if old.identity[1] != new.identity[1] and set(old.identity[1]) == set(new.identity[1]):
        yield "the categories stand in another order"
    elif old.identity[1] != new.identity[1]:
        yield "the categories are others"
    if list(was) != list(now) and set(was) == set(now):
        yield "the modes stand in another order"
