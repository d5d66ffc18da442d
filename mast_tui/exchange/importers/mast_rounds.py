"""Taxonomies made of the headings under which people labelled in the rounds of the MAST study.

A heading is a code and a name on its first line, and below it what the mode means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from mast_tui.taxonomy.loader import from_dict
from mast_tui.taxonomy.model import Taxonomy

_FIRST_LINE: Final = re.compile(r"\s*([0-9]+)\.([0-9]+)\s+(\S.*)")
VERSION: Final = "1"


def taxonomy_of(scheme: str, headings: Iterable[str]) -> Taxonomy:
    """The taxonomy ``<scheme>@1`` with one mode per heading, in the order of their codes.

    The first number of a code is its category, which has no name of its own in the file. Raises
    ``ValueError`` for a heading without code and name.
    """
    ordered = sorted(headings, key=_code)
    groups = sorted({_code(heading)[0] for heading in ordered})
    return from_dict(
        {
            "id": _slug(scheme).replace("_", "-"),
            "version": VERSION,
            "name": f"MAST study, {scheme}",
            "categories": [{"id": f"group-{n}", "name": f"Group {n}"} for n in groups],
            "modes": [_mode(heading) for heading in ordered],
        },
        scheme,
    )


def slugs_by_heading(headings: Iterable[str]) -> dict[str, str]:
    """The slug of the mode that each heading stands for."""
    return {heading: _slug(_name(heading)) for heading in headings}


def _mode(heading: str) -> dict[str, object]:
    first, second = _code(heading)
    return {
        "slug": _slug(_name(heading)),
        "code": f"{first}.{second}",
        "name": _name(heading),
        "category": f"group-{first}",
        "definition": "\n".join(heading.strip().split("\n")[1:]),
    }


def _code(heading: str) -> tuple[int, int]:
    found = _FIRST_LINE.match(heading)
    if found is None:
        raise ValueError(f"{heading[:40]!r} is no heading like '1.3 Step repetition'")
    return int(found[1]), int(found[2])


def _name(heading: str) -> str:
    found = _FIRST_LINE.match(heading)
    if found is None:
        raise ValueError(f"{heading[:40]!r} is no heading like '1.3 Step repetition'")
    return found[3].strip()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")[:64].strip("_")
