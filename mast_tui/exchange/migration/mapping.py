"""The translation of modes from an old codebook to a new one.

A new version can also turn open codes into a mode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from msgspec.structs import replace

from mast_tui.exchange.crosswalk import ANY, CrosswalkEntry, read_crosswalk
from mast_tui.exchange.errors import ExchangeError
from mast_tui.labels import Label, Target
from mast_tui.session.open_codes import OpenCode
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.taxonomy.model import OPEN_CODE_SLUG, Mode, Taxonomy
from mast_tui.workspace.registers.tags import TaggedPlace


class ModeChange(StrEnum):
    """The kinds of change of a mode."""

    SAME = "same"
    RENAMED = "renamed"
    MERGED = "merged"
    SPLIT = "split"
    DROPPED = "dropped"


@dataclass(frozen=True)
class CodebookMap:
    """The translation of an old codebook's modes to a new codebook.

    Attributes:
        old: The old codebook.
        new: The new codebook.
        targets: The new slugs by old slug, in the order of the old modes.
        places: The new slugs of single open codes. The key is the annotator, the trace, the target,
            and True for a label or False for a note. Other open codes stay open, unless ``targets``
            has an entry for them.
    """

    old: Taxonomy
    new: Taxonomy
    targets: Mapping[str, tuple[str, ...]]
    places: Mapping[TaggedPlace, str] = field(default_factory=dict)

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """The old slugs by new slug, in the order of the new modes.

        Open codes are left out. They belong to no mode, so a trace without them has no verdict on
        the new mode.
        """
        return {
            mode.slug: tuple(
                slug
                for slug, slugs in self.targets.items()
                if mode.slug in slugs and slug != OPEN_CODE_SLUG
            )
            for mode in self.new.modes
        }

    @property
    def added(self) -> tuple[str, ...]:
        """The new slugs without an old mode. No one has looked for them yet."""
        return tuple(slug for slug, sources in self.sources.items() if not sources)

    def single_target(self, slug: str) -> str | None:
        """Return the new slug of an old mode; None if it is split, dropped or unknown."""
        slugs = self._new_slugs(slug)
        return slugs[0] if len(slugs) == 1 else None

    def slug_for_label(self, label: Label) -> str | None:
        """Return the new slug of a label's mode; None if the label is not carried over."""
        if label.mode == OPEN_CODE_SLUG:
            # Single open codes can have a mode of their own.
            is_label = True
            tagged_place = (label.annotator, label.trace_id, label.target, is_label)
            return self.places.get(tagged_place) or self.single_target(OPEN_CODE_SLUG)
        return self.single_target(label.mode)

    def slug_for_note(self, annotator: str, trace_id: str, key: str) -> str | None:
        """Return the mode of the label that replaces a note; None if it stays a note.

        Args:
            annotator: The annotator's name.
            trace_id: The trace's id.
            key: The span's key.
        """
        is_label = False
        return self.places.get((annotator, trace_id, Target(key, key), is_label))

    def _new_slugs(self, slug: str) -> tuple[str, ...]:
        return self.targets.get(slug, (OPEN_CODE_SLUG,) if slug == OPEN_CODE_SLUG else ())

    def change(self, slug: str) -> ModeChange:
        """Return the kind of change of an old mode."""
        slugs = self._new_slugs(slug)
        if not slugs:
            return ModeChange.DROPPED
        if len(slugs) > 1:
            return ModeChange.SPLIT
        if len(self.sources.get(slugs[0], ())) > 1:
            return ModeChange.MERGED
        return ModeChange.SAME if slugs[0] == slug else ModeChange.RENAMED


def codebook_map(old: Taxonomy, new: Taxonomy, path: Path | None) -> CodebookMap:
    """Return the map from a crosswalk.

    Modes without an entry keep their slug.

    Args:
        old: The codebook of the labels.
        new: The new codebook.
        path: The file of the crosswalk; None without one.

    Raises:
        ExchangeError: The file is not usable, both codebooks are the same, or an old mode has no
            counterpart.
    """
    if old.ref == new.ref:
        raise ExchangeError(
            f"{old.ref} is both the old and the new taxonomy; give the new one another "
            "version. Changes of wording alone need neither a new version nor a migration"
        )
    targets_in_file = {} if path is None else _targets_in_crosswalk(old, new, path)
    known_targets = {mode.slug: (mode.slug,) for mode in new.modes} | targets_in_file
    unmapped = [mode.slug for mode in old.modes if mode.slug not in known_targets]
    if unmapped:
        names = ", ".join(map(repr, unmapped))
        raise ExchangeError(
            f"{new.ref} has no mode {names}; map each under [modes] of --map FILE: "
            f'{unmapped[0]} = "its new slug", a list to split it, [] to drop it'
        )
    targets = {mode.slug: known_targets[mode.slug] for mode in old.modes}
    # ``modes`` may lack the mode of open codes.
    if OPEN_CODE_SLUG in targets_in_file:
        targets[OPEN_CODE_SLUG] = targets_in_file[OPEN_CODE_SLUG]
    return CodebookMap(old, new, targets)


def _targets_in_crosswalk(old: Taxonomy, new: Taxonomy, path: Path) -> dict[str, tuple[str, ...]]:
    """Read the new slugs by old slug from a crosswalk."""
    entries = [entry for entry in read_crosswalk(path) if entry.taxonomy in (ANY, old.ref)]
    if not entries:
        raise ExchangeError(f"{path}: maps no mode of {old.ref}; put its modes under [modes]")
    targets: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        source = _mode_named(old, entry.source, path)
        slugs = [_mode_named(new, target, path).slug for target in entry.targets]
        targets[source.slug] = tuple(dict.fromkeys([*targets.get(source.slug, ()), *slugs]))
    _check_no_contradictions(entries, path)
    return targets


def _mode_named(taxonomy: Taxonomy, name: str, path: Path) -> Mode:
    mode = taxonomy.find(name)
    if mode is None:
        raise ExchangeError(f"{path}: {name!r} is not a mode of {taxonomy.ref}")
    return mode


def _check_no_contradictions(entries: Sequence[CrosswalkEntry], path: Path) -> None:
    """Check that no mode is both dropped and kept."""
    dropped_modes = {entry.source for entry in entries if not entry.targets}
    mapped_modes = {entry.source for entry in entries if entry.targets}
    contradictory_modes = dropped_modes & mapped_modes
    if contradictory_modes:
        raise ExchangeError(f"{path}: {min(contradictory_modes)!r} is both dropped and kept")


_NOT_IN_SLUG: Final = re.compile(r"[^a-z0-9]+")
_OWN_VERSION: Final = re.compile(r"(.*)\+(\d+)\Z", re.DOTALL)
_MAX_SLUG_LENGTH: Final = 64
"""The most characters of a slug made from a name."""


class ModeFields(TypedDict, total=False):
    """Further fields of a new mode.

    The default ``slug`` is made from the name. The default ``code`` is the next free one of the
    category. ``examples`` say when the mode applies.
    """

    definition: str
    examples: Collection[str]
    slug: str | None
    code: str | None


def with_mode(
    old: Taxonomy,
    name: str,
    category: str,
    *,
    version: str | None = None,
    used_versions: Collection[str] = (),
    **fields: Unpack[ModeFields],
) -> Taxonomy:
    """Return the next version of a codebook, with one more mode.

    Args:
        old: The codebook.
        name: The name of the new mode.
        category: The id of the category. The mode becomes its last one.
        version: The new version; by default ``3+1`` after ``3``, and ``3+2`` after ``3+1``.
        used_versions: The references ``id@version`` that a default version must avoid.
        fields: Further fields of the mode.

    Raises:
        ExchangeError: There is no such category or no free code, or the name gives no slug.
        TaxonomyError: The name, slug, code or version is not valid, or another mode has it.
    """
    if category not in [known_category.id for known_category in old.categories]:
        names = ", ".join(known_category.id for known_category in old.categories)
        raise ExchangeError(f"{old.ref} has no category {category!r}; there are: {names}")
    slug_of_name = _NOT_IN_SLUG.sub("_", name.casefold()).strip("_")
    slug = fields.get("slug") or slug_of_name[:_MAX_SLUG_LENGTH].strip("_")
    if not slug:
        raise ExchangeError(f"no slug can be made from {name!r}; give one with --slug")
    mode = {
        "slug": slug,
        "code": fields.get("code") or _next_code(old, category, slug),
        "name": name,
        "category": category,
        "definition": fields.get("definition", ""),
        "applies": list(dict.fromkeys(fields.get("examples", ()))),
    }
    values: dict[str, Any] = to_dict(old)
    modes = list(values["modes"])
    indices = [i for i, known_mode in enumerate(modes) if known_mode["category"] == category]
    modes.insert(indices[-1] + 1 if indices else len(modes), mode)
    values["modes"] = modes
    values["version"] = version or _next_version(old, used_versions)
    return from_dict(values, f"{old.ref} with {name!r}")


def candidate_map(
    old: Taxonomy, new: Taxonomy, slug: str, codes: Collection[OpenCode]
) -> CodebookMap:
    """Return a map that turns open codes into labels of a new mode.

    Args:
        old: The codebook of the open codes.
        new: The codebook with the new mode.
        slug: The slug of the new mode.
        codes: The open codes to turn into labels.
    """
    same_slugs = {mode.slug: (mode.slug,) for mode in old.modes}
    return CodebookMap(old, new, same_slugs, {code.identity: slug for code in codes})


def taxonomy_toml(taxonomy: Taxonomy) -> str:
    """Return the text of a taxonomy file."""
    values: dict[str, Any] = to_dict(taxonomy)
    names = ("id", "version", "name", "open", "levels")
    lines = [f"{name} = {_toml_value(values[name])}" for name in names if name in values]
    for array in ("categories", "modes"):
        for table in values[array]:
            lines += ["", f"[[{array}]]"]
            lines += [f"{name} = {_toml_value(value)}" for name, value in table.items() if value]
    return "\n".join([*lines, ""])


def _toml_value(value: object) -> str:
    match value:
        case str():
            # A JSON string is valid TOML, except for this character.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            items = ",\n".join(f"    {_toml_value(item)}" for item in value)
            return f"[\n{items},\n]"
        case dict():
            fields = ", ".join(f"{name} = {_toml_value(item)}" for name, item in value.items())
            return "{ " + fields + " }"
        case other:
            raise AssertionError(f"no such value in a taxonomy: {other!r}")


def _next_version(old: Taxonomy, used_versions: Collection[str]) -> str:
    """Return the next unused version of a codebook: ``3+1`` after ``3``."""
    match = _OWN_VERSION.match(old.version)
    base = old.version
    number = 0
    if match is not None:  # the version ends with ``+`` and a number
        base = match[1]
        number = int(match[2])
    while True:
        number += 1
        candidate = replace(old, version=f"{base}+{number}")
        if candidate.ref not in used_versions:
            return candidate.version


def _next_code(old: Taxonomy, category: str, slug: str) -> str:
    """Return the next free code of a category, such as ``1.6``.

    In a taxonomy without such codes, return the slug.

    Raises:
        ExchangeError: No code is free.
    """
    if not old.coded_by_digits:
        return slug
    codes = {mode.code for mode in old.modes} | {old.open_code_mode.code}
    codes_in_category = [mode.code for mode in old.modes if mode.category == category]
    if codes_in_category:
        first_digits = [codes_in_category[-1][0]]
    else:
        # A new category has a new first digit.
        used_digits = {code[0] for code in codes}
        first_digits = [digit for digit in "123456789" if digit not in used_digits]
    for first_digit in first_digits:
        for second_digit in "123456789":
            code = f"{first_digit}.{second_digit}"
            if code not in codes:
                return code
    raise ExchangeError(f"all codes of {category!r} are taken; give another one with --code")
