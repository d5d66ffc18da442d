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
    """Return the next version of a codebook, which has one more mode.

    Args:
        old: The codebook.
        name: The name of the mode.
        category: The id of its category, in which it becomes the last mode.
        version: The new version; by default ``3+1`` follows ``3``, and ``3+2`` follows ``3+1``.
        used_versions: The names ``id@version`` that a default version may not have.
        words: Further fields of the mode.

    Raises:
        ExchangeError: There is no such category, or no free code or slug.
        TaxonomyError: A name, slug, code or version is not valid, or another mode has it.
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
    modes = [*_items_of(values, "modes")]
    indices = [i for i, known_mode in enumerate(modes) if known_mode["category"] == category]
    modes.insert(indices[-1] + 1 if indices else len(modes), mode)
    values["modes"] = modes
    values["version"] = version or _next_version(old, used_versions)
    return from_dict(values, f"{old.ref} with {name!r}")


def candidate_map(
    old: Taxonomy, new: Taxonomy, slug: str, codes: Collection[OpenCode]
) -> CodebookMap:
    """Return a map by which some open codes become labels of a new mode, and all else stays.

    Args:
        old: The codebook of the open codes.
        new: The codebook that ``with_mode`` returned.
        slug: The slug of the new mode.
        codes: The open codes that become its labels.
    """
    same = {mode.slug: (mode.slug,) for mode in old.modes}
    return CodebookMap(old, new, same, {code.identity: slug for code in codes})


def taxonomy_toml(taxonomy: Taxonomy) -> str:
    """Return the complete text of a taxonomy file, with the modes in their order."""
    values = to_dict(taxonomy)
    lines = [f"{name} = {_toml_value(values[name])}" for name in ("id", "version", "name")]
    lines += [
        f"{name} = {_toml_value(values[name])}" for name in ("open", "levels") if name in values
    ]
    for table in ("categories", "modes"):
        for table_item in _items_of(values, table):
            lines += ["", f"[[{table}]]"]
            lines += [
                f"{name} = {_toml_value(value)}" for name, value in table_item.items() if value
            ]
    return "\n".join([*lines, ""])


def _items_of(values: dict[str, object], name: str) -> Iterator[dict[str, Any]]:
    value = values[name]
    assert isinstance(value, list)
    yield from value


def _toml_value(value: object) -> str:
    """Return a string, list or dict as a TOML value."""
    match value:
        case str():
            # A JSON string is valid TOML, except for this character.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            items = ",\n".join(f"    {_toml_value(item)}" for item in value)
            return f"[\n{items},\n]"
        case dict():
            return (
                "{ "
                + ", ".join(f"{name} = {_toml_value(item)}" for name, item in value.items())
                + " }"
            )
        case other:
            raise AssertionError(f"no such value in a taxonomy: {other!r}")


def _next_version(old: Taxonomy, used_versions: Collection[str]) -> str:
    """Return the first free version after that of a codebook: ``3+1`` after ``3``."""
    match = _OWN_VERSION.match(old.version)
    base = old.version
    number = 0
    if match is not None:
        base = match[1]
        number = int(match[2])
    while True:
        number += 1
        candidate = replace(old, version=f"{base}+{number}")
        if candidate.ref not in used_versions:
            return candidate.version


def _next_code(old: Taxonomy, category: str, slug: str) -> str:
    """Return the next free code of a category, such as ``1.6``.

    Return the slug if the taxonomy has codes of another form.

    Raises:
        ExchangeError: No code is free.
    """
    if not old.coded_by_digits:
        return slug
    codes = {mode.code for mode in old.modes} | {old.open_mode.code}
    codes_in_category = [mode.code for mode in old.modes if mode.category == category]
    if codes_in_category:
        first_digits = [codes_in_category[-1][0]]
    else:
        # A new category has a first digit of its own.
        used_digits = {code[0] for code in codes}
        first_digits = [digit for digit in "123456789" if digit not in used_digits]
    for first_digit in first_digits:
        for second_digit in "123456789":
            code = f"{first_digit}.{second_digit}"
            if code not in codes:
                return code
    raise ExchangeError(f"all codes of {category!r} are taken; give another with --code")
