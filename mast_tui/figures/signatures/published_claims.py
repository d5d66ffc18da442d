"""What a published study says of modes, shown beside what follows from the data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

CLASSES: Final = ("fatal", "benign", "both")


@dataclass(frozen=True, slots=True)
class Stated:
    """The class that a source gives to modes, by slug: ``fatal``, ``benign`` or ``both``."""

    source: str
    classes: Mapping[str, str]


def stated_for(taxonomy_ref: str) -> Stated | None:
    """What is stated of the modes of a taxonomy (``id@version``), None where nothing is known."""
    text = files("mast_tui.figures.signatures").joinpath("published_claims.toml").read_text("utf-8")
    document = tomllib.loads(text)
    if taxonomy_ref != f"{document['taxonomy']}@{document['version']}":
        return None
    classes = {slug: name for name in CLASSES for slug in document[name]}
    return Stated(document["source"], classes)
