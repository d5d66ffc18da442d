"""``mast-tui import``: labels from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import (
    load_chosen_taxonomy,
    open_workspace,
    print_json,
    print_line,
    print_table,
    print_undone,
    problem_lines,
    say,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.change_words import changes_in_words, changes_to_dict, refusal_in_words
from mast_tui.exchange.crosswalk import crossed, find_crosswalk, read_crosswalk
from mast_tui.exchange.errors import Remedy
from mast_tui.exchange.formats import ImportRequest
from mast_tui.exchange.import_checks import unknown_people, with_checked_spans, without_unknown
from mast_tui.exchange.jsonl import read_jsonl
from mast_tui.exchange.merge_files import MergeResult, merge_files
from mast_tui.exchange.names import annotator_of
from mast_tui.exchange.registry import IMPORT_FORMATS
from mast_tui.exchange.undo_import import find_import, goes_on, undo_import
from mast_tui.gc_tuning import uncollected
from mast_tui.session import known_person

if TYPE_CHECKING:
    from mast_tui.exchange.errors import RowProblem
    from mast_tui.exchange.formats import Format
    from mast_tui.exchange.import_batch import Incoming
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.registers.imports import ImportRecord

_SHARDS: Final = "mast_tui.scale.importing"
"""The module that imports shards, which the core imports by name alone."""

_PROBLEMS_SHOWN = 50
_SHOWS_NOTHING = "it takes labels in and shows nobody's"
_QUICK_WORKS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCommandRequest:
    """The options of ``mast-tui import``."""

    files: tuple[str, ...] = options.argument(nargs=-1, metavar="FILE …")
    file_format: str | None = options.option("--format", type=click.Choice(list(IMPORT_FORMATS)))
    crosswalk: Path | None = options.option(
        "--crosswalk",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Make labels of MAST of a set's own categories (CSV with from,to, TOML, or the name "
        "of one that comes with the package, such as trail-to-mast).",
    )
    skip_errors: bool = options.option(
        "--skip-errors", is_flag=True, help="Import the rest where rows are wrong."
    )
    replace: tuple[str, ...] = options.option(
        "--replace",
        multiple=True,
        metavar="NAME",
        help="jsonl: let the files replace what NAME, a person or a judge, has finished, decided, "
        "written or found. Under a study only who set it up may say so.",
    )
    allow_new: bool = options.option(
        "--allow-new",
        is_flag=True,
        help="Take traces and annotators that the workspace does not know, where it knows others.",
    )
    judges_finished: bool = options.option(
        "--finished",
        is_flag=True,
        help="csv-long: each judge in the files has looked for all modes in each trace that it "
        "names; what it does not name there is absent.",
    )
    as_list: bool = options.option(
        "--list", is_flag=True, help="Show the imports that were made here."
    )
    undo: str | None = options.option(
        "--undo",
        is_flag=False,
        flag_value="",
        metavar="[BATCH]",
        help="Take an import back, the last one unless its id is given, unless something was "
        "built on it since.",
    )
    where: tuple[str, ...] = options.option(
        "--where",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Shards: only traces of which this is true, such as mode=3.3 or model=M; of one "
        "field one of several values.",
    )
    sample: int | None = options.option(
        "--sample", type=click.IntRange(1), metavar="N", help="Shards: draw N of the traces."
    )
    seed: int = options.option(
        "--seed", type=click.IntRange(0), default=0, help="Shards: another draw. Default: 0."
    )
    workers: str | None = options.workers()
    common: CommonOptions = options.common(blind=_SHOWS_NOTHING, assisted=_SHOWS_NOTHING)
    as_json: bool = options.as_json()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files as paths."""
        return tuple(map(Path, self.files))


_RULES: Final = (
    OptionRule[ImportCommandRequest](
        "--list and --undo stand alone: no files, no --format",
        options=("--list", "--undo"),
        excludes=("files", "--format"),
    ),
    OptionRule[ImportCommandRequest](
        "--list and --undo stand alone: no files, no --format",
        options=("--list",),
        excludes=("--undo",),
    ),
    OptionRule[ImportCommandRequest](
        "name the files to import, or say --list or --undo", needs=("files", "--list", "--undo")
    ),
    OptionRule[ImportCommandRequest](
        "jsonl brings its own names and taxonomies; no other options",
        options=("--crosswalk",),
        when=lambda request: request.file_format == "jsonl",
    ),
    OptionRule[ImportCommandRequest](
        "jsonl brings its own names and taxonomies; no other options",
        options=("--annotator",),
        needs=("--replace",),
        when=lambda request: request.file_format == "jsonl",
    ),
    OptionRule[ImportCommandRequest](
        "--finished is for csv-long; other formats say what was judged",
        options=("--finished",),
        when=lambda request: request.file_format not in (None, "csv-long"),
    ),
    OptionRule[ImportCommandRequest](
        "--replace is for jsonl; other formats change nothing of others",
        options=("--replace",),
        when=lambda request: request.file_format not in (None, "jsonl"),
    ),
)


@click.command()
@options.takes(ImportCommandRequest, _RULES)
@uncollected()
def import_command(request: ImportCommandRequest) -> int:
    """Import labels from elsewhere, list what was imported, or take it back.

    A folder or URL that 'mast-tui judge --out' has written to needs no --format: its traces come
    with what the judge suggests. Importing twice changes nothing. Bad rows are named, and as long
    as there is one nothing is written, unless with --skip-errors.
    """
    if request.as_list:
        return list_imports(open_workspace(request.common), request.as_json)
    if request.undo is not None:
        place = open_workspace(request.common)
        return take_back(place, request.undo, request.common.annotator, request.as_json)
    if request.file_format is None and len(request.files) == 1:
        shards: Any = import_module(_SHARDS)
        if shards.are_shards(request.files[0]):
            return _import_shards(shards, request)
    if request.where or request.sample is not None:
        raise click.UsageError(
            f"--where and --sample are for shards, and there are none in {request.files[0]}"
        )
    if request.file_format is None:
        raise click.UsageError("say in which format the files are: --format F")
    for file in request.paths:
        if not file.exists():
            raise click.ClickException(f"{file}: no such file")
    chosen_format = IMPORT_FORMATS[request.file_format]
    if chosen_format.reads is None:
        return _import_workspaces(request)
    return _import_tables(request, chosen_format)


def _import_shards(shards: Any, request: ImportCommandRequest) -> int:
    """Import traces with what a judge suggested in them; ``shards`` is the module that does."""
    common = request.common
    if (common.taxonomy, common.annotator, request.crosswalk) != (None, None, None):
        raise click.UsageError("shards bring their own names and taxonomy")
    with WorkerPool(request.workers) as pool:
        return int(shards.import_shards(request, pool))


def _import_tables(request: ImportCommandRequest, file_format: Format) -> int:
    """Import files of a format that brings what people or judges said of traces."""
    place = open_workspace(request.common, create=True)
    annotator = request.common.annotator
    if annotator is not None:
        try:
            annotator = annotator_of("", annotator)
        except ValueError as error:
            raise click.ClickException(str(error)) from None
    crosswalk = None if request.crosswalk is None else find_crosswalk(request.crosswalk)
    incoming = _read_incoming(request, file_format, place, annotator, crosswalk)
    asked = _asked(file_format.name, request.paths, annotator, crosswalk)
    # What an import that goes on does not know may be what it brought before it was broken off.
    if not request.allow_new and not goes_on(place, asked):
        incoming = without_unknown(incoming, place, named=annotator)
    applied = apply_incoming(
        incoming,
        place,
        source=file_format.name,
        skip_errors=request.skip_errors,
        files=[str(file) for file in request.paths],
        asked=asked,
        imported_by=known_person(place),
    )
    if applied.written:
        keep_missing_indices(place)
    place.close()
    notes = list(incoming.notes)
    if applied.differing:
        notes.append(
            f"{counted(applied.differing, 'label is', 'labels are')} here already with other "
            "details; nothing of that changes"
        )
    document = {
        "format": file_format.name,
        "files": [str(file) for file in request.paths],
        "written": applied.written,
        **_counts(incoming),
        "events": {"new": applied.new, "known": applied.known},
        "people": [changes_to_dict(changes) for changes in applied.people],
        "problems": _problems_to_dicts(applied.problems),
        "notes": notes,
    }
    _tell_problems(applied.problems)
    if not applied.written:
        refused_here = len(applied.problems) - len(incoming.problems)
        has_good_rows = len(incoming.work) > refused_here
        say(f"mast-tui import: {_advice(applied.problems, has_good_rows=has_good_rows)}")
    if not applied.finished:
        say(
            "mast-tui import: somebody worked here meanwhile, so these were left out and the "
            "import is not finished; fix them and import it again"
        )
    _tell(document, map(changes_in_words, applied.people), request.as_json)
    return 0 if applied.written and applied.finished else 1


def _read_incoming(
    request: ImportCommandRequest,
    file_format: Format,
    place: Workspace,
    annotator: str | None,
    crosswalk: Path | None,
) -> Incoming:
    """Read what the files bring, with its places checked and its categories translated."""
    assert file_format.reads is not None
    taxonomy = load_chosen_taxonomy(request.common.taxonomy)
    with WorkerPool(request.workers if file_format.uses_workers else None) as pool:
        files = pool.reachable(request.paths)
        finished = request.judges_finished
        incoming = file_format.reads(
            ImportRequest(files, place, taxonomy, annotator, finished, pool.workers)
        )
        pool.on_trace(len(incoming.traces))
    incoming = with_checked_spans(incoming, place)
    if len(incoming.work) > _QUICK_WORKS and not request.as_json:
        say(f"writing {len(incoming.work):,} readings of traces …")
    if crosswalk is not None:
        incoming = crossed(incoming, read_crosswalk(crosswalk), taxonomy, crosswalk)
    return incoming


def _asked(
    file_format: str,
    files: tuple[Path, ...],
    annotator: str | None = None,
    crosswalk: Path | None = None,
) -> str:
    """The words of an import that decide what it brings; they tell one from another."""
    places = [str(file.absolute()) for file in files]
    return json.dumps([file_format, places, annotator, crosswalk and str(crosswalk)])


def _counts(incoming: Incoming) -> dict[str, Any]:
    work = incoming.work
    return {
        "taxonomies": sorted({one.taxonomy for one in work}),
        "annotators": sorted({one.annotator for one in work}),
        "traces": len({one.trace_id for one in work}),
        "labels": sum(len(one.labels) for one in work),
        "verdicts": sum(len(one.verdicts) for one in work),
        "finished": sum(one.finished_at is not None for one in work),
    }


def _import_workspaces(request: ImportCommandRequest) -> int:
    files = request.paths
    contents = {file: read_jsonl(file) for file in files}
    place = open_workspace(request.common, create=True)
    strange = [
        problem
        for file, content in contents.items()
        for problem in ([] if request.allow_new else unknown_people(file, content, place))
    ]
    who = known_person(place) or request.common.annotator
    merged = MergeResult()
    if not strange:
        merged = merge_files(
            contents, place, asked=_asked("jsonl", files), replacing=request.replace, asked_by=who
        )
        keep_missing_indices(place)
    place.close()
    events = [event for content in contents.values() for event in content.foreign.events]
    lines = {name for content in contents.values() for name, _ in content.annotators}
    document = {
        "format": "jsonl",
        "files": [str(file) for file in files],
        "written": not merged.refused and not strange,
        "taxonomies": sorted(
            {t.taxonomy.ref for content in contents.values() for t in content.taxonomies}
            | {event.taxonomy for event in events if event.taxonomy is not None}
        ),
        "annotators": sorted(lines | {event.annotator for event in events}),
        "traces": len(
            {t.trace_id for content in contents.values() for t in content.traces}
            | {event.trace_id for event in events if event.trace_id is not None}
        ),
        "labels": len({e.id for e in events if e.kind == "label_added"}),
        "verdicts": len({e.id for e in events if e.kind == "verdict_set"}),
        "finished": len({e.id for e in events if e.kind == "pass_finished"}),
        "events": {"new": merged.new, "known": merged.known},
        "people": [changes_to_dict(changes) for changes in merged.people],
        "problems": [
            {"file": str(file), "place": changes.annotator, "reason": changes_in_words(changes)}
            for file, people in merged.refused.items()
            for changes in people
        ]
        + _problems_to_dicts(strange),
        "notes": merged.notes,
    }
    _tell_problems(strange)
    if strange:
        say(f"mast-tui import: {_advice(strange, has_good_rows=False)}")
    for file, people in merged.refused.items():
        say(f"mast-tui import: {refusal_in_words(file, people)}")
    _tell(document, map(changes_in_words, merged.people), request.as_json)
    return 0 if document["written"] else 1


def _problems_to_dicts(problems: Iterable[RowProblem]) -> list[dict[str, str]]:
    return [{"file": str(p.file), "place": p.place, "reason": p.reason} for p in problems]


def _tell_problems(problems: Iterable[RowProblem]) -> None:
    lines = problem_lines((str(one.file), one.place, one.reason) for one in problems)
    for line in lines[:_PROBLEMS_SHOWN]:
        say(f"mast-tui import: {line}")
    if len(lines) > _PROBLEMS_SHOWN:
        say(f"mast-tui import: and {len(lines) - _PROBLEMS_SHOWN} more")


def _advice(problems: Iterable[RowProblem], *, has_good_rows: bool) -> str:
    """Name the remedies that help with the problems for which nothing was written."""
    remedies = {one.remedy for one in problems}
    sentences = ["nothing was written"]
    if Remedy.FIX_ROW in remedies:
        sentences.append("Fix the rows")
    if has_good_rows:
        sentences.append("--skip-errors imports the other rows")
    if Remedy.ALLOW_NEW in remedies:
        sentences.append("--allow-new accepts new names")
    return ". ".join(sentences)


def _tell(document: dict[str, Any], people: Iterable[str], as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    for note in document["notes"]:
        say(note)
    if document["written"]:
        print_line(_summary(document))
        for changes in people:
            print_line(changes)


def _summary(document: Mapping[str, Any]) -> str:
    """Describe the new events, then what the files hold."""
    new, known = document["events"]["new"], document["events"]["known"]
    held = f"{counted(document['labels'], 'label')} and {counted(document['verdicts'], 'verdict')}"
    names = ", ".join(document["annotators"]) or "nobody"
    traces = counted(document["traces"], "trace")
    of = f" ({', '.join(document['taxonomies'])})" if document["taxonomies"] else ""
    holds = "The file holds" if len(document["files"]) == 1 else "The files hold"
    if new:
        lead = counted(new, "new event")
        if known:
            lead += f", {known:,} {'was' if known == 1 else 'were'} here already"
    else:
        lead = "Nothing is new"
        if known:
            lead += f": {counted(known, 'event')} {'was' if known == 1 else 'were'} here already"
    return f"{lead}. {holds} {held} by {names} on {traces}{of}"


def list_imports(workspace: Workspace, as_json: bool) -> int:
    """Show every import with what it brought, the earliest first."""
    documents = [_to_dict(workspace, record) for record in workspace.imports()]
    if as_json:
        print_json({"imports": documents})
        return 0
    if not documents:
        say("nothing was imported here")
        return 0
    columns = (
        key_column("id", "import"),
        TableColumn("when", lambda row: row["at"][:16].replace("T", " ")),
        TableColumn("who", lambda row: row["who"] or "-"),
        *map(key_column, ("format", "events", "traces")),
        _names_column("annotators"),
        key_column("state"),
        _names_column("files"),
    )
    print_table(columns, documents)
    return 0


def _names_column(key: str) -> TableColumn[Mapping[str, Any]]:
    return TableColumn(key, lambda row: ", ".join(row[key]))


def _to_dict(workspace: Workspace, record: ImportRecord) -> dict[str, Any]:
    counts = workspace.import_counts(record)
    return {
        "id": record.id,
        "at": record.at,
        "who": record.who,
        "format": record.format,
        "files": list(record.files),
        "events": counts.events,
        "traces": counts.traces,
        "annotators": list(counts.annotators),
        "state": record.state.value,
        "finished": record.finished_at,
        "undone": record.undone_at,
        "undone_by": record.undone_by,
    }


def take_back(workspace: Workspace, wanted: str, annotator: str | None, as_json: bool) -> int:
    """Take an import back, or say what was built on it."""
    record = find_import(workspace, wanted)
    undone = undo_import(workspace, record, known_person(workspace) or annotator)
    files = ", ".join(record.files)
    told = f"took back {counted(undone.events, 'event')} of import {record.id} ({files})"
    return print_undone(
        undone,
        {"import": record.id},
        command="mast-tui import",
        what=f"import {record.id}",
        done=f"{told}; its traces stay known",
        as_json=as_json,
    )
