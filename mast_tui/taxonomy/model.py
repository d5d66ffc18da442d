"""A failure taxonomy: categories, and modes with all that helps to tell them apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Category:
    """A group of modes, or of other groups; ``under`` is the id of the one that it stands in."""

    id: str
    name: str
    under: str = ""


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
"""A taxonomy's ``ref``, its categories as ``id`` or ``above/id``, and slug, code and category of
its modes, all in their order. Codes belong to it, for files that people keep name modes by them,
and keys type them.
"""

Group = tuple[str, str, tuple[str, ...]]
"""A category's id, its name after those of all that it stands in, and the modes within, by slug."""

LAST_PLACE: Final = 99
"""Places from this one on no two digits name."""


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Categories and modes in the order of their file, with the hash of its content.

    ``ref`` is ``id@version``, under which labels are stored. ``content_hash`` names the revision:
    it changes with every word, where ``identity`` stays. ``own_open`` is the open mode where the
    file names its own, ``own_levels`` the names of the levels of categories where it does.
    ``places`` are those of its modes, by slug, where earlier versions have given them some.
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
        """The name under which labels keep the taxonomy: ``id@version``."""
        return f"{self.id}@{self.version}"

    @property
    def identity(self) -> Identity:
        """What labels rely on: two taxonomies that are equal in it differ in their texts alone."""
        categories = tuple("/".join(c.id for c in self.path(one.id)) for one in self.categories)
        modes = tuple((mode.slug, mode.code, mode.category) for mode in self.modes)
        return self.ref, categories, modes

    # Levels

    def path(self, category: str) -> tuple[Category, ...]:
        """The category with this id under all that it stands in, the topmost first."""
        by_id = {one.id: one for one in self.categories}
        found: list[Category] = []
        while category:
            found.insert(0, by_id[category])
            category = found[0].under
        return tuple(found)

    def title(self, category: str) -> str:
        """The name of a category after those of all that it stands in."""
        return " › ".join(one.name for one in self.path(category))

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels of categories, from the top; modes are one level more."""
        depth = max(len(self.path(one.id)) for one in self.categories)
        usual = ("category", "group", *(f"group {level}" for level in range(3, depth + 1)))
        return self.own_levels or usual[:depth]

    def at_level(self, level: int) -> tuple[Group, ...]:
        """The categories of a level, 0 being the topmost, with all modes that stand within each.

        Every mode is in one of them: where its branch ends above the level, in the branch's end.
        """
        paths = {one.id: self.path(one.id) for one in self.categories}
        ends = {m.slug: paths[m.category][: level + 1][-1].id for m in self.modes}
        return tuple(
            (one.id, self.title(one.id), tuple(slug for slug, end in ends.items() if end == one.id))
            for one in self.categories
            if len(paths[one.id]) == level + 1 or one.id in ends.values()
        )

    @property
    def by_level(self) -> dict[str, tuple[Group, ...]]:
        """All levels of categories by name, from the top; none where there is one only."""
        names = self.levels
        return {name: self.at_level(n) for n, name in enumerate(names)} if names[1:] else {}

    def tree(self, under: str = "") -> Iterator[Category]:
        """All categories within one, or within none: each before those that it holds."""
        for one in self.categories:
            if one.under == under:
                yield one
                yield from self.tree(one.id)

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
        are the mode's place, from 01, and 00 is the open one.
        """
        if self.coded_by_digits:
            return next((m for m in self.all_modes if m.code == f"{first}.{second}"), None)
        place = int(first + second)
        if place == 0:
            return self.open_mode
        return next((m for m in self.modes if self._place_of()[m.slug] == place), None)

    def _place_of(self) -> dict[str, int]:
        """The place of each mode: that of earlier versions, else that in the file, from 1."""
        return dict(self.places) or {m.slug: place for place, m in enumerate(self.modes, start=1)}

    @property
    def coded_by_digits(self) -> bool:
        """Whether every code has the form ``d.d``."""
        return all(
            len(m.code) == 3 and m.code[0].isdigit() and m.code[1] == "." and m.code[2].isdigit()
            for m in self.modes
        )

    def keys_of(self, mode: Mode) -> str:
        """The two digits that label with this mode, as typed; dots beyond the last place."""
        if self.coded_by_digits:
            return mode.code.replace(".", "")
        place = self._place_of().get(mode.slug, 0)
        return f"{place:02d}" if place <= LAST_PLACE else "··"


def lasting_places(versions: Iterable[Taxonomy]) -> tuple[tuple[str, int], ...]:
    """Give each mode of the last of some versions the place that it had when it came.

    A mode that is new comes after all that there ever were; only where no place is left it takes
    one that has become free.

    Args:
        versions: Of one taxonomy, in the order in which they came.
    """
    places: dict[str, int] = {}
    kept: dict[str, int] = {}
    for version in versions:
        kept = {m.slug: places[m.slug] for m in version.modes if m.slug in places}
        for mode in version.modes:
            if mode.slug not in kept:
                after = max(places.values(), default=0) + 1
                if after > LAST_PLACE:
                    free = (n for n in range(1, LAST_PLACE) if n not in kept.values())
                    after = next(free, after)
                kept[mode.slug] = places[mode.slug] = after
    return tuple(kept.items())


def differences(old: Taxonomy, new: Taxonomy) -> tuple[str, ...]:
    """Tell in words where the identities of two taxonomies of one name differ, none where equal.

    Args:
        old: The one that is known.
        new: The one that is held against it.
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
        before, after = was[slug], now[slug]
        if before.code != after.code:
            yield f"{slug!r} has the code {after.code}, not {before.code}"
        if before.category != after.category:
            yield f"{slug!r} is under {after.category!r}, not {before.category!r}"
    if old.identity[1] != new.identity[1] and set(old.identity[1]) == set(new.identity[1]):
        yield "the categories stand in another order"
    elif old.identity[1] != new.identity[1]:
        yield "the categories are others"
    if list(was) != list(now) and set(was) == set(now):
        yield "the modes stand in another order"
