"""A mode made of open codes: the next version of a codebook, and the map that carries them over."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Final, TypedDict, Unpack

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.migration.mapping import CodebookMap
from mast_tui.session.open_codes import OpenCode
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.taxonomy.model import Taxonomy

_NO_SLUG: Final = re.compile(r"[^a-z0-9]+")
_OWN_VERSION: Final = re.compile(r"(.*)\+(\d+)\Z", re.DOTALL)
_LONGEST: Final = 64
"""Letters of a slug, at most."""


class ModeWords(TypedDict, total=False):
    """Further fields of a new mode.

    Without a ``slug`` it follows from the name, and without a ``code`` it is the next free one of
    the category. ``examples`` say when the mode applies.
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
    **words: Unpack[ModeWords],
) -> Taxonomy:
    """Make the next version of a codebook, which has one mode more.

    Args:
        old: The codebook as it is.
        name: What the mode is called.
        category: The id of the category under which it stands, as the last one.
        version: The version; by default ``3+1`` follows ``3``, and ``3+2`` that.
        used_versions: The names ``id@version`` that a default version may not have.
        words: Further fields of the mode.

    Returns:
        The codebook, with all else as it was.

    Raises:
        ExchangeError: There is no such category, or no code or slug is left.
        TaxonomyError: A name, a slug, a code or a version cannot be, or another mode has it.
    """
    if category not in [known_category.id for known_category in old.categories]:
        names = ", ".join(known_category.id for known_category in old.categories)
        raise ExchangeError(f"{old.ref} has no category {category!r}; there are: {names}")
    slug = words.get("slug") or _NO_SLUG.sub("_", name.casefold()).strip("_")[:_LONGEST].strip("_")
    if not slug:
        raise ExchangeError(f"no slug follows from {name!r}; give one with --slug")
    mode = {
        "slug": slug,
        "code": words.get("code") or _next_code(old, category, slug),
        "name": name,
        "category": category,
        "definition": words.get("definition", ""),
        "applies": list(dict.fromkeys(words.get("examples", ()))),
    }
    values = to_dict(old)
    modes = [*_tables(values, "modes")]
    last = max(
        (i for i, known_category in enumerate(modes) if known_category["category"] == category),
        default=-1,
    )
    values["modes"] = (
        [*modes[: last + 1], mode, *modes[last + 1 :]] if last >= 0 else [*modes, mode]
    )
    values["version"] = version or _next_version(old, used_versions)
    return from_dict(values, f"{old.ref} with {name!r}")


def candidate_map(
    old: Taxonomy, new: Taxonomy, slug: str, codes: Collection[OpenCode]
) -> CodebookMap:
    """Make the map by which open codes become the first labels of a mode, and all else stays.

    Args:
        old: The codebook that they are under.
        new: The one ``with_mode``.
        slug: The mode.
        codes: Those that become labels of it.
    """
    same = {mode.slug: (mode.slug,) for mode in old.modes}
    return CodebookMap(old, new, same, {code.identity: slug for code in codes})


def taxonomy_toml(taxonomy: Taxonomy) -> str:
    """Write a taxonomy as a file that says all of it, with the modes in their order."""
    values = to_dict(taxonomy)
    lines = [f"{name} = {_toml(values[name])}" for name in ("id", "version", "name")]
    lines += [f"{name} = {_toml(values[name])}" for name in ("open", "levels") if name in values]
    for table in ("categories", "modes"):
        for table_item in _tables(values, table):
            lines += ["", f"[[{table}]]"]
            lines += [f"{name} = {_toml(value)}" for name, value in table_item.items() if value]
    return "\n".join([*lines, ""])


def _tables(values: dict[str, object], name: str) -> Iterator[dict[str, Any]]:
    value = values[name]
    assert isinstance(value, list)
    yield from value


def _toml(value: object) -> str:
    """Return a value of one line; JSON's strings are TOML's, but for one character."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            items = ",\n".join(f"    {_toml(item)}" for item in value)
            return f"[\n{items},\n]"
        case dict():
            return (
                "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
            )
        case other:
            raise AssertionError(f"no such value in a taxonomy: {other!r}")


def _next_version(old: Taxonomy, used_versions: Collection[str]) -> str:
    match = _OWN_VERSION.match(old.version)
    begin, number = (old.version, 0) if match is None else (match[1], int(match[2]))
    while True:
        number += 1
        candidate = replace(old, version=f"{begin}+{number}")
        if candidate.ref not in used_versions:
            return candidate.version


def _next_code(old: Taxonomy, category: str, slug: str) -> str:
    """Return the next free code of a category, such as ``1.6``; the slug if codes differ."""
    if not old.coded_by_digits:
        return slug
    codes = {mode.code for mode in old.modes} | {old.open_mode.code}
    first_digits = [mode.code[0] for mode in old.modes if mode.category == category]
    firsts = first_digits[-1:] or [d for d in "123456789" if all(code[0] != d for code in codes)]
    for first in firsts:
        for second in "123456789":
            if f"{first}.{second}" not in codes:
                return f"{first}.{second}"
    raise ExchangeError(f"all codes of {category!r} are taken; give another with --code")
