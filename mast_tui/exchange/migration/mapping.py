"""The modes of a new codebook that each mode of an old one becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from mast_tui.exchange.crosswalk import ANY, CrosswalkEntry, read_crosswalk
from mast_tui.exchange.errors import ExchangeError
from mast_tui.labels import Label, Target
from mast_tui.taxonomy.model import OPEN_SLUG, Mode, Taxonomy
from mast_tui.workspace.registers.tags import TaggedPlace


class ModeChange(StrEnum):
    """The change of a mode."""

    SAME = "same"
    RENAMED = "renamed"
    MERGED = "merged"
    SPLIT = "split"
    DROPPED = "dropped"


@dataclass(frozen=True)
class CodebookMap:
    """The modes of a new codebook that each mode of an old codebook becomes.

    Attributes:
        old: The old codebook.
        new: The new codebook.
        targets: The new slugs by old slug, in the order of the old modes.
        places: The new slugs of single open codes. All other open codes stay open codes, unless
            ``targets`` has an entry for them.
    """

    old: Taxonomy
    new: Taxonomy
    targets: Mapping[str, tuple[str, ...]]
    places: Mapping[TaggedPlace, str] = field(default_factory=dict)

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """The old slugs by new slug, in the order of the new modes.

        Open codes are left out, because no one has looked for a mode that only they become.
        """
        return {
            mode.slug: tuple(
                slug
                for slug, slugs in self.targets.items()
                if mode.slug in slugs and slug != OPEN_SLUG
            )
            for mode in self.new.modes
        }

    @property
    def added(self) -> tuple[str, ...]:
        """The new slugs that no old mode becomes, so that no one has looked for them."""
        return tuple(slug for slug, sources in self.sources.items() if not sources)

    def one(self, slug: str) -> str | None:
        """Return the new slug of an old slug; None if that is split, dropped or unknown."""
        slugs = self._new_slugs(slug)
        return slugs[0] if len(slugs) == 1 else None

    def of_label(self, label: Label) -> str | None:
        """Return the new slug of a label's mode; None if the label is not carried over."""
        if label.mode == OPEN_SLUG:
            key = label.annotator, label.trace_id, label.target, True
            return self.places.get(key) or self.one(OPEN_SLUG)
        return self.one(label.mode)

    def of_note(self, annotator: str, trace_id: str, key: str) -> str | None:
        """Return the slug of the label that a note on a span becomes; None for most notes.

        Args:
            annotator: The annotator's name.
            trace_id: The trace's id.
            key: The span's key.
        """
        return self.places.get((annotator, trace_id, Target(key, key), False))

    def _new_slugs(self, slug: str) -> tuple[str, ...]:
        return self.targets.get(slug, (OPEN_SLUG,) if slug == OPEN_SLUG else ())

    def change(self, slug: str) -> ModeChange:
        """Return the kind of change of a mode of the old codebook, by its slug."""
        slugs = self._new_slugs(slug)
        if not slugs:
            return ModeChange.DROPPED
        if len(slugs) > 1:
            return ModeChange.SPLIT
        if len(self.sources.get(slugs[0], ())) > 1:
            return ModeChange.MERGED
        return ModeChange.SAME if slugs[0] == slug else ModeChange.RENAMED


def codebook_map(old: Taxonomy, new: Taxonomy, path: Path | None) -> CodebookMap:
    """Return the map of each old mode: as a file says, otherwise to the mode of the same slug.

    Args:
        old: The codebook of the labels.
        new: The codebook to which they are carried.
        path: A crosswalk, None if all slugs are the same.

    Raises:
        ExchangeError: The file cannot be read or names no mode, both are the same codebook, or a
            mode has neither an entry nor a namesake.
    """
    if old.ref == new.ref:
        raise ExchangeError(
            f"{old.ref} is both the old and the new taxonomy; give the new one another version. "
            "Words alone may change under one version, without a migration"
        )
    stated = {} if path is None else _stated_targets(old, new, path)
    slugs = {mode.slug for mode in new.modes}
    targets = {
        mode.slug: stated.get(mode.slug, (mode.slug,) if mode.slug in slugs else None)
        for mode in old.modes
    }
    unmapped = [slug for slug, new_slugs in targets.items() if new_slugs is None]
    if unmapped:
        names = ", ".join(map(repr, unmapped))
        raise ExchangeError(
            f"{new.ref} has no mode {names}; say with --map FILE what becomes "
            f'of each, under [modes]: {unmapped[0]} = "its new slug", a list for a split, '
            "[] where it is dropped"
        )
    if OPEN_SLUG in stated:
        targets[OPEN_SLUG] = stated[OPEN_SLUG]
    return CodebookMap(old, new, {slug: new_slugs or () for slug, new_slugs in targets.items()})


def _stated_targets(old: Taxonomy, new: Taxonomy, path: Path) -> dict[str, tuple[str, ...]]:
    """Return the new slugs by old slug that a crosswalk states."""
    entries = [entry for entry in read_crosswalk(path) if entry.taxonomy in (ANY, old.ref)]
    if not entries:
        raise ExchangeError(f"{path}: says nothing of {old.ref}; put its modes under [modes]")
    targets: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        source = _mode_named(old, entry.source, path)
        slugs = [_mode_named(new, target, path).slug for target in entry.targets]
        targets[source.slug] = tuple(dict.fromkeys([*targets.get(source.slug, ()), *slugs]))
    _refuse_contradictions(entries, path)
    return targets


def _mode_named(taxonomy: Taxonomy, name: str, path: Path) -> Mode:
    mode = taxonomy.find(name)
    if mode is None:
        raise ExchangeError(f"{path}: {name!r} is no mode of {taxonomy.ref}")
    return mode


def _refuse_contradictions(entries: Sequence[CrosswalkEntry], path: Path) -> None:
    """Refuse a mode that is dropped in one place and kept in another."""
    dropped_slugs = {entry.source for entry in entries if not entry.targets}
    mapped_slugs = {entry.source for entry in entries if entry.targets}
    if dropped_slugs & mapped_slugs:
        raise ExchangeError(
            f"{path}: {min(dropped_slugs & mapped_slugs)!r} is both dropped and kept"
        )
