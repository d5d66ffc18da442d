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
    """Return AdaMAST's own list of MAST's modes, ``MAST-1`` to ``MAST-14``."""
    return shipped_taxonomy("adamast_mast")


def is_taxonomy(document: object) -> bool:
    """Check whether a document is a taxonomy: it has a list of ``codes``, or layers of codes."""
    if not isinstance(document, Mapping) or "diagnoses" in document:
        return False
    return isinstance(document.get("codes"), list) or any(
        isinstance(document.get(layer), Mapping) for layer in _LAYERS
    )


def taxonomy_of(document: object, source: str) -> Taxonomy:
    """Return the taxonomy ``adamast@HASH`` of a file's codes; the version is their hash.

    Args:
        document: The JSON document.
        source: The name of the source, for messages.

    Raises:
        ValueError: The document has no usable codes.
    """
    if not isinstance(document, Mapping):
        raise ValueError("no taxonomy of AdaMAST: it is an object with 'codes'")
    name = document.get("display_name") or document.get("domain") or "AdaMAST taxonomy"
    return _taxonomy_of_codes(
        list(_codes_in_document(document)), name if isinstance(name, str) else ID, source
    )


def taxonomy_of_seen(seen: Sequence[tuple[str, str]]) -> Taxonomy:
    """Return a taxonomy of the codes and names in diagnoses whose own taxonomy is missing."""
    codes: list[Values] = [{"id": code, "name": name} for code, name in sorted(dict(seen).items())]
    return _taxonomy_of_codes(codes or [{"id": "none"}], "AdaMAST, codes that were used", ID)


def _codes_in_document(document: Values) -> Iterator[Values]:
    """Yield the codes of a taxonomy document: its flat codes, or those of its first layer."""
    if isinstance(document.get("codes"), list):
        yield from (code for code in document["codes"] if isinstance(code, Mapping))
        return
    layers = [document[name] for name in _LAYERS if isinstance(document.get(name), Mapping)]
    if not layers:
        return
    for key, category in _CATEGORIES:
        values = layers[0].get(key, ())
        codes = values.items() if isinstance(values, Mapping) else (("", code) for code in values)
        for name, code in codes:
            if isinstance(code, Mapping):
                yield {"id": name, "category": category, **code}


def _taxonomy_of_codes(codes: Sequence[Values], name: str, source: str) -> Taxonomy:
    """Return a taxonomy with a mode for each code; the version is a hash of the modes."""
    modes: list[dict[str, object]] = []
    used_codes: set[str] = set()
    used_names: set[str] = set()
    for code in codes:
        code_text = _typable_code(str(code.get("id") or code.get("code") or ""))
        if not code_text or code_text.casefold() in used_codes:
            continue  # A code without a text, or a code that comes twice: the first one counts.
        mode_name = str(code.get("name") or code.get("label") or code_text).strip()
        if mode_name.casefold() in used_names | used_codes:
            mode_name = f"{mode_name} ({code_text})"
        used_codes.add(code_text.casefold())
        used_names.add(mode_name.casefold())
        modes.append(
            {
                "slug": f"code-{_slug_text(code_text)}",
                "code": code_text,
                "name": mode_name,
                "category": f"group-{_slug_text(_category_of_code(code, code_text))}",
                "definition": str(code.get("description") or code.get("definition") or ""),
                "applies": _sentence_list(code.get("when_to_use")),
                "applies_not": _sentence_list(code.get("when_not_to_use")),
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


def _category_of_code(code: Values, number: str) -> str:
    return str(code.get("category") or number.partition(".")[0] or "all")


def _sentence_list(value: object) -> list[str]:
    return [value] if isinstance(value, str) and value.strip() else []


def _typable_code(text: str) -> str:
    """Return a code without blanks, separators of names and characters that are not printable."""
    return "".join(char for char in text.strip() if char.isprintable() and char not in ",|@ ")[:64]


def _slug_text(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:40].strip("-")
    return plain or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


JUDGE: Final = "judge:adamast"
Record = Mapping[str, Any]


@dataclass(slots=True)
class _AdamastBatch(Gathered):
    """The contents of the files.

    ``diagnoses`` holds the file, location, surrounding document and record of each diagnosis.
    ``taxonomies_by_path`` holds the taxonomies among the files.
    """

    diagnoses: list[tuple[Path, str, Record, Record]] = field(default_factory=list)
    taxonomies_by_path: dict[Path, Taxonomy] = field(default_factory=dict)


def read_adamast(files: Sequence[Path], annotator: str | None = None) -> Incoming:
    """Read diagnoses, each file under the first of these taxonomies:

    - the taxonomy file that its diagnoses name, if it is among the files or beside them
    - the only taxonomy among the files, if the diagnoses name none
    - AdaMAST's own list of MAST's modes, if it has all codes
    - a taxonomy of the used codes, so that no other code counts as absent

    Args:
        files: The files and folders.
        annotator: The annotator's name, None for the usual one.
    """
    batch = _AdamastBatch()
    for file, document in read_each(files, batch.problems, read_json):
        try:
            _add_document(file, document, batch)
        except ValueError as error:
            batch.wrong(file, "file", error)
    for file in dict.fromkeys(file for file, _, _, _ in batch.diagnoses):
        file_diagnoses = [diagnosis for diagnosis in batch.diagnoses if diagnosis[0] == file]
        try:
            taxonomy, is_complete, explanation = _taxonomy_of_file(file, file_diagnoses, batch)
        except ValueError as error:
            batch.wrong(file, "codes", error)
            continue
        batch.taxonomies[taxonomy.ref] = taxonomy
        batch.notes.append(f"{file.name}: codes are those of {taxonomy.ref} ({explanation})")
        for _, location, head, record in file_diagnoses:
            try:
                draft = _diagnosis_work(
                    annotator or _judge_name(head, record), file, record, taxonomy, is_complete
                )
                if draft.key in batch.drafts:
                    raise ValueError(f"trace {draft.trace_id!r} comes twice; keep one diagnosis")
            except ValueError as error:
                batch.wrong(file, location, error)
                continue
            batch.keep(draft)
    without_code = sum(not (draft.labels or draft.verdicts) for draft in batch.drafts.values())
    if without_code:
        subject = counted(without_code, "diagnosis names", "diagnoses name")
        batch.notes.append(f"{subject} no code, and 'none_apply' is not set")
    return batch.done()


def _add_document(file: Path, document: object, batch: _AdamastBatch) -> None:
    """Add the taxonomy or the diagnoses of a file to the batch; other records become problems."""
    if is_taxonomy(document):
        batch.taxonomies_by_path[file.resolve()] = taxonomy_of(document, str(file))
        return
    header: Record = document if isinstance(document, Mapping) else {}
    records = header.get("diagnoses") if "diagnoses" in header else document
    records = records if isinstance(records, list) else [records]
    for number, record in enumerate(records, start=1):
        location = f"diagnosis {number}"
        if isinstance(record, Mapping) and ("failure_modes" in record or "code" in record):
            batch.diagnoses.append((file, location, header, record))
        else:
            reason = "has neither 'failure_modes' nor 'code'; this is no diagnosis of AdaMAST"
            batch.wrong(file, location, reason)


def _taxonomy_of_file(
    file: Path, diagnoses: Sequence[tuple[Path, str, Record, Record]], batch: _AdamastBatch
) -> tuple[Taxonomy, bool, str]:
    """Return the taxonomy of a file's diagnoses, True if it is complete, and a text on its source.

    It is the taxonomy that the file names, the only one among the imported files, MAST if all codes
    are MAST's, or else a taxonomy of the codes in use.
    """
    _, _, header, _ = diagnoses[0]
    taxonomy_path = header.get("taxonomy")
    if isinstance(taxonomy_path, str) and taxonomy_path:
        file_name = Path(taxonomy_path.replace("\\", "/")).name
        for path in (Path(taxonomy_path), file.parent / file_name):
            if path.resolve() in batch.taxonomies_by_path:
                return (
                    batch.taxonomies_by_path[path.resolve()],
                    True,
                    f"the taxonomy in {path.name}",
                )
            try:
                return taxonomy_of(read_json(path), str(path)), True, f"from {path.name}"
            except (ValueError, OSError):
                continue
    elif len(batch.taxonomies_by_path) == 1:
        path, taxonomy = next(iter(batch.taxonomies_by_path.items()))
        return taxonomy, True, f"the taxonomy in {path.name}"
    used_codes = [pair for *_, record in diagnoses for pair in _codes_with_names(record)]
    mast = shipped_mast()
    if used_codes and all(mast.find(code) is not None for code, _ in used_codes):
        return mast, True, "AdaMAST's own list of MAST's modes, by its codes"
    explanation = "only the codes that are used, as their taxonomy's file is not here"
    return taxonomy_of_seen(used_codes), False, explanation


def _codes_with_names(record: Record) -> list[tuple[str, str]]:
    """Return the codes in a diagnosis, each with its name in the diagnosis."""
    # Without a list of modes, the record itself is the only mode.
    modes = record.get("failure_modes", [record])
    return [
        (str(mode["code"]), str(mode.get("name") or mode.get("label") or mode["code"]))
        for mode in (modes if isinstance(modes, list) else ())
        if isinstance(mode, Mapping) and mode.get("code")
    ]


def _judge_name(head: Record, record: Record) -> str:
    """Return the judge's name: ``judge:MODEL@adamast``, or ``judge:adamast`` without a model."""
    judge = head.get("judge")
    metadata = record.get("judge_metadata")
    model = judge.get("model") if isinstance(judge, Mapping) else None
    if not model and isinstance(metadata, Mapping):
        model = metadata.get("judge_model")
    if not isinstance(model, str) or not model.strip():
        return JUDGE
    plain = "".join(char for char in model.strip() if char.isprintable() and char not in ",|")
    return f"{JUDGE_PREFIX}{plain[:100]}@adamast"


def _diagnosis_work(
    name: str, file: Path, record: Record, taxonomy: Taxonomy, is_complete: bool
) -> ImportedWork:
    """Return the work of a diagnosis.

    Modes that it does not name become absent only if the taxonomy is complete and the judge picks
    all codes.

    Raises:
        ValueError: The diagnosis is not valid.
    """
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
        draft.add_label(_label_of_mode(draft, mode.slug, value))
    if is_complete and picks_all and (modes or record.get("none_apply") is True):
        labelled_modes = {label.mode for label in draft.labels.values()}
        for mode in taxonomy.modes:
            if mode.slug not in labelled_modes:
                draft.add_verdict(mode.slug, VerdictValue.ABSENT)
    return draft


def _label_of_mode(draft: ImportedWork, slug: str, value: Record) -> Label:
    """Return the label of a failure mode; other details become its note.

    Raises:
        ValueError: The confidence is a number that is not from 0 to 1.
    """
    evidence = value.get("evidence")
    confidence = value.get("confidence")
    number = confidence if isinstance(confidence, int | float) else None
    if isinstance(confidence, bool) or (number is not None and not 0 <= number <= 1):
        raise ValueError(f"confidence is {confidence!r}; it lies between 0 and 1")
    # A confidence in words, such as "high", is kept in the note.
    details = {"confidence": confidence if number is None else None}
    details |= {name: value.get(name) for name in ("severity", "recovery_hint")}
    remarks = [f"{name.replace('_', ' ')}: {detail}" for name, detail in details.items() if detail]
    quote = evidence if isinstance(evidence, str) and evidence.strip() else None
    return draft.label(
        slug,
        note="\n".join(remarks),
        confidence=None if number is None else float(number),
        evidence=None if quote is None else Evidence(key=None, quote=quote),
    )
