"""``mast-tui taxonomy``: show and compare taxonomies, and carry labels over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from mast_tui.cli.agree import figure_column, figure_text, split_names
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.open_codes import CodeChoice, open_code_json, select_codes, visible_coding
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, existing_workspace, report_hidden_traces
from mast_tui.cli.shared.common import (
    open_with_taxonomy,
    open_workspace,
    print_json,
    print_line,
    print_table,
    print_undo_result,
    summary_of,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.exchange.crosswalk import find_crosswalk
from mast_tui.exchange.migration.mapping import (
    CodebookMap,
    ModeChange,
    candidate_map,
    codebook_map,
    taxonomy_toml,
    with_mode,
)
from mast_tui.exchange.migration.migrate import (
    GONE_ON,
    OWN_WORK,
    Migrated,
    check_lead,
    check_may_migrate,
    migrate,
    standing_migrations,
)
from mast_tui.exchange.undo_import import find_import, undo_import
from mast_tui.figures.agreement.report import StudyInput, agreement_figures
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.record import estimate_json
from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.labels import Label, VerdictValue, Which
from mast_tui.safe_text import one_line
from mast_tui.session import QueueKind, Viewer, login_person, queue, visibility_json
from mast_tui.taxonomy.changes import FieldChange, ModeCandidate, TaxonomyChanges, changes
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.imports import MIGRATION

_TAXONOMY_REFUSAL: Final = "OLD and NEW name the taxonomies"
_NO_LABELS_REFUSAL: Final = "it reads taxonomies, not labels"
_MODE_WIDTH: Final = 44
"""The most characters of a mode's name in a table."""

_LEFT_REASONS: Final = {
    OWN_WORK: "has work under the new taxonomy that was not carried over",
    GONE_ON: "was carried over before, and has changed under the old taxonomy since",
}

_LIST_LENGTH: Final = 20
"""The most lines of a printed list."""


@click.group()
def taxonomy_command() -> None:
    """Show a taxonomy, compare versions, and move labels to a new version.

    OLD and NEW are taxonomy files, names id@version of taxonomies in the workspace, or mast.

    Example: mast-tui taxonomy diff mast my-modes.toml
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyShowRequest:
    """The options of ``mast-tui taxonomy show``."""

    name: str = options.argument(default="mast")
    common: CommonOptions = options.common(
        annotator=_NO_LABELS_REFUSAL,
        taxonomy=_TAXONOMY_REFUSAL,
        blind=_NO_LABELS_REFUSAL,
        assisted=_NO_LABELS_REFUSAL,
    )
    as_json: bool = options.as_json()


@taxonomy_command.command("show")
@options.takes(TaxonomyShowRequest)
def show_command(request: TaxonomyShowRequest) -> None:
    """Show the categories and modes of a taxonomy, and their keys.

    The keys of a mode label a span with it. NAME is a file, id@version of a taxonomy in the
    workspace, or mast. A mode keeps the two digits that earlier versions in the workspace gave it.

    Example: mast-tui taxonomy show mast
    """
    workspace = existing_workspace(request.common)
    taxonomy = _find_taxonomy(request.name, workspace)
    taxonomy = taxonomy if workspace is None else workspace.with_positions(taxonomy)
    if request.as_json:
        print_json(_taxonomy_values(taxonomy))
        return
    print_line(f"{taxonomy.ref}  {taxonomy.name}")
    for category in taxonomy.tree():
        indent = "  " * len(taxonomy.path(category.id))
        click.echo(indent + one_line(category.name))
        for mode in taxonomy.modes:
            if mode.category == category.id:
                click.echo(
                    f"{indent}  {taxonomy.keys_of(mode)}  " + one_line(f"{mode.code}  {mode.name}")
                )


def _taxonomy_values(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return the document of ``taxonomy show --json``."""
    level_index_by_category = {
        category.id: len(taxonomy.path(category.id)) - 1 for category in taxonomy.categories
    }
    return {
        "taxonomy": taxonomy.ref,
        "name": taxonomy.name,
        "levels": list(taxonomy.levels),
        "categories": [
            {
                "id": category.id,
                "name": category.name,
                "level": taxonomy.levels[level_index_by_category[category.id]],
                "under": category.under or None,
            }
            for category in taxonomy.tree()
        ],
        "modes": [
            {
                "slug": mode.slug,
                "code": mode.code,
                "keys": taxonomy.keys_of(mode),
                "name": mode.name,
                "category": mode.category,
            }
            for mode in taxonomy.modes
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyDiffRequest:
    """The options of ``mast-tui taxonomy diff``."""

    old: str = options.argument()
    new: str = options.argument()
    common: CommonOptions = options.common(
        annotator=_NO_LABELS_REFUSAL,
        taxonomy=_TAXONOMY_REFUSAL,
        blind=_NO_LABELS_REFUSAL,
        assisted=_NO_LABELS_REFUSAL,
    )
    as_json: bool = options.as_json()


@taxonomy_command.command("diff")
@options.takes(TaxonomyDiffRequest)
def diff_command(request: TaxonomyDiffRequest) -> None:
    """Show what differs between two versions of a taxonomy.

    Lists changes of wording, names and codes, and modes that were added, dropped or may have been
    renamed, split or merged. The last line says whether labels can stay; if not, 'taxonomy migrate'
    carries them over.

    Example: mast-tui taxonomy diff mast my-modes.toml
    """
    workspace = existing_workspace(request.common)
    old_taxonomy = _find_taxonomy(request.old, workspace)
    new_taxonomy = _find_taxonomy(request.new, workspace)
    all_changes = changes(old_taxonomy, new_taxonomy)
    if request.as_json:
        print_json({"from": old_taxonomy.ref, "to": new_taxonomy.ref, **_changes_json(all_changes)})
        return
    print_line(f"{old_taxonomy.ref} → {new_taxonomy.ref}")
    for line in _changes_lines(all_changes, new_taxonomy):
        click.echo(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyMigrateRequest:
    """The options of ``mast-tui taxonomy migrate``."""

    old: str | None = options.argument(required=False)
    new: str | None = options.argument(required=False)
    map_file: Path | None = options.option(
        "--map",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The map for modes whose slug is not in the new version: TOML, JSON or CSV as for a "
        "crosswalk, or the name of a crosswalk that comes with mast-tui.",
    )
    dry_run: bool = options.option(
        "--dry-run",
        is_flag=True,
        help="Only show the result; labels of others in it are recorded as seen.",
    )
    undo: bool = options.option("--undo", is_flag=True, help="Undo the last migration.")
    common: CommonOptions = options.common(
        taxonomy=_TAXONOMY_REFUSAL,
        blind="it shows nothing of traces that are hidden from you",
        assisted="it shows nothing of traces that are hidden from you",
    )
    as_json: bool = options.as_json()


_MIGRATE_RULES: Final = (
    OptionRule[TaxonomyMigrateRequest](
        "--undo undoes the last migration; leave out everything else",
        options=("--undo",),
        excludes=("old", "new", "--map", "--dry-run"),
    ),
    OptionRule[TaxonomyMigrateRequest](
        "give two taxonomies: mast-tui taxonomy migrate OLD NEW --map FILE",
        needs=("new", "--undo"),
    ),
)


@taxonomy_command.command("migrate")
@options.takes(TaxonomyMigrateRequest, _MIGRATE_RULES)
def migrate_command(request: TaxonomyMigrateRequest) -> int:
    """Carry everyone's work from the taxonomy OLD over to NEW.

    That is labels, passes, decisions, guidelines and times. Nothing under OLD changes: figures of
    both stay available. A mode without an entry in the map becomes the mode of the same slug. If a
    mode was split, its annotators check the new modes: the library's queue 'a mode I labelled was
    split later' has these traces.

    Example: mast-tui taxonomy migrate mast my-modes.toml --dry-run
    """
    workspace = open_workspace(request.common)
    annotator = login_person(workspace) or request.common.annotator
    if request.undo:
        return _undo_newest_migration(workspace, annotator, request.as_json)
    old_taxonomy = _find_taxonomy(str(request.old), workspace)
    new_taxonomy = _find_taxonomy(str(request.new), workspace)
    mapping = codebook_map(
        old_taxonomy,
        new_taxonomy,
        None if request.map_file is None else find_crosswalk(request.map_file),
    )
    check_lead(workspace, old_taxonomy, annotator)
    viewer = command_viewer(workspace, old_taxonomy.ref, request.common)
    return _print_migration(
        _carry_over(mapping, annotator, viewer, dry_run=request.dry_run),
        mapping,
        viewer,
        (),
        as_json=request.as_json,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyAddRequest:
    """The options of ``mast-tui taxonomy add``."""

    name: str = options.argument()
    category: str = options.option(
        "--category", required=True, metavar="ID", help="The category of the mode."
    )
    chosen: CodeChoice = options.group(CodeChoice)
    definition: str = options.option("--definition", default="", help="The definition of the mode.")
    slug: str | None = options.option(
        "--slug", help="The slug of the mode. Default: made from NAME."
    )
    code: str | None = options.option(
        "--code", help="The code of the mode. Default: the next free code of the category."
    )
    version: str | None = options.option(
        "--version", help="The new version. Default: 3+1 after 3, and 3+2 after 3+1."
    )
    output: Path | None = options.output(help="The new taxonomy file. Default: ID-VERSION.toml.")
    dry_run: bool = options.option(
        "--dry-run",
        is_flag=True,
        help="Only show the result; labels of others in it are recorded as seen.",
    )
    force: bool = options.force()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


_ADD_RULES: Final = (
    options.ONE_OUTPUT_ON_STDOUT,
    OptionRule[TaxonomyAddRequest](
        "choose the open codes with --group, --tag or --search, as 'study notes' lists them",
        needs=("--group", "--tag", "--search"),
    ),
)


@taxonomy_command.command("add")
@options.takes(TaxonomyAddRequest, _ADD_RULES)
def add_mode_command(request: TaxonomyAddRequest) -> int:
    """Make a mode from open codes, in a new taxonomy version.

    The codes become the first labels of the mode. Choose them with --group, --tag or --search, as
    'study notes' lists them. All other labels are carried over unchanged; elsewhere the new mode is
    open, as no one has checked it. 'taxonomy migrate --undo' undoes it.

    Example: mast-tui taxonomy add Units --category inter_agent --tag unit
    """
    workspace, old_taxonomy = open_with_taxonomy(request.common)
    outputs = outputs_beside(workspace, force=request.force)
    viewer = command_viewer(workspace, old_taxonomy.ref, request.common)
    check_lead(workspace, old_taxonomy, viewer.name)
    codes = select_codes(visible_coding(viewer, workspace, old_taxonomy), request.chosen).codes
    if not codes:
        raise click.ClickException("no open code is chosen; 'mast-tui study notes' lists them")
    new_taxonomy = with_mode(
        old_taxonomy,
        request.name,
        request.category,
        definition=request.definition,
        slug=request.slug,
        code=request.code,
        version=request.version,
        used_versions=[taxonomy.ref for taxonomy in workspace.taxonomies()],
    )
    (mode,) = set(new_taxonomy.modes) - set(old_taxonomy.modes)
    mapping = candidate_map(old_taxonomy, new_taxonomy, mode.slug, codes)
    file = request.output or Path(f"{new_taxonomy.id}-{new_taxonomy.version}.toml")
    summary = f"{mode.code} {mode.name}: {len(codes)} open codes are its first labels"
    if request.dry_run:
        lines = [f"{summary}, once written"]
    else:
        outputs.add(file, taxonomy_toml(new_taxonomy))
        outputs.commit()
        lines = [summary, f"{file}: written; continue with --taxonomy {file}"]
    document = _carry_over(mapping, viewer.name, viewer, dry_run=request.dry_run)
    document |= {
        "mode": {"slug": mode.slug, "code": mode.code, "name": mode.name},
        "places": [open_code_json(code) for code in codes],
        "file": None if request.dry_run else str(file),
    }
    with summary_of(file):
        return _print_migration(document, mapping, viewer, lines, as_json=request.as_json)


def _carry_over(
    mapping: CodebookMap, annotator: str | None, viewer: Viewer, *, dry_run: bool
) -> dict[str, Any]:
    """Carry labels over to a new taxonomy, and return the JSON document of the result.

    With ``dry_run`` only a copy of the workspace changes. The viewer's history records the visible
    traces as seen.
    """
    workspace = viewer.workspace
    hidden_traces = viewer.hidden
    with workspace.trial() if dry_run else nullcontext(workspace) as target_workspace:
        migrated = migrate(target_workspace, mapping, annotator)
        document = _migration_json(migrated, mapping, target_workspace, _visibility_test(viewer))
    if dry_run:
        document |= {"dry_run": True, "import": None}
    viewer.reveal()
    return {**document, **visibility_json(viewer, hidden_traces)}


def _print_migration(
    document: Mapping[str, Any],
    mapping: CodebookMap,
    viewer: Viewer,
    lines: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Print the result of ``_carry_over``, then ``lines``, and return the exit code.

    The exit code is 1 if labels were lost.
    """
    if as_json:
        print_json(document)
    else:
        _print_document(document, mapping)
        for line in lines:
            print_line(line)
        report_hidden_traces(viewer, viewer.hidden)
    return 1 if document["lost"] else 0


def _find_taxonomy(name: str, workspace: Workspace | None) -> Taxonomy:
    """Return a taxonomy by the path of a file, or by its name in the workspace.

    ``mast`` and MAST's ``id@version`` are always available.

    Raises:
        click.ClickException: There is no such file or taxonomy.
    """
    if Path(name).is_file():
        return load_taxonomy(Path(name))
    available = (
        {} if workspace is None else {taxonomy.ref: taxonomy for taxonomy in workspace.taxonomies()}
    )
    mast = load_mast()
    available.setdefault(mast.ref, mast)
    available.setdefault(mast.id, available[mast.ref])
    if name not in available:
        raise click.ClickException(
            f"{name}: no such file and no such taxonomy in the workspace; there are "
            f"{', '.join(sorted(ref for ref in available if '@' in ref))}"
        )
    return available[name]


def _visibility_test(viewer: Viewer) -> Callable[[str, str], bool]:
    """Return a check of an annotator's work on a trace: may the viewer see it?"""
    return lambda annotator, trace_id: (
        not viewer.sees_finished_only or annotator == viewer.name or viewer.may_see_others(trace_id)
    )


def _undo_newest_migration(workspace: Workspace, annotator: str | None, as_json: bool) -> int:
    """Undo the newest migration, and return the exit code."""
    check_may_migrate(workspace)
    if not standing_migrations(workspace):
        raise click.ClickException("there is no migration in the workspace to undo")
    record = find_import(workspace, "", import_format=MIGRATION)  # an empty id finds the newest one
    result = undo_import(workspace, record, annotator)
    migration = f"the migration {' → '.join(record.files)}"
    return print_undo_result(
        result,
        {"import": record.id, "from": record.files[0], "to": record.files[1]},
        command="mast-tui taxonomy migrate",
        operation=migration,
        success=f"undid {migration}: {counted(result.events, 'event')}",
        as_json=as_json,
    )


def _migration_json(
    migrated: Migrated,
    mapping: CodebookMap,
    workspace: Workspace,
    may_see: Callable[[str, str], bool],
) -> dict[str, Any]:
    """Return the JSON document of a migration.

    ``may_see`` decides on the labels and the work to list. The rest is only counted.
    """

    def visible(items: Iterable[Any]) -> list[Any]:
        """Return the items that the viewer may see."""
        return [item for item in items if may_see(item.annotator, item.trace_id)]

    carried = visible(migrated.carried.values())
    look_again = visible(migrated.look_again)
    dropped = visible(migrated.dropped)
    left = visible(migrated.left)
    return {
        "from": mapping.old.ref,
        "to": mapping.new.ref,
        "dry_run": False,
        "import": None if migrated.record is None else migrated.record.id,
        "events": migrated.events,
        "works": len(migrated.works),
        "modes": _modes_json(mapping, workspace, may_see),
        "added": list(mapping.added),
        "labels": {
            "carried": len(carried),
            "joined": sum(label.id in migrated.joined for label in carried),
            "look_again": sum(len(item.places) for item in look_again),
            "dropped": len(dropped),
        },
        "hidden": {
            "carried": len(migrated.carried) - len(carried),
            "look_again": len(migrated.look_again) - len(look_again),
            "dropped": len(migrated.dropped) - len(dropped),
            "left": len(migrated.left) - len(left),
        },
        "look_again": [
            {
                **_owner_json(item),
                "modes": list(item.modes),
                "places": [_label_json(label) for label in item.places],
            }
            for item in look_again
        ],
        "dropped": [{**_owner_json(label), **_label_json(label)} for label in dropped],
        "left": [{**_owner_json(work), "why": work.why} for work in left],
        # Lost labels are a defect, so all of them are listed.
        "lost": [{**_owner_json(label), **_label_json(label)} for label in migrated.lost],
    }


def _owner_json(item: Any) -> dict[str, str]:
    return {"annotator": item.annotator, "trace_id": item.trace_id}


def _modes_json(
    mapping: CodebookMap, workspace: Workspace, may_see: Callable[[str, str], bool]
) -> list[dict[str, Any]]:
    """Return the old modes with their new modes and the counts of visible verdicts."""
    counts = Counter(
        (verdict.mode, verdict.value)
        for verdict in workspace.verdicts(taxonomy=mapping.old.ref)
        if may_see(verdict.annotator, verdict.trace_id)
    )
    return [
        {
            "mode": mode.slug,
            "code": mode.code,
            "change": mapping.change(mode.slug).value,
            "becomes": list(mapping.targets[mode.slug]),
            **{value.value: counts[mode.slug, value] for value in VerdictValue},
        }
        for mode in mapping.old.modes
    ]


def _label_json(label: Label) -> dict[str, Any]:
    target = label.target
    return {
        "mode": label.mode,
        "first": target.first,
        "last": target.last,
        "quote": target.quote,
        "note": label.note,
    }


def _print_document(document: Mapping[str, Any], mapping: CodebookMap) -> None:
    """Print the document of a migration as text."""
    action = "would carry" if document["dry_run"] else "carried"
    labels = document["labels"]
    hidden = document["hidden"]
    traces = counted(document["works"], "labelled trace")
    print_line(
        f"{document['from']} → {document['to']}: {action} {traces} "
        f"with {counted(labels['carried'], 'label')} over ({labels['joined']} joined with another)"
    )
    if hidden["carried"]:
        verb = "is" if hidden["carried"] == 1 else "are"
        print_line(
            f"{counted(hidden['carried'], 'label')} of others {verb} hidden from you and {verb} "
            "carried over too"
        )
    columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
        TableColumn("mode", lambda row: f"{row['code']} {row['mode']}"[:_MODE_WIDTH]),
        key_column("change"),
        TableColumn("becomes", lambda row: _new_codes(row, mapping)),
        *(key_column(value.value, right=True) for value in VerdictValue),
    )
    print_table(columns, document["modes"])
    if document["added"]:
        print_line(f"new, and open everywhere: {', '.join(document['added'])}")
    look_again_lines = [
        f"{entry['trace_id']} · {entry['annotator']} · {', '.join(entry['modes'])} "
        f"({counted(len(entry['places']), 'place')})"
        for entry in document["look_again"]
    ]
    _print_list("traces to check again", look_again_lines, hidden["look_again"])
    _print_list(
        "labels of dropped modes stay under the old taxonomy",
        _label_lines(document["dropped"]),
        hidden["dropped"],
    )
    left_lines = [
        f"{entry['trace_id']} · {entry['annotator']} · {_LEFT_REASONS[entry['why']]}"
        for entry in document["left"]
    ]
    _print_list("work left as it is", left_lines, hidden["left"])
    _print_list("labels lost", _label_lines(document["lost"]), hidden=0)


def _new_codes(entry: Mapping[str, Any], mapping: CodebookMap) -> str:
    if mapping.change(entry["mode"]) is ModeChange.SAME:
        return ""
    return ", ".join(mapping.new.mode(slug).code for slug in entry["becomes"])


def _label_lines(labels: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{label['trace_id']} · {label['annotator']} · {label['mode']} · "
        f"{label['first'] or 'whole trace'}"
        for label in labels
    ]


def _print_list(title: str, lines: Sequence[str], hidden: int) -> None:
    """Print the first lines of a list, and the numbers of all lines and of hidden items."""
    hidden_text = f", and {hidden} hidden from you" if hidden else ""
    click.echo(f"{title}: {len(lines)}{hidden_text}")
    for line in lines[:_LIST_LENGTH]:
        click.echo(f"  {one_line(line)}")
    if len(lines) > _LIST_LENGTH:
        click.echo(f"  and {len(lines) - _LIST_LENGTH} more; --json lists all")


def _changes_json(changes: TaxonomyChanges) -> dict[str, Any]:
    """Return the document of ``taxonomy diff --json``."""
    return {
        "same": changes.same,
        "wording": {slug: list(texts) for slug, texts in changes.wording.items()},
        "names": _differences_json(changes.names),
        "codes": _differences_json(changes.codes),
        "moved": _differences_json(changes.moved),
        "categories": list(changes.categories),
        "reordered": changes.reordered,
        "added": list(changes.added),
        "dropped": list(changes.dropped),
        "renamed": _candidates_json(changes.renamed),
        "split": _candidates_json(changes.split),
        "merged": _candidates_json(changes.merged),
    }


def _differences_json(changes: Sequence[FieldChange]) -> list[dict[str, str]]:
    return [{"mode": change.mode, "from": change.old, "to": change.new} for change in changes]


def _candidates_json(candidates: Sequence[ModeCandidate]) -> list[dict[str, Any]]:
    return [
        {
            "from": list(candidate.old),
            "to": list(candidate.new),
            "likeness": candidate.likeness,
        }
        for candidate in candidates
    ]


def _changes_lines(changes: TaxonomyChanges, new: Taxonomy) -> Iterator[str]:
    """Yield a line for each change, then the advice on labels, then a draft of a map."""
    texts_by_title = {
        "wording": [f"{slug}: {', '.join(texts)}" for slug, texts in changes.wording.items()],
        "name": map(_difference_text, changes.names),
        "code": map(_difference_text, changes.codes),
        "moved": map(_difference_text, changes.moved),
        "category": map(_category_text, changes.categories),
        "order": ["the modes are in another order"] if changes.reordered else [],
        "added": changes.added,
        "dropped": changes.dropped,
        "renamed?": map(_candidate_text, changes.renamed),
        "split?": map(_candidate_text, changes.split),
        "merged?": map(_candidate_text, changes.merged),
    }
    for title, texts in texts_by_title.items():
        yield from (one_line(f"{title:<9} {text}") for text in texts)
    if changes.same:
        yield f"labels can stay under {new.ref}: only wording differs, or nothing"
        return
    yield f"labels cannot stay: carry them over with 'mast-tui taxonomy migrate', to {new.ref}"
    if changes.dropped:
        yield "a map to start from; check each line:"
        yield "  [modes]"
        yield from (f"  {_map_entry(changes, slug)}" for slug in changes.dropped)


def _difference_text(difference: FieldChange) -> str:
    return f"{difference.mode}: {difference.old} → {difference.new}"


def _category_text(category: str) -> str:
    # A minus marks a dropped category.
    return f"{category.removeprefix('-')} {'is gone' if category.startswith('-') else 'is new'}"


def _candidate_text(candidate: ModeCandidate) -> str:
    modes_text = f"{', '.join(candidate.old)} → {', '.join(candidate.new)}"
    return f"{modes_text} ({candidate.likeness:.2f} alike)"


def _map_entry(changes: TaxonomyChanges, slug: str) -> str:
    """Return the line of a map for a dropped mode, with the new modes that may be the same."""
    targets = dict.fromkeys(
        target
        for candidate in (*changes.renamed, *changes.split, *changes.merged)
        if slug in candidate.old
        for target in candidate.new
    )
    targets_text = ", ".join(f'"{target}"' for target in targets)
    return f"{slug} = " + (targets_text if len(targets) == 1 else f"[{targets_text}]")


_FIGURES: Final = ("cohen_kappa", "krippendorff_alpha")
_FIGURE_TITLES: Final = dict(zip(_FIGURES, ("κ", "α"), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyAgreeRequest:
    """The options of ``mast-tui taxonomy agree``."""

    versions: tuple[str, ...] = options.argument(nargs=-1, metavar="[VERSION …]")
    annotators: str | None = options.option(
        "--annotators", metavar="A,B,…", help="The annotators to compare. Default: as for 'agree'."
    )
    which: Which = options.which_pass(default="1")
    rounds: int = options.rounds(
        help="The number of resamples of the traces; 0 gives no intervals."
    )
    seed: int = options.seed()
    common: CommonOptions = options.common(taxonomy="VERSION gives the taxonomies, the newest last")
    as_json: bool = options.as_json()


@taxonomy_command.command("agree")
@options.takes(TaxonomyAgreeRequest)
def agree_versions_command(request: TaxonomyAgreeRequest) -> None:
    """Show κ and α of each version of a codebook.

    Also compares each version with the last one on the same traces. VERSION is the name id@version
    of a taxonomy in the workspace, the newest last. Default: all taxonomies that labels were
    migrated from, and the one they were migrated to.

    Example: mast-tui taxonomy agree mast@3 mast@3+1
    """
    workspace = open_workspace(request.common)
    taxonomies = _compared_taxonomies(workspace, request.versions)
    names = split_names(request.annotators)
    viewers = [command_viewer(workspace, taxonomy.ref, request.common) for taxonomy in taxonomies]
    studies = [
        study_from_workspace(
            workspace, taxonomy, annotators=names, which=request.which, traces=viewer.traces
        )
        for taxonomy, viewer in zip(taxonomies, viewers, strict=True)
    ]
    document: dict[str, Any] = {
        "annotators": list(studies[-1].annotators),
        "pass": studies[-1].pass_label,
        "versions": [
            {
                "taxonomy": taxonomy.ref,
                "modes": len(taxonomy.modes),
                **_version_figures(study, studies[-1], request),
                "look_again": _count_look_again(workspace, taxonomy, viewer),
            }
            for taxonomy, study, viewer in zip(taxonomies, studies, viewers, strict=True)
        ],
    }
    for viewer in viewers:
        viewer.reveal()
    hidden = frozenset[str]().union(*(viewer.hidden for viewer in viewers))
    document |= visibility_json(viewers[-1], hidden)
    if request.as_json:
        print_json(document)
        return
    _print_versions(document)
    report_hidden_traces(viewers[-1], hidden)


def _compared_taxonomies(workspace: Workspace, requested: Sequence[str]) -> list[Taxonomy]:
    """Return the taxonomies to compare, the newest last.

    Raises:
        click.ClickException: A taxonomy is missing, or no labels were migrated.
        click.UsageError: There are fewer than two taxonomies, or one is given twice.
    """
    stored_by_ref = {taxonomy.ref: taxonomy for taxonomy in workspace.taxonomies()}
    if not requested:
        # The ``files`` of a migration are the names of its two taxonomies.
        ref_pairs = [migration.files for migration in standing_migrations(workspace)]
        old_refs = list(dict.fromkeys(old_ref for old_ref, _ in ref_pairs))
        new_refs = list(dict.fromkeys(new_ref for _, new_ref in ref_pairs))
        requested = [*old_refs, *(ref for ref in new_refs if ref not in old_refs)]
        if not requested:
            raise click.ClickException(
                "no labels were migrated in this workspace; give the taxonomies to compare"
            )
    for name in requested:
        if name not in stored_by_ref:
            raise click.ClickException(
                f"{name}: no such taxonomy in the workspace; there are "
                f"{', '.join(sorted(stored_by_ref))}"
            )
    if len(requested) < 2 or len(set(requested)) < len(requested):
        raise click.UsageError("give at least two different taxonomies")
    return [stored_by_ref[name] for name in requested]


def _shared_traces(study: StudyInput) -> frozenset[str]:
    """Return the traces that two or more annotators have finished."""
    counts = Counter(trace for traces in study.finished.values() for trace in traces)
    return frozenset(trace for trace, count in counts.items() if count > 1)


def _agreement_json(
    study: StudyInput, traces: frozenset[str], rounds: int, seed: int
) -> dict[str, Any]:
    """Return the agreement on some traces, over all modes together."""
    finished = {name: finished_traces & traces for name, finished_traces in study.finished.items()}
    # The study's ``rounds`` are rounds of labelling, which need no figures here. The argument
    # ``rounds`` is the number of resamples.
    study_on_traces = replace(study, finished=finished, rounds={})
    agreement = agreement_figures(study_on_traces, Resampling(rounds, seed))
    pooled = agreement.index.table("pooled")
    return {"traces": len(traces), **{name: estimate_json(pooled[name]) for name in _FIGURES}}


def _version_figures(
    study: StudyInput, newest_study: StudyInput, request: TaxonomyAgreeRequest
) -> dict[str, Any]:
    """Return the agreement under a version, and its comparison with the newest one.

    Both versions are compared on the traces that are shared under both.
    """

    def _agreement(version: StudyInput, traces: frozenset[str]) -> dict[str, Any]:
        return _agreement_json(version, traces, request.rounds, request.seed)

    figures = _agreement(study, _shared_traces(study))
    if study is newest_study:
        return {**figures, "same_traces": None}
    traces = _shared_traces(study) & _shared_traces(newest_study)
    here = _agreement(study, traces)
    last = _agreement(newest_study, traces)
    same_traces = {
        "traces": len(traces),
        "here": {name: here[name] for name in _FIGURES},
        "last": {name: last[name] for name in _FIGURES},
    }
    return {**figures, "same_traces": same_traces}


def _count_look_again(workspace: Workspace, taxonomy: Taxonomy, viewer: Viewer) -> int:
    """Count the visible traces to check again after a split of a mode, for all annotators."""
    may_see = _visibility_test(viewer)
    names = [annotator.name for annotator in workspace.annotators() if annotator.kind.is_person]
    return sum(
        may_see(name, item.trace_id)
        for name in names
        for item in queue(workspace, taxonomy, name, QueueKind.CHANGED)
    )


def _print_versions(document: Mapping[str, Any]) -> None:
    """Print the agreement of each version as a table."""
    newest_ref = document["versions"][-1]["taxonomy"]
    columns = (
        key_column("taxonomy", "version"),
        key_column("modes", right=True),
        key_column("traces", right=True),
        *(figure_column(name, title) for name, title in _FIGURE_TITLES.items()),
        key_column("look_again", "look again", right=True),
        TableColumn(
            "same traces",
            lambda version: str(version["same_traces"]["traces"]) if version["same_traces"] else "",
            right=True,
        ),
        *(
            _same_traces_column(name, side, f"{title} {side_title}")
            for name, title in _FIGURE_TITLES.items()
            for side, side_title in (("here", "here"), ("last", newest_ref))
        ),
    )
    print_table(columns, document["versions"])
    annotators = ", ".join(document["annotators"]) or "no one"
    which = "first" if document["pass"] == "1" else "last"
    click.echo(f"{annotators}, {which} finish; over all modes of a version together")


def _same_traces_column(name: str, side: str, title: str) -> TableColumn[Mapping[str, Any]]:
    """Return the column of a figure on the traces shared with the newest version.

    ``side`` is ``here`` for this version, and ``last`` for the newest one.
    """

    def cell(version: Mapping[str, Any]) -> str:
        comparison = version["same_traces"]
        return "" if comparison is None else figure_text(comparison[side][name])

    return TableColumn(title, cell, right=True)
