"""``adamast``: what AdaMAST's judges say of traces, under the taxonomy that it has learned.

A file is what ``adamast judge --output`` writes (an object with ``diagnoses``), or a list of
diagnoses, or one a line. The default judge picks every code that applies, the single one exactly
one code, which says nothing of the others.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.exchange.import_batch import (
    Gathered,
    ImportedWork,
    Incoming,
    imported_kind,
    shipped_taxonomy,
)
from mast_tui.exchange.trace_files import read_each, read_json
from mast_tui.labels import JUDGE_PREFIX, Evidence, Label, VerdictValue
from mast_tui.taxonomy.loader import from_dict
from mast_tui.taxonomy.model import Taxonomy

ID: Final = "adamast"
_LAYERS: Final = ("full_layer", "annotation_layer")
_CATEGORIES: Final = (("category_a", "A"), ("category_b", "B"), ("category_c", "C"))
Values = Mapping[str, Any]


def shipped_mast() -> Taxonomy:
    """AdaMAST's own list of MAST's modes, ``MAST-1`` to ``MAST-14``."""
    return shipped_taxonomy("adamast_mast")


def is_taxonomy(document: object) -> bool:
    """Return whether a document is a taxonomy: flat ``codes``, or codes in layers."""
    if not isinstance(document, Mapping) or "diagnoses" in document:
        return False
    return isinstance(document.get("codes"), list) or any(
        isinstance(document.get(layer), Mapping) for layer in _LAYERS
    )


def taxonomy_of(document: object, source: str) -> Taxonomy:
    """Return the taxonomy ``adamast@HASH`` of a file's codes; the version is their hash.

    Raises ``ValueError`` for a document without usable codes.

    Args:
        document: The JSON document.
        source: The name of the source.
    """
    if not isinstance(document, Mapping):
        raise ValueError("no taxonomy of AdaMAST: it is an object with 'codes'")
    name = document.get("display_name") or document.get("domain") or "AdaMAST taxonomy"
    return _made_of(list(_codes_of(document)), name if isinstance(name, str) else ID, source)


def taxonomy_of_seen(seen: Sequence[tuple[str, str]]) -> Taxonomy:
    """Return a taxonomy of the codes and names that diagnoses use, where theirs is not at hand."""
    codes: list[Values] = [{"id": code, "name": name} for code, name in sorted(dict(seen).items())]
    return _made_of(codes or [{"id": "none"}], "AdaMAST, codes that were used", ID)


def _codes_of(document: Values) -> Iterator[Values]:
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


def _made_of(codes: Sequence[Values], name: str, source: str) -> Taxonomy:
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
    """Return a code as it may be typed: printable, without what separates names."""
    return "".join(char for char in text.strip() if char.isprintable() and char not in ",|@ ")[:64]


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:40].strip("-")
    return plain or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


JUDGE: Final = "judge:adamast"
Record = Mapping[str, Any]


@dataclass(slots=True)
class _AdamastBatch(Gathered):
    """The contents of the files: judgements with their location, and taxonomies by path."""

    diagnoses: list[tuple[Path, str, Record, Record]] = field(default_factory=list)
    lists: dict[Path, Taxonomy] = field(default_factory=dict)


def read_adamast(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read diagnoses; a folder stands for the JSON files in it.

    Their taxonomy is the file that they name, where it is among the files or beside them, or the
    only one among them; else AdaMAST's own list of MAST's modes where all codes are of it; else
    one made of the codes that were used, so that nothing is said of the others.

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.
    """
    batch = _AdamastBatch()
    for file, document in read_each(files, batch.problems, read_json):
        try:
            _take(file, document, batch)
        except ValueError as error:
            batch.wrong(file, "file", error)
    for file in dict.fromkeys(file for file, _, _, _ in batch.diagnoses):
        of_file = [diagnosis for diagnosis in batch.diagnoses if diagnosis[0] == file]
        try:
            taxonomy, whole, how = _taxonomy(file, of_file, batch)
        except ValueError as error:
            batch.wrong(file, "codes", error)
            continue
        batch.taxonomies[taxonomy.ref] = taxonomy
        batch.notes.append(f"{file.name}: codes are those of {taxonomy.ref} ({how})")
        for _, location, head, record in of_file:
            try:
                draft = _draft(annotator or _judge(head, record), file, record, taxonomy, whole)
                if draft.key in batch.drafts:
                    raise ValueError(f"trace {draft.trace_id!r} comes twice; keep one diagnosis")
            except ValueError as error:
                batch.wrong(file, location, error)
                continue
            batch.keep(draft)
    unanswered = sum(not (draft.labels or draft.verdicts) for draft in batch.drafts.values())
    if unanswered:
        without = counted(unanswered, "diagnosis names", "diagnoses name")
        batch.notes.append(f"{without} no code, and 'none_apply' is not set")
    return batch.done()


def _take(file: Path, document: object, batch: _AdamastBatch) -> None:
    if is_taxonomy(document):
        batch.lists[file.resolve()] = taxonomy_of(document, str(file))
        return
    head: Record = document if isinstance(document, Mapping) else {}
    records = head.get("diagnoses") if "diagnoses" in head else document
    records = records if isinstance(records, list) else [records]
    for number, record in enumerate(records, start=1):
        location = f"diagnosis {number}"
        if isinstance(record, Mapping) and ("failure_modes" in record or "code" in record):
            batch.diagnoses.append((file, location, head, record))
        else:
            reason = "has neither 'failure_modes' nor 'code'; this is no diagnosis of AdaMAST"
            batch.wrong(file, location, reason)


def _taxonomy(
    file: Path, diagnoses: Sequence[tuple[Path, str, Record, Record]], batch: _AdamastBatch
) -> tuple[Taxonomy, bool, str]:
    """Return the taxonomy of a file's diagnoses, whether it is whole, and how it was found."""
    named = diagnoses[0][2].get("taxonomy")
    if isinstance(named, str) and named:
        for path in (Path(named), file.parent / Path(named.replace("\\", "/")).name):
            if path.resolve() in batch.lists:
                return batch.lists[path.resolve()], True, f"the taxonomy in {path.name}"
            try:
                return taxonomy_of(read_json(path), str(path)), True, f"from {path.name}"
            except (ValueError, OSError):
                continue
    elif len(batch.lists) == 1:
        path, taxonomy = next(iter(batch.lists.items()))
        return taxonomy, True, f"the taxonomy in {path.name}"
    seen = [pair for *_, record in diagnoses for pair in _codes(record)]
    mast = shipped_mast()
    if seen and all(mast.find(code) is not None for code, _ in seen):
        return mast, True, "AdaMAST's own list of MAST's modes, by its codes"
    how = "only the codes that are used, as their taxonomy's file is not here"
    return taxonomy_of_seen(seen), False, how


def _codes(record: Record) -> list[tuple[str, str]]:
    """Return the codes that a diagnosis names, each with what it is called there."""
    modes = record.get("failure_modes", [record])
    return [
        (str(mode["code"]), str(mode.get("name") or mode.get("label") or mode["code"]))
        for mode in (modes if isinstance(modes, list) else ())
        if isinstance(mode, Mapping) and mode.get("code")
    ]


def _judge(head: Record, record: Record) -> str:
    """Return the judge's name: ``judge:MODEL@adamast`` where a model is named."""
    judge = head.get("judge")
    metadata = record.get("judge_metadata")
    model = judge.get("model") if isinstance(judge, Mapping) else None
    if not model and isinstance(metadata, Mapping):
        model = metadata.get("judge_model")
    if not isinstance(model, str) or not model.strip():
        return JUDGE
    plain = "".join(char for char in model.strip() if char.isprintable() and char not in ",|")
    return f"{JUDGE_PREFIX}{plain[:100]}@adamast"


def _draft(name: str, file: Path, record: Record, taxonomy: Taxonomy, whole: bool) -> ImportedWork:
    trace_id = record.get("trace_id")
    if not isinstance(trace_id, str | int) or not str(trace_id).strip():
        raise ValueError("has no 'trace_id'")
    kind = imported_kind(name)
    draft = ImportedWork(name, str(trace_id), taxonomy.ref, kind, finished_at="", file=file)
    picks_all = "failure_modes" in record
    modes = record["failure_modes"] if picks_all else [record]
    if not isinstance(modes, list):
        raise ValueError("'failure_modes' is no list")
    for value in modes:
        if not isinstance(value, Mapping) or not isinstance(value.get("code"), str):
            raise ValueError("a failure mode has no 'code'")
        mode = taxonomy.find(value["code"])
        if mode is None:
            raise ValueError(f"code {value['code']!r} is none of {taxonomy.ref}")
        draft.add_label(_label(draft, mode.slug, value))
    if whole and picks_all and (modes or record.get("none_apply") is True):
        marked = {label.mode for label in draft.labels.values()}
        for mode in taxonomy.modes:
            if mode.slug not in marked:
                draft.add_verdict(mode.slug, VerdictValue.ABSENT)
    return draft


def _label(draft: ImportedWork, slug: str, value: Record) -> Label:
    evidence = value.get("evidence")
    confidence = value.get("confidence")
    number = confidence if isinstance(confidence, int | float) else None
    if isinstance(confidence, bool) or (number is not None and not 0 <= number <= 1):
        raise ValueError(f"confidence is {confidence!r}; it lies between 0 and 1")
    confidence_note = {"confidence": confidence if number is None else None}
    confidence_note |= {name: value.get(name) for name in ("severity", "recovery_hint")}
    remarks = [
        f"{name.replace('_', ' ')}: {word}" for name, word in confidence_note.items() if word
    ]
    quote = evidence if isinstance(evidence, str) and evidence.strip() else None
    return draft.label(
        slug,
        note="\n".join(remarks),
        confidence=None if number is None else float(number),
        evidence=None if quote is None else Evidence(None, quote),
    )
