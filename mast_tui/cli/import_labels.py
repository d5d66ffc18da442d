"""``mast-tui import``: import labels, list imports, or undo one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import (
    load_taxonomy_or_mast,
    open_workspace,
    print_json,
    print_line,
    print_table,
    print_undo_result,
    problem_lines,
    say,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.exchange.apply import Applied, apply_incoming
from mast_tui.exchange.crosswalk import find_crosswalk, read_crosswalk, translated
from mast_tui.exchange.errors import Remedy, RowProblem
from mast_tui.exchange.formats import Format, ImportRequest
from mast_tui.exchange.import_batch import Incoming, annotator_of
from mast_tui.exchange.import_checks import unknown_people, with_checked_spans, without_unknown
from mast_tui.exchange.jsonl import JsonlContent, read_jsonl
from mast_tui.exchange.merge_files import (
    MergeResult,
    changes_in_words,
    changes_to_dict,
    merge_files,
    refusal_in_words,
)
from mast_tui.exchange.registry import IMPORT_FORMATS
from mast_tui.exchange.undo_import import continues_import, find_import, undo_import
from mast_tui.gc_tuning import uncollected
from mast_tui.labels import PassKind, VerdictValue
from mast_tui.session import login_person
from mast_tui.session.pass_state import PassState
from mast_tui.workspace.events.types import Judged

if TYPE_CHECKING:
    from mast_tui.workspace import Event, Workspace
    from mast_tui.workspace.registers.imports import ImportRecord

_SHARDS: Final = "mast_tui.scale.importing"
"""The module that imports shards. The core may import it only by name."""

_MAX_PROBLEMS: Final = 50
_VISIBILITY_REFUSAL: Final = "it imports labels and shows none"
_QUIET_IMPORT: Final = 500
"""The largest number of passes that is written without an announcement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCommandRequest:
    """The options of ``mast-tui import``."""

    files: tuple[str, ...] = options.argument(nargs=-1, metavar="FILE …")
    file_format: str | None = options.option(
        "--format", type=click.Choice(list(IMPORT_FORMATS)), help="The format of the files."
    )
    crosswalk: Path | None = options.option(
        "--crosswalk",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Translate a data set's own categories to MAST: a CSV file with the columns from and "
        "to, a TOML file, or the name of a crosswalk that comes with the package, such as "
        "trail-to-mast.",
    )
    skip_errors: bool = options.option(
        "--skip-errors", is_flag=True, help="Skip invalid rows and import the rest."
    )
    replace: tuple[str, ...] = options.option(
        "--replace",
        multiple=True,
        metavar="NAME",
        help="jsonl: let the files replace the finished work, decisions, texts or verdicts of "
        "NAME, a person or a judge. For work of a study only its lead may do this.",
    )
    allow_new: bool = options.option(
        "--allow-new",
        is_flag=True,
        help="Accept new traces and annotators in a workspace that already has some.",
    )
    judges_finished: bool = options.option(
        "--finished",
        is_flag=True,
        help="csv-long: each judge in the files has checked all modes in each of its traces; modes "
        "that it does not name are absent.",
    )
    as_list: bool = options.option(
        "--list", is_flag=True, help="List the imports of this workspace."
    )
    undo: str | None = options.option(
        "--undo",
        is_flag=False,
        flag_value="",
        metavar="[BATCH]",
        help="Undo an import: the last one, or that of the given id. It stays if later work "
        "depends on it.",
    )
    where: tuple[str, ...] = options.option(
        "--where",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Shards: only traces with this value, such as mode=3.3 or model=M; several values of "
        "one field are alternatives.",
    )
    sample: int | None = options.option(
        "--sample", type=click.IntRange(1), metavar="N", help="Shards: draw N of the traces."
    )
    seed: int = options.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        help="Shards: the seed of the sample. Default: 0.",
    )
    workers: str | None = options.workers()
    common: CommonOptions = options.common(blind=_VISIBILITY_REFUSAL, assisted=_VISIBILITY_REFUSAL)
    as_json: bool = options.as_json()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files as paths."""
        return tuple(map(Path, self.files))


_RULES: Final = (
    OptionRule[ImportCommandRequest](
        "--list and --undo accept no files and no --format",
        options=("--list", "--undo"),
        excludes=("files", "--format"),
    ),
    OptionRule[ImportCommandRequest](
        "--list and --undo accept no files and no --format",
        options=("--list",),
        excludes=("--undo",),
    ),
    OptionRule[ImportCommandRequest](
        "give the files to import, or --list or --undo", needs=("files", "--list", "--undo")
    ),
    OptionRule[ImportCommandRequest](
        "jsonl files contain names and taxonomies; leave out other options",
        options=("--crosswalk",),
        when=lambda request: request.file_format == "jsonl",
    ),
    OptionRule[ImportCommandRequest](
        "jsonl files contain names and taxonomies; leave out other options",
        options=("--annotator",),
        needs=("--replace",),
        when=lambda request: request.file_format == "jsonl",
    ),
    OptionRule[ImportCommandRequest](
        "--finished is for csv-long; other formats record what was judged",
        options=("--finished",),
        when=lambda request: request.file_format not in (None, "csv-long"),
    ),
    OptionRule[ImportCommandRequest](
        "--replace is for jsonl; other formats never change existing work",
        options=("--replace",),
        when=lambda request: request.file_format not in (None, "jsonl"),
    ),
)


@click.command()
@options.takes(ImportCommandRequest, _RULES)
@uncollected()
def import_command(request: ImportCommandRequest) -> int:
    """Import labels from files, list the imports, or undo one.

    A folder or URL that 'mast-tui judge --out' has written to needs no --format: its traces come
    with the judge's suggestions. Importing twice changes nothing. If a row is wrong, it is reported
    and nothing is written; --skip-errors writes the other rows.

    Example: mast-tui import alice.csv --format csv-long
    """
    if request.as_list:
        return list_imports(open_workspace(request.common), request.as_json)
    if request.undo is not None:
        workspace = open_workspace(request.common)
        return undo_imported(workspace, request.undo, request.common.annotator, request.as_json)
    if request.file_format is None and len(request.files) == 1:
        shards: Any = import_module(_SHARDS)  # a side product, imported only when it is needed
        if shards.are_shards(request.files[0]):
            return _import_shards(shards, request)
    if request.where or request.sample is not None:
        raise click.UsageError(
            f"--where and --sample are for shards, but {request.files[0]} contains none"
        )
    if request.file_format is None:
        raise click.UsageError("give the format of the files: --format F")
    for file in request.paths:
        if not file.exists():
            raise click.ClickException(f"{file}: no such file")
    chosen_format = IMPORT_FORMATS[request.file_format]
    if chosen_format.reads is None:
        return _import_workspaces(request)
    return _import_tables(request, chosen_format)


def _import_shards(shards: Any, request: ImportCommandRequest) -> int:
    common = request.common
    if (common.taxonomy, common.annotator, request.crosswalk) != (None, None, None):
        raise click.UsageError(
            "shards contain names and a taxonomy; leave out --taxonomy, --annotator and --crosswalk"
        )
    with WorkerPool(request.workers) as pool:
        return int(shards.import_shards(request, pool))


def _import_tables(request: ImportCommandRequest, file_format: Format) -> int:
    """Import files with labels of people or judges."""
    workspace = open_workspace(request.common, create=True)
    annotator = _checked_annotator(request.common.annotator)
    crosswalk = None if request.crosswalk is None else find_crosswalk(request.crosswalk)
    incoming = _read_incoming(request, file_format, workspace, annotator, crosswalk)
    request_key = _request_key(file_format.name, request.paths, annotator, crosswalk)
    # An interrupted import has already accepted its new names.
    if not request.allow_new and not continues_import(workspace, request_key):
        incoming = without_unknown(incoming, workspace, accepted_name=annotator)
    files = [str(file) for file in request.paths]
    applied = apply_incoming(
        incoming,
        workspace,
        source=file_format.name,
        skip_errors=request.skip_errors,
        files=files,
        request_key=request_key,
        imported_by=login_person(workspace),
    )
    # Conflicts need the order of labelled spans.
    if applied.written:
        keep_missing_indices(workspace)
    differing_text = (
        f"{counted(applied.differing, 'label is', 'labels are')} already in the workspace with "
        "other details; these stay unchanged"
    )
    document = {
        "format": file_format.name,
        "files": files,
        "written": applied.written,
        **_incoming_counts(incoming),
        "events": {"new": applied.new, "known": applied.known},
        "people": [changes_to_dict(changes) for changes in applied.people],
        "problems": _problems_to_dicts(applied.problems),
        "notes": [*incoming.notes, *([differing_text] if applied.differing else [])],
    }
    _report_applied(applied, incoming)
    _print_import(document, map(changes_in_words, applied.people), request.as_json)
    return 0 if applied.written and applied.finished else 1


def _checked_annotator(name: str | None) -> str | None:
    """Return the full name of ``--annotator``; None without the option."""
    if name is None:
        return None
    try:
        return annotator_of("", name)  # only the option has a name, not a row
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def _report_applied(applied: Applied, incoming: Incoming) -> None:
    _report_problems(applied.problems)
    if not applied.written:
        refused_on_writing = len(applied.problems) - len(incoming.problems)
        has_good_rows = len(incoming.work) > refused_on_writing
        say(f"mast-tui import: {_remedies_text(applied.problems, has_good_rows=has_good_rows)}")
    if not applied.finished:
        say(
            "mast-tui import: the workspace changed meanwhile, so these were left out and the "
            "import is not finished; fix them and import again"
        )


def _read_incoming(
    request: ImportCommandRequest,
    file_format: Format,
    workspace: Workspace,
    annotator: str | None,
    crosswalk: Path | None,
) -> Incoming:
    """Read the files, check the spans of labels, and translate categories."""
    assert file_format.reads is not None
    taxonomy = load_taxonomy_or_mast(request.common.taxonomy)
    with WorkerPool(request.workers if file_format.uses_workers else None) as pool:
        files = pool.reachable(request.paths)
        judges_finished = request.judges_finished
        incoming = file_format.reads(
            ImportRequest(files, workspace, taxonomy, annotator, judges_finished, pool.workers)
        )
        pool.on_trace(len(incoming.traces))
    incoming = with_checked_spans(incoming, workspace)
    if len(incoming.work) > _QUIET_IMPORT and not request.as_json:
        say(f"writing {len(incoming.work):,} labelled traces …")
    if crosswalk is not None:
        incoming = translated(incoming, read_crosswalk(crosswalk), taxonomy, crosswalk)
    return incoming


def _request_key(
    file_format: str,
    files: tuple[Path, ...],
    annotator: str | None = None,
    crosswalk: Path | None = None,
) -> str:
    """Return the text that identifies an import when it is resumed."""
    paths = [str(file.absolute()) for file in files]
    return json.dumps([file_format, paths, annotator, crosswalk and str(crosswalk)])


def _incoming_counts(incoming: Incoming) -> dict[str, Any]:
    work = incoming.work
    return {
        "taxonomies": sorted({trace_work.taxonomy for trace_work in work}),
        "annotators": sorted({trace_work.annotator for trace_work in work}),
        "traces": len({trace_work.trace_id for trace_work in work}),
        "labels": sum(len(trace_work.labels) for trace_work in work),
        "verdicts": sum(len(trace_work.verdicts) for trace_work in work),
        "finished": sum(trace_work.finished_at is not None for trace_work in work),
    }


def _import_workspaces(request: ImportCommandRequest) -> int:
    """Merge exported workspaces (jsonl) into this one, and return the exit code."""
    files = request.paths
    contents = {file: read_jsonl(file) for file in files}
    workspace = open_workspace(request.common, create=True)
    author_problems = (
        []
        if request.allow_new
        else [
            problem
            for file, content in contents.items()
            for problem in unknown_people(file, content, workspace)
        ]
    )
    annotator = login_person(workspace) or request.common.annotator
    merge_result = MergeResult()
    if not author_problems:
        merge_result = merge_files(
            contents,
            workspace,
            request_key=_request_key("jsonl", files),
            replacing=request.replace,
            imported_by=annotator,
        )
        keep_missing_indices(workspace)

    document = {
        "format": "jsonl",
        "files": [str(file) for file in files],
        "written": not merge_result.refused and not author_problems,
        **_workspace_counts(contents.values()),
        "events": {"new": merge_result.new, "known": merge_result.known},
        "people": [changes_to_dict(changes) for changes in merge_result.people],
        "problems": [
            {"file": str(file), "place": changes.annotator, "reason": changes_in_words(changes)}
            for file, people in merge_result.refused.items()
            for changes in people
        ]
        + _problems_to_dicts(author_problems),
        "notes": merge_result.notes,
    }

    _report_problems(author_problems)
    if author_problems:
        say(f"mast-tui import: {_remedies_text(author_problems, has_good_rows=False)}")
    for file, people in merge_result.refused.items():
        say(f"mast-tui import: {refusal_in_words(file, people)}")
    _print_import(document, map(changes_in_words, merge_result.people), request.as_json)
    return 0 if document["written"] else 1


def _workspace_counts(contents: Collection[JsonlContent]) -> dict[str, Any]:
    """Return the taxonomies and annotators of exported workspaces, and counts of their content."""
    # Several files may have the same event.
    event_by_id = {event.id: event for content in contents for event in content.foreign.events}
    events = event_by_id.values()
    return {
        "taxonomies": sorted(
            {record.taxonomy.ref for content in contents for record in content.taxonomies}
            | {event.taxonomy for event in events if event.taxonomy is not None}
        ),
        "annotators": sorted(
            {name for content in contents for name, _ in content.annotators}
            | {event.annotator for event in events}
        ),
        "traces": len(
            {record.trace_id for content in contents for record in content.traces}
            | {event.trace_id for event in events if event.trace_id is not None}
        ),
        **_counts_after(events),
    }


def _counts_after(events: Iterable[Event]) -> dict[str, int]:
    """Return the numbers of labels, other verdicts and finished passes after all events."""
    passes: dict[tuple[object, ...], PassState] = {}
    for event in events:
        if event.trace_id is None or event.taxonomy is None or event.pass_number is None:
            continue
        work = (event.annotator, event.trace_id, event.taxonomy)
        new_state = PassState(
            *work, number=event.pass_number, kind=PassKind.BLIND, started_at=event.at
        )
        state = passes.setdefault((*work, event.pass_number), new_state)
        state.apply(event.fact, event.at)
        if isinstance(event.fact, Judged):
            state.verdicts = dict.fromkeys(event.fact.absent, VerdictValue.ABSENT)
            state.verdicts |= dict.fromkeys(event.fact.unsure, VerdictValue.UNSURE)
            state.finished_at = event.at
            state.withdrawn = False
    states = [state for state in passes.values() if not state.withdrawn]
    return {
        "labels": sum(len(state.labels) for state in states),
        "verdicts": sum(len(state.verdicts) for state in states),
        "finished": sum(state.finished_at is not None for state in states),
    }


def _problems_to_dicts(problems: Iterable[RowProblem]) -> list[dict[str, str]]:
    return [
        {"file": str(problem.file), "place": problem.place, "reason": problem.reason}
        for problem in problems
    ]


def _report_problems(problems: Iterable[RowProblem]) -> None:
    lines = problem_lines(
        (str(problem.file), problem.place, problem.reason) for problem in problems
    )
    for line in lines[:_MAX_PROBLEMS]:
        say(f"mast-tui import: {line}")
    if len(lines) > _MAX_PROBLEMS:
        say(f"mast-tui import: and {len(lines) - _MAX_PROBLEMS} more")


def _remedies_text(problems: Iterable[RowProblem], *, has_good_rows: bool) -> str:
    """Return sentences that say that nothing was written, and name the remedies."""
    remedies = {problem.remedy for problem in problems}
    sentences = ["nothing was written"]
    if Remedy.FIX_ROW in remedies:
        sentences.append("Fix the rows")
    if has_good_rows:
        sentences.append("Use --skip-errors to import the other rows")
    if Remedy.ALLOW_NEW in remedies:
        sentences.append("Use --allow-new to accept new traces and annotators")
    return ". ".join(sentences)


def _print_import(document: dict[str, Any], people_texts: Iterable[str], as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    for note in document["notes"]:
        say(note)
    if document["written"]:
        print_line(_import_summary(document))
        for text in people_texts:
            print_line(text)


def _import_summary(document: Mapping[str, Any]) -> str:
    """Return a sentence on the new events and a sentence on the content of the files."""
    new_count = document["events"]["new"]
    known_count = document["events"]["known"]
    content_text = (
        f"{counted(document['labels'], 'label')} and {counted(document['verdicts'], 'verdict')}"
    )
    names_text = ", ".join(document["annotators"]) or "no one"
    traces_text = counted(document["traces"], "trace")
    taxonomies_text = f" ({', '.join(document['taxonomies'])})" if document["taxonomies"] else ""
    subject = "The file contains" if len(document["files"]) == 1 else "The files contain"
    events_text = "Nothing is new"
    if new_count:
        events_text = f"Imported as {counted(new_count, 'event')}"
    if known_count:
        known_text = f", {known_count:,}" if new_count else f": {counted(known_count, 'event')}"
        verb = "was" if known_count == 1 else "were"
        events_text += f"{known_text} {verb} already in the workspace"
    return (
        f"{events_text}. {subject} {content_text} by {names_text} on {traces_text}{taxonomies_text}"
    )


def list_imports(workspace: Workspace, as_json: bool) -> int:
    """List all imports with their counts, the earliest first.

    Args:
        workspace: The workspace.
        as_json: Print one JSON document.

    Returns:
        The exit code.
    """
    documents = [_import_json(workspace, record) for record in workspace.imports()]
    if as_json:
        print_json({"imports": documents})
        return 0
    if not documents:
        say("nothing was imported into this workspace")
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


def _import_json(workspace: Workspace, record: ImportRecord) -> dict[str, Any]:
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


def undo_imported(
    workspace: Workspace, import_id: str, annotator: str | None, as_json: bool
) -> int:
    """Undo an import, or report the later work that depends on it.

    Args:
        workspace: The workspace.
        import_id: The id of the import; empty for the newest one.
        annotator: The person who undoes the import. The name of the login takes precedence.
        as_json: Print one JSON document.

    Returns:
        The exit code.
    """
    record = find_import(workspace, import_id)
    result = undo_import(workspace, record, login_person(workspace) or annotator)
    files = ", ".join(record.files)
    summary = f"undid {counted(result.events, 'event')} of import {record.id} ({files})"
    return print_undo_result(
        result,
        {"import": record.id},
        command="mast-tui import",
        operation=f"import {record.id}",
        success=f"{summary}; its traces stay in the workspace",
        as_json=as_json,
    )
