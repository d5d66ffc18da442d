"""AdaMAST's taxonomies: what its files call codes, as a taxonomy of this project."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mast_tui.taxonomy.loader import from_dict, load_taxonomy
from mast_tui.taxonomy.model import Taxonomy

ID: Final = "adamast"
_SHIPPED: Final = Path(__file__).parent.with_name("taxonomies") / "adamast_mast.toml"
_LAYERS: Final = ("full_layer", "annotation_layer")
_CATEGORIES: Final = (("category_a", "A"), ("category_b", "B"), ("category_c", "C"))
Values = Mapping[str, Any]


def shipped_mast() -> Taxonomy:
    """AdaMAST's own list of MAST's modes, ``MAST-1`` to ``MAST-14``."""
    return load_taxonomy(_SHIPPED)


def is_taxonomy(document: object) -> bool:
    """Whether a document is a taxonomy: flat ``codes``, or codes in layers."""
    if not isinstance(document, Mapping) or "diagnoses" in document:
        return False
    return isinstance(document.get("codes"), list) or any(
        isinstance(document.get(layer), Mapping) for layer in _LAYERS
    )


def taxonomy_of(document: object, source: str) -> Taxonomy:
    """The taxonomy ``adamast@HASH`` of a file's codes; the version is a hash of what they say.

    Raises ``ValueError`` for a document without usable codes.
    """
    if not isinstance(document, Mapping):
        raise ValueError("no taxonomy of AdaMAST: it is an object with 'codes'")
    name = document.get("display_name") or document.get("domain") or "AdaMAST taxonomy"
    return _taxonomy(list(_codes(document)), name if isinstance(name, str) else ID, source)


def taxonomy_of_seen(seen: Sequence[tuple[str, str]]) -> Taxonomy:
    """A taxonomy of the codes and names that diagnoses use, where theirs is not at hand."""
    codes: list[Values] = [{"id": code, "name": name} for code, name in sorted(dict(seen).items())]
    return _taxonomy(codes or [{"id": "none"}], "AdaMAST, codes that were used", ID)


def _codes(document: Values) -> Iterator[Values]:
    if isinstance(document.get("codes"), list):
        yield from (code for code in document["codes"] if isinstance(code, Mapping))
        return
    layers = [document[name] for name in _LAYERS if isinstance(document.get(name), Mapping)]
    for layer in layers[:1]:
        for key, category in _CATEGORIES:
            values = layer.get(key, ())
            pairs = values.items() if isinstance(values, Mapping) else (("", v) for v in values)
            for name, code in pairs:
                if isinstance(code, Mapping):
                    yield {"id": name, "category": category, **code}


def _taxonomy(codes: Sequence[Values], name: str, source: str) -> Taxonomy:
    modes: list[dict[str, object]] = []
    used: set[str] = set()
    names: set[str] = set()
    for code in codes:
        number = _word(str(code.get("id") or code.get("code") or ""))
        if not number or number.casefold() in used:
            continue  # a code without a name of its own, or told twice: the first one counts
        called = str(code.get("name") or code.get("label") or number).strip()
        if called.casefold() in names | used:
            called = f"{called} ({number})"
        used.add(number.casefold())
        names.add(called.casefold())
        modes.append(
            {
                "slug": f"code-{_slug(number)}",
                "code": number,
                "name": called,
                "category": f"group-{_slug(_group(code, number))}",
                "definition": str(code.get("description") or code.get("definition") or ""),
                "applies": _sentences(code.get("when_to_use")),
                "applies_not": _sentences(code.get("when_not_to_use")),
            }
        )
    groups = dict.fromkeys(str(mode["category"]) for mode in modes)
    digest = hashlib.sha256(json.dumps(modes, sort_keys=True).encode()).hexdigest()
    return from_dict(
        {
            "id": ID,
            "version": digest[:8],
            "name": name,
            "categories": [{"id": group, "name": group.removeprefix("group-")} for group in groups],
            "modes": modes,
        },
        source,
    )


def _group(code: Values, number: str) -> str:
    return str(code.get("category") or number.partition(".")[0] or "all")


def _sentences(value: object) -> list[str]:
    return [value] if isinstance(value, str) and value.strip() else []


def _word(text: str) -> str:
    """A code as it may be typed: printable, without what separates names."""
    return "".join(char for char in text.strip() if char.isprintable() and char not in ",|@ ")[:64]


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:40].strip("-")
    return plain or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
