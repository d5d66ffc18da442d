"""Which mode of MAST a number means in a file, by the names that the file prints beside it.

Sources that look alike bind 3.2 and 3.3 in opposite ways, so a bare number is never trusted where
a name is to be had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.taxonomy.model import Mode, Taxonomy

_DRIFTING: Final = ("3.2", "3.3")
_BY_NUMBER: Final = "by number, as no name is printed in the file"


@dataclass(frozen=True, slots=True)
class Binding:
    """The slug of each code, and a sentence for people on how 3.2 and 3.3 were bound."""

    slugs: Mapping[str, str]
    in_words: str


def mast_binding(mast: Taxonomy, printed: Iterable[Iterable[str]]) -> Binding:
    """Bind the codes by printed names such as ``3.3 Weak Verification``.

    A name is known by the taxonomy's own names first, then by its aliases. Codes without a
    printed name keep their number, unless a name has given its mode to another code: then they
    get what is left. Raises ``ValueError`` where names and codes do not go one to one.
    """
    slugs = {mode.code: mode.slug for mode in mast.modes}
    named: dict[str, tuple[str, str]] = {}
    for failure in (failure for failures in printed for failure in failures):
        code, _, name = failure.strip().partition(" ")
        mode = _by_name(mast, name)
        if mode is None or code not in slugs:
            continue
        if code in named and named[code][0] != mode.slug:
            raise ValueError(f"{code} is printed as {named[code][1]!r} and as {name!r}")
        named[code] = (mode.slug, name)
    slugs = _one_to_one(slugs, {code: slug for code, (slug, _) in named.items()})
    return Binding(slugs, "; ".join(_in_words(mast, code, slugs, named) for code in _DRIFTING))


def _one_to_one(by_number: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    if len(set(named.values())) < len(named):
        raise ValueError("two codes are printed with names of the same mode")
    left = [slug for slug in by_number.values() if slug not in named.values()]
    slugs = dict(named)
    for code, slug in by_number.items():
        if code not in named and slug in left:
            slugs[code] = slug
            left.remove(slug)
    for code in by_number:
        if code not in slugs:
            slugs[code] = left.pop(0)
    return slugs


def _in_words(
    mast: Taxonomy,
    code: str,
    slugs: Mapping[str, str],
    named: Mapping[str, tuple[str, str]],
) -> str:
    bound = mast.mode(slugs[code])
    how = f"by its name {named[code][1]!r}" if code in named else _BY_NUMBER
    if code not in named and bound.code != code:
        how = "what the printed names leave"
    return f"{code} of the file is {bound.code} {bound.name} ({how})"


def _by_name(mast: Taxonomy, name: str) -> Mode | None:
    wanted = " ".join(name.split()).casefold()
    for mode in mast.modes:
        if mode.name.casefold() == wanted:
            return mode
    for mode in mast.modes:
        if any(alias.name.casefold() == wanted for alias in mode.aliases):
            return mode
    return None
