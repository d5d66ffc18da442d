"""A failure taxonomy: categories, and modes with texts that distinguish them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct


class Category(Struct, frozen=True):
    """A group of modes or categories; ``under`` is the category above it, empty at the top."""

    id: str
    name: str
    under: str = ""


class Alias(Struct, frozen=True):
    """Another name of a mode, and the source that uses it."""

    name: str
    source: str


class Confusable(Struct, frozen=True):
    """A mode that is easily mistaken for another mode, and the difference between both."""

    slug: str
    difference: str


class Mode(Struct, frozen=True):
    """A failure mode.

    Attributes:
        slug: The permanent name within the taxonomy.
        code: The short form that people type, such as ``1.3``.
        name: The name that people read.
        category: The id of the category.
        stages: Some of ``pre``, ``execution`` and ``post``.
        definition: The definition.
        applies: Cases in which the mode applies.
        applies_not: Cases in which the mode does not apply.
        confusable: Modes that are easily mistaken for this one.
        detection: The way to detect the mode.
        fixes: The ways to prevent the failure.
        aliases: Names of the mode in other sources.
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


OPEN_CODE_SLUG: Final = "none_of_these"
"""The slug of the mode of open codes, for failures that no mode of the taxonomy describes."""

_DEFAULT_NAME: Final = "None of these modes"
_DEFAULT_CODE: Final = "0.0"
_OPEN_CODE_DEFINITION: Final = (
    "Something went wrong here that no mode describes. Describe it in a few words of your "
    "own; such notes are collected and may become a mode."
)


def open_code_mode(code: str = _DEFAULT_CODE, name: str = _DEFAULT_NAME) -> Mode:
    """Make the mode of open codes, for failures that no mode of the taxonomy describes.

    Args:
        code: The code that people type and tables show.
        name: The name of the mode.
    """
    return Mode(OPEN_CODE_SLUG, code, name, category="", definition=_OPEN_CODE_DEFINITION)


Identity = tuple[str, tuple[str, ...], tuple[tuple[str, str, str], ...]]
"""The ``ref`` of a taxonomy, the paths of its categories, and the keys of its modes, in order.

The key of a mode is its slug, code and category. Codes are included because people and files use
them to name modes.
"""


class Group(NamedTuple):
    """A category with all modes in and below it.

    ``title`` is the name after the names of the categories above. ``slugs`` are its modes.
    """

    id: str
    title: str
    slugs: tuple[str, ...]


LAST_POSITION: Final = 99
"""The greatest position that two digits can name."""


class Taxonomy(Struct, frozen=True):
    """The categories and modes of a file in order, with the hash of its content.

    Attributes:
        id: The permanent name of the taxonomy.
        version: The version. Labels are stored under ``ref``, which is ``id@version``.
        name: The name that people read.
        categories: The categories.
        modes: The modes, without the mode of open codes unless the file lists it.
        content_hash: A hash that changes with every text.
        own_open_code_mode: The mode of open codes in the file; None for the default.
        own_levels: The names of the levels of categories; empty for the default names.
        positions: Pairs of a mode's slug and its position in earlier versions, if there are any.
    """

    id: str
    version: str
    name: str
    categories: tuple[Category, ...]
    modes: tuple[Mode, ...]
    content_hash: str
    own_open_code_mode: Mode | None = None
    own_levels: tuple[str, ...] = ()
    positions: tuple[tuple[str, int], ...] = ()

    @property
    def ref(self) -> str:
        """The name of the taxonomy in stored labels: ``id@version``."""
        return f"{self.id}@{self.version}"

    @property
    def identity(self) -> Identity:
        """The part that labels rely on; taxonomies of equal identity differ only in texts."""
        categories = tuple(
            "/".join(above.id for above in self.path(category.id)) for category in self.categories
        )
        modes = tuple((mode.slug, mode.code, mode.category) for mode in self.modes)
        return self.ref, categories, modes

    def path(self, category: str) -> tuple[Category, ...]:
        """Return the categories from the top down to a category, by its id."""
        category_by_id = {entry.id: entry for entry in self.categories}
        path: list[Category] = []
        category_id = category
        while category_id:
            path.insert(0, category_by_id[category_id])
            category_id = path[0].under
        return tuple(path)

    def title(self, category: str) -> str:
        """Return the name of a category after the names of the categories above."""
        return " › ".join(above.name for above in self.path(category))

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels of categories, from the top."""
        depth = max(len(self.path(category.id)) for category in self.categories)
        default = ("category", "group", *(f"group {level}" for level in range(3, depth + 1)))
        return self.own_levels or default[:depth]

    def at_level(self, level: int) -> tuple[Group, ...]:
        """Return the categories of a level with all modes in and below them; 0 is the top level.

        A mode in a higher category stays in that category.
        """
        path_by_id = {category.id: self.path(category.id) for category in self.categories}
        slugs_by_id: dict[str, list[str]] = {category_id: [] for category_id in path_by_id}
        for mode in self.modes:
            path = path_by_id[mode.category]
            category = path[min(level, len(path) - 1)]
            slugs_by_id[category.id].append(mode.slug)
        groups: list[Group] = []
        for category_id, path in path_by_id.items():
            slugs = tuple(slugs_by_id[category_id])
            if slugs or len(path) == level + 1:
                groups.append(Group(category_id, self.title(category_id), slugs))
        return tuple(groups)

    @property
    def by_level(self) -> dict[str, tuple[Group, ...]]:
        """The categories by name of their level, from the top; empty for only one level."""
        names = self.levels
        if len(names) < 2:
            return {}
        return {name: self.at_level(level) for level, name in enumerate(names)}

    def tree(self, under: str = "") -> Iterator[Category]:
        """Yield the categories below a category, each before its own subcategories.

        Args:
            under: The id of the category; empty for all categories.
        """
        for category in self.categories:
            if category.under == under:
                yield category
                yield from self.tree(category.id)

    @property
    def open_code_mode(self) -> Mode:
        """The mode of open codes: from ``modes``, ``own_open_code_mode``, or the default.

        If another mode has the default's code, the default has its slug as the code.
        """
        for mode in self.modes:
            if mode.slug == OPEN_CODE_SLUG:
                return mode
        if self.own_open_code_mode is not None:
            return self.own_open_code_mode
        code_is_used = any(mode.code == _DEFAULT_CODE for mode in self.modes)
        return open_code_mode(OPEN_CODE_SLUG if code_is_used else _DEFAULT_CODE)

    @property
    def all_modes(self) -> tuple[Mode, ...]:
        """All modes that a label can have, with that of open codes last."""
        open_code_mode = self.open_code_mode
        return self.modes if open_code_mode in self.modes else (*self.modes, open_code_mode)

    def mode(self, slug: str) -> Mode:
        """Return the mode with a slug; may be that of open codes.

        Raises:
            KeyError: There is no such mode.
        """
        for mode in self.modes:
            if mode.slug == slug:
                return mode
        if slug == OPEN_CODE_SLUG:
            return self.open_code_mode
        raise KeyError(slug)

    def find(self, text: str) -> Mode | None:
        """Return the mode with a slug, code or name, in any case, or None."""
        name = text.strip().casefold()
        for mode in self.all_modes:
            if name in (mode.slug.casefold(), mode.code.casefold(), mode.name.casefold()):
                return mode
        return None

    def by_digits(self, first: str, second: str) -> Mode | None:
        """Return the mode for two typed digits, or None.

        If all codes have the form ``d.d``, the digits are those of the code. Otherwise they are the
        position of the mode, from 01; 00 is that of open codes.

        Args:
            first: The first digit.
            second: The second digit.
        """
        if self.coded_by_digits:
            return next((mode for mode in self.all_modes if mode.code == f"{first}.{second}"), None)
        position = int(first + second)
        if position == 0:
            return self.open_code_mode
        position_by_slug = self._position_by_slug()
        return next((mode for mode in self.modes if position_by_slug[mode.slug] == position), None)

    def _position_by_slug(self) -> dict[str, int]:
        """Return the position of each mode in earlier versions, or else in the file, from 1."""
        if self.positions:
            return dict(self.positions)
        return {mode.slug: position for position, mode in enumerate(self.modes, start=1)}

    @property
    def coded_by_digits(self) -> bool:
        """True if all codes have the form ``d.d``."""
        codes = [mode.code for mode in self.modes]
        return all(
            len(code) == 3 and code[1] == "." and (code[0] + code[2]).isdigit() for code in codes
        )

    def keys_of(self, mode: Mode) -> str:
        """Return the two digits to type for a mode; ``··`` if there are none."""
        if self.coded_by_digits:
            return mode.code.replace(".", "")
        position = self._position_by_slug().get(mode.slug, 0)
        return f"{position:02d}" if position <= LAST_POSITION else "··"


def lasting_positions(versions: Iterable[Taxonomy]) -> tuple[tuple[str, int], ...]:
    """Return the slug and position of each mode in the newest version of a taxonomy.

    A mode keeps its position in later versions, because people type it. A new mode gets the next
    unused position, or a free one if all have been used.

    Args:
        versions: The versions of one taxonomy, from the first to the last.
    """
    # ``last_positions`` has the modes of all versions so far, ``positions`` those of one version.
    last_positions: dict[str, int] = {}
    positions: dict[str, int] = {}
    for version in versions:
        slugs = [mode.slug for mode in version.modes]
        positions = {slug: last_positions[slug] for slug in slugs if slug in last_positions}
        for slug in slugs:
            if slug not in positions:
                position = max(last_positions.values(), default=0) + 1
                if position > LAST_POSITION:
                    free_positions = {*range(1, LAST_POSITION + 1)}.difference(positions.values())
                    position = min(free_positions, default=position)
                positions[slug] = last_positions[slug] = position
    return tuple(positions.items())


def differences(old: Taxonomy, new: Taxonomy) -> tuple[str, ...]:
    """Describe the differences between two taxonomies that matter for labels.

    Args:
        old: The stored taxonomy.
        new: The taxonomy to compare with it.
    """
    old_modes = {mode.slug: mode for mode in old.modes}
    new_modes = {mode.slug: mode for mode in new.modes}
    phrases = [f"mode {slug!r} is new" for slug in new_modes if slug not in old_modes]
    phrases += [f"mode {slug!r} is gone" for slug in old_modes if slug not in new_modes]
    for slug, old_mode in old_modes.items():
        new_mode = new_modes.get(slug)
        if new_mode is None:
            continue
        if old_mode.code != new_mode.code:
            phrases.append(f"{slug!r} has the code {new_mode.code}, not {old_mode.code}")
        if old_mode.category != new_mode.category:
            phrases.append(f"{slug!r} is under {new_mode.category!r}, not {old_mode.category!r}")
    # Modes were compared one by one above.
    _ref, old_categories, _modes = old.identity
    _ref, new_categories, _modes = new.identity
    if old_categories != new_categories:
        if set(old_categories) == set(new_categories):
            phrases.append("the categories are in another order")
        else:
            phrases.append("the categories differ")
    if list(old_modes) != list(new_modes) and set(old_modes) == set(new_modes):
        phrases.append("the modes are in another order")
    return tuple(phrases)
