"""Crosswalks: translations of modes from one taxonomy to another."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from msgspec import structs

from mast_tui.counts import counted
from mast_tui.exchange.csv_files import read_rows
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import ImportedWork, Incoming, label_id
from mast_tui.grouping import values_by_key
from mast_tui.labels import Label, VerdictValue
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.toml_text import parse_toml

ANY: Final = ""
"""The taxonomy of an entry for modes of any taxonomy."""

_SHIPPED: Final = Path(__file__).with_name("crosswalks")
_REQUIRED_COLUMNS: Final = ("from", "to")
_COLUMNS: Final = (*_REQUIRED_COLUMNS, "taxonomy")


@dataclass(frozen=True, slots=True)
class CrosswalkEntry:
    """A mode and its counterparts in another taxonomy.

    ``taxonomy`` is the reference of the mode's taxonomy, or ``ANY``.
    """

    source: str
    targets: tuple[str, ...]
    taxonomy: str = ANY


def find_crosswalk(path: Path) -> Path:
    """Return the file at a path, else the package's own crosswalk of this name.

    Raises:
        ExchangeError: There is no such file and no such crosswalk.
    """
    if path.exists():
        return path
    shipped = {file.stem: file for file in sorted(_SHIPPED.glob("*.toml"))}
    if str(path) in shipped:
        return shipped[str(path)]
    names = ", ".join(shipped)
    raise ExchangeError(f"{path}: no such file or built-in crosswalk ({names})")


def read_crosswalk(path: Path) -> tuple[CrosswalkEntry, ...]:
    """Read the entries of a crosswalk from a CSV, TOML or JSON file.

    A CSV file has the columns ``from``, ``to`` and optionally ``taxonomy``.

    A TOML or JSON file has tables such as ``"name" = "1.3"``. A value can also be a list of codes.
    The table ``modes`` is for modes of any taxonomy. Other tables are named by the ``id@version``
    of a taxonomy.

    Raises:
        ExchangeError: The file cannot be read, or it is no crosswalk.
    """
    if path.suffix.lower() == ".csv":
        return _from_csv(path)
    return _from_tables(_crosswalk_document(path), path)


def _from_csv(path: Path) -> tuple[CrosswalkEntry, ...]:
    entries = []
    for row in read_rows(path, allowed=_COLUMNS, needed=_REQUIRED_COLUMNS):
        source = row.cells["from"].strip()
        target = row.cells["to"].strip()
        if not source or not target:
            raise ExchangeError(str(row.problem("both 'from' and 'to' are needed")))
        entries.append(CrosswalkEntry(source, (target,), row.cells.get("taxonomy", "").strip()))
    if not entries:
        raise ExchangeError(f"{path}: the crosswalk is empty")
    return tuple(entries)


def _crosswalk_document(path: Path) -> Mapping[str, object]:
    """Read the tables of a crosswalk from a TOML or JSON file."""
    is_json = path.suffix.lower() == ".json"
    try:
        text = path.read_text(encoding="utf-8-sig")
        document = json.loads(text) if is_json else parse_toml(text)
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise ExchangeError(f"{path}: lists or objects are nested too deeply") from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ExchangeError(f"{path}: not valid {'JSON' if is_json else 'TOML'}: {error}") from None
    if not isinstance(document, dict):
        raise ExchangeError(f"{path}: expected an object with tables, such as 'modes'")
    return document


def _from_tables(document: Mapping[str, object], path: Path) -> tuple[CrosswalkEntry, ...]:
    """Return the entries in the tables of a TOML or JSON file."""
    entries = []
    if not document:
        raise ExchangeError(f"{path}: the crosswalk is empty")
    for name, table in document.items():
        if not isinstance(table, dict):
            raise ExchangeError(f"{path}: {name!r} is outside a table; put it under [modes]")
        for source, targets in table.items():
            target_codes = targets if isinstance(targets, list) else [targets]
            if not all(isinstance(target, str) for target in target_codes):
                raise ExchangeError(f'{path}: {source!r} needs a code such as "1.3"')
            taxonomy = ANY if name == "modes" else name
            entries.append(CrosswalkEntry(source, tuple(target_codes), taxonomy))
    return tuple(entries)


def translated(
    incoming: Incoming, entries: Sequence[CrosswalkEntry], target: Taxonomy, path: Path
) -> Incoming:
    """Translate all labels and verdicts of an import to a taxonomy.

    If several modes become one mode, it is present if any of them is, else unsure if any is. It is
    absent only if all of them are. Labels of modes without a counterpart are left out and counted
    in a note.

    Args:
        incoming: The contents of the import.
        entries: The entries of the crosswalk.
        target: The taxonomy of the result.
        path: The file of the crosswalk, for messages.

    Raises:
        ExchangeError: An entry names a mode that its taxonomy does not have.
    """
    slug_maps = {
        source.ref: _slugs_by_source(source, entries, target)
        for source in incoming.taxonomies
        if source.ref != target.ref
    }
    _check_modes(entries, incoming, target, path)
    left_out = sum(
        label.mode not in slug_maps[work.taxonomy]
        for work in incoming.work
        if work.taxonomy in slug_maps
        for label in work.labels.values()
    )
    note = f"{path.name}: labels translated to {target.ref}"
    if left_out:
        note += f"; left out: {counted(left_out, 'label')} of modes without a link"
    return replace(
        incoming,
        taxonomies=(target,),
        work=tuple(
            _translated_work(work, slug_maps[work.taxonomy], target)
            if work.taxonomy in slug_maps
            else work
            for work in incoming.work
        ),
        notes=(*incoming.notes, note),
    )


def _slugs_by_source(
    source: Taxonomy, entries: Sequence[CrosswalkEntry], target: Taxonomy
) -> Mapping[str, tuple[str, ...]]:
    """Return the slugs of target modes by the slug of the source mode."""
    mapping: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        mode = source.find(entry.source) if entry.taxonomy in (ANY, source.ref) else None
        target_modes = map(target.find, entry.targets)
        slugs = [target_mode.slug for target_mode in target_modes if target_mode is not None]
        if mode is not None and slugs:
            mapping[mode.slug] = (*mapping.get(mode.slug, ()), *slugs)
    return mapping


def _check_modes(
    entries: Sequence[CrosswalkEntry], incoming: Incoming, target: Taxonomy, path: Path
) -> None:
    """Check that all modes of the entries exist."""
    for entry in entries:
        for name in entry.targets:
            if target.find(name) is None:
                raise ExchangeError(f"{path}: {name!r} is not a mode of {target.ref}")
        sources = [source for source in incoming.taxonomies if entry.taxonomy in (ANY, source.ref)]
        if not any(source.find(entry.source) for source in sources):
            names = ", ".join(taxonomy.ref for taxonomy in incoming.taxonomies)
            raise ExchangeError(f"{path}: {entry.source!r} is not a mode in the import ({names})")


def _translated_work(
    work: ImportedWork, slugs_by_source: Mapping[str, tuple[str, ...]], target: Taxonomy
) -> ImportedWork:
    """Translate one annotator's work on a trace.

    Labels of modes without a counterpart are left out. Labels that become equal are merged with
    their notes.
    """
    labels: dict[str, Label] = {}
    for label in work.labels.values():
        for slug in slugs_by_source.get(label.mode, ()):
            new_id = label_id(label.annotator, label.trace_id, target.ref, slug, label.target)
            earlier = labels.get(new_id)
            note = label.note if earlier is None else f"{earlier.note}\n{label.note}".strip()
            labels[new_id] = structs.replace(
                label, id=new_id, taxonomy=target.ref, mode=slug, note=note
            )
    return structs.replace(
        work,
        taxonomy=target.ref,
        labels=labels,
        verdicts=_translated_verdicts(
            work, slugs_by_source, {label.mode for label in labels.values()}
        ),
    )


def _translated_verdicts(
    work: ImportedWork, slugs_by_source: Mapping[str, tuple[str, ...]], present: set[str]
) -> dict[str, VerdictValue]:
    """Return the absent and unsure verdicts on the target modes.

    Modes in ``present`` get no verdict. A mode is unsure if any of its source modes is, and absent
    if all of them are.
    """
    source_verdicts = values_by_key(
        (slug, work.verdicts.get(source_slug))
        for source_slug, target_slugs in slugs_by_source.items()
        for slug in target_slugs
    )
    verdicts = {}
    for slug, values in source_verdicts.items():
        if slug in present:
            continue
        if VerdictValue.UNSURE in values:
            verdicts[slug] = VerdictValue.UNSURE
        elif set(values) == {VerdictValue.ABSENT}:
            verdicts[slug] = VerdictValue.ABSENT
    return verdicts
