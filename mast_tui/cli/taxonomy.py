"""``mast-tui taxonomy``: what changed between two versions, and labels carried over to the new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.open_codes import CodeChoice, chosen_of, coding_seen_by, place_values
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by, say_left_out, workspace_there
from mast_tui.cli.shared.common import (
    open_workspace,
    opened,
    print_json,
    print_line,
    print_table,
    print_undone,
)
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.taxonomy_agree import agree_versions_command
from mast_tui.columns import TableColumn, key_column
from mast_tui.counts import counted
from mast_tui.exchange.crosswalk import find_crosswalk
from mast_tui.exchange.migration.candidate import candidate_map, taxonomy_toml, with_mode
from mast_tui.exchange.migration.mapping import Change, CodebookMap, codebook_map
from mast_tui.exchange.migration.migrate import (
    GONE_ON,
    OWN_WORK,
    Migrated,
    check_lead,
    migrate,
    standing_migrations,
)
from mast_tui.exchange.undo_import import find_import, undo_import
from mast_tui.labels import Label, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.session import known_person, sight_values
from mast_tui.taxonomy.changes import Differs, ModeCandidate, TaxonomyChanges, changes
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.imports import MIGRATION

if TYPE_CHECKING:
    from mast_tui.session import Viewer

_NAMED: Final = "OLD and NEW name the taxonomies"
_NO_LABELS: Final = "it looks at taxonomies, not at labels"
_WIDEST: Final = 44
"""So many characters of a mode's name stand in a table."""

_WHY: Final = {
    OWN_WORK: "has work under the new taxonomy that was not carried over",
    GONE_ON: "was carried over before, and has gone on under the old taxonomy since",
}

_SHOWN: Final = 20
"""So many places are listed where nobody asks for JSON."""


@click.group()
def taxonomy_command() -> None:
    """Show a taxonomy, compare versions, and carry labels over to the next.

    OLD and NEW are taxonomy files, names id@version of taxonomies in the workspace, or mast.
    """


taxonomy_command.add_command(agree_versions_command, "agree")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyShowRequest:
    """The options of ``mast-tui taxonomy show``."""

    name: str = options.argument(default="mast")
    common: CommonOptions = options.common(
        annotator=_NO_LABELS, taxonomy=_NAMED, blind=_NO_LABELS, assisted=_NO_LABELS
    )
    as_json: bool = options.as_json()


@taxonomy_command.command("show")
@options.takes(TaxonomyShowRequest)
def show_command(request: TaxonomyShowRequest) -> None:
    """Show the categories and modes of NAME, with what types each mode.

    NAME is a file, id@version of a taxonomy in the workspace, or mast. Two digits that earlier
    versions in the workspace have given to a mode stay its own.
    """
    place = workspace_there(request.common)
    found = _named(request.name, place)
    found = found if place is None else place.with_places(found)
    if request.as_json:
        print_json(_taxonomy_values(found))
        return
    print_line(f"{found.ref}  {found.name}")
    for category in found.tree():
        depth = "  " * len(found.path(category.id))
        click.echo(depth + one_line(category.name))
        for mode in found.modes:
            if mode.category == category.id:
                keys = found.keys_of(mode)
                click.echo(f"{depth}  {keys}  " + one_line(f"{mode.code}  {mode.name}"))


def _taxonomy_values(found: Taxonomy) -> dict[str, Any]:
    levels = {one.id: len(found.path(one.id)) - 1 for one in found.categories}
    return {
        "taxonomy": found.ref,
        "name": found.name,
        "levels": list(found.levels),
        "categories": [
            {
                "id": one.id,
                "name": one.name,
                "level": found.levels[levels[one.id]],
                "under": one.under or None,
            }
            for one in found.tree()
        ],
        "modes": [
            {
                "slug": mode.slug,
                "code": mode.code,
                "keys": found.keys_of(mode),
                "name": mode.name,
                "category": mode.category,
            }
            for mode in found.modes
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyDiffRequest:
    """The options of ``mast-tui taxonomy diff``."""

    old: str = options.argument()
    new: str = options.argument()
    common: CommonOptions = options.common(
        annotator=_NO_LABELS, taxonomy=_NAMED, blind=_NO_LABELS, assisted=_NO_LABELS
    )
    as_json: bool = options.as_json()


@taxonomy_command.command("diff")
@options.takes(TaxonomyDiffRequest)
def diff_command(request: TaxonomyDiffRequest) -> None:
    """Show what changed: words, names, codes, and which modes came, went, or may have become
    others.

    Labels can stay where the last line says so; else 'taxonomy migrate' carries them over.
    """
    place = workspace_there(request.common)
    before, after = _named(request.old, place), _named(request.new, place)
    found = changes(before, after)
    if request.as_json:
        print_json({"from": before.ref, "to": after.ref, **_changes_values(found)})
        return
    print_line(f"{before.ref} → {after.ref}")
    for line in _changes_lines(found, after):
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
        help="What becomes of modes that have no namesake: TOML, JSON or CSV as for a crosswalk, "
        "or the name of one that comes with mast-tui.",
    )
    dry_run: bool = options.option(
        "--dry-run", is_flag=True, help="Tell what would come of it, and write nothing."
    )
    undo: bool = options.option("--undo", is_flag=True, help="Take the last migration back.")
    common: CommonOptions = options.common(
        taxonomy=_NAMED,
        blind="it tells of no trace that is hidden from who asks",
        assisted="it tells of no trace that is hidden from who asks",
    )
    as_json: bool = options.as_json()


_MIGRATE_RULES: Final = (
    OptionRule[TaxonomyMigrateRequest](
        "--undo takes the last migration back; leave the rest out",
        options=("--undo",),
        excludes=("old", "new", "--map", "--dry-run"),
    ),
    OptionRule[TaxonomyMigrateRequest](
        "name two taxonomies: mast-tui taxonomy migrate OLD NEW --map FILE",
        needs=("new", "--undo"),
    ),
)


@taxonomy_command.command("migrate")
@options.takes(TaxonomyMigrateRequest, _MIGRATE_RULES)
def migrate_command(request: TaxonomyMigrateRequest) -> int:
    """Carry everybody's labels, passes, decisions, guidelines and times from OLD over to NEW.

    Nothing under OLD changes: figures of both can be had. A mode without an entry in the map
    becomes the one of the same slug. Where a mode was split, whoever had seen it is to look again:
    the library's queue 'codebook changed' holds these traces.
    """
    place = open_workspace(request.common)
    who = known_person(place) or request.common.annotator
    if request.undo:
        return _undo(place, who, request.as_json)
    before, after = _named(str(request.old), place), _named(str(request.new), place)
    mapping = codebook_map(
        before, after, None if request.map_file is None else find_crosswalk(request.map_file)
    )
    check_lead(place, before, who)
    viewer = asked_by(place, before.ref, request.common)
    document = _carried_over(mapping, who, viewer, dry_run=request.dry_run)
    return _tell_carried(document, mapping, viewer, (), as_json=request.as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyAddRequest:
    """The options of ``mast-tui taxonomy add``."""

    name: str = options.argument()
    category: str = options.option(
        "--category", required=True, metavar="ID", help="Under which category it stands."
    )
    chosen: CodeChoice = options.group(CodeChoice)
    definition: str = options.option("--definition", default="", help="What the mode is.")
    slug: str | None = options.option("--slug", help="Its slug. Default: follows from NAME.")
    code: str | None = options.option(
        "--code", help="Its code. Default: the next free one of the category."
    )
    version: str | None = options.option(
        "--version", help="The version. Default: 3+1 follows 3, and 3+2 that."
    )
    output: Path | None = options.output(
        help="Where the new taxonomy file goes. Default: ID-VERSION.toml."
    )
    dry_run: bool = options.option(
        "--dry-run", is_flag=True, help="Tell what would come of it, and write nothing."
    )
    force: bool = options.force()
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


_ADD_RULES: Final = (
    OptionRule[TaxonomyAddRequest](
        "choose the open codes with --group, --tag or --search, as 'study notes' lists them",
        needs=("--group", "--tag", "--search"),
    ),
)


@taxonomy_command.command("add")
@options.takes(TaxonomyAddRequest, _ADD_RULES)
def add_mode_command(request: TaxonomyAddRequest) -> int:
    """Make a mode NAME of open codes: the next version of the taxonomy, with their places as its
    first labels.

    Choose them with --group, --tag or --search, as 'study notes' lists them. Everything else is
    carried over as it is; elsewhere the new mode is open, as nobody has looked for it. 'taxonomy
    migrate --undo' takes it back.
    """
    place, before = opened(request.common)
    outputs = outputs_beside(place, force=request.force)
    viewer = asked_by(place, before.ref, request.common)
    check_lead(place, before, viewer.name)
    codes = chosen_of(coding_seen_by(viewer, place, before), request.chosen).codes
    if not codes:
        raise click.ClickException("no open code is chosen; 'mast-tui study notes' lists them")
    after = with_mode(
        before,
        request.name,
        request.category,
        definition=request.definition,
        slug=request.slug,
        code=request.code,
        version=request.version,
        used_versions=[one.ref for one in place.taxonomies()],
    )
    (mode,) = set(after.modes) - set(before.modes)
    mapping = candidate_map(before, after, mode.slug, codes)
    file = request.output or Path(f"{after.id}-{after.version}.toml")
    told = f"{mode.code} {mode.name}: {len(codes)} open codes are its first labels"
    if request.dry_run:
        lines = [f"{told}, once it is done"]
    else:
        outputs.add(file, taxonomy_toml(after))
        outputs.commit()
        lines = [told, f"{file}: written; go on with --taxonomy {file}"]
    document = _carried_over(mapping, viewer.name, viewer, dry_run=request.dry_run)
    document |= {
        "mode": {"slug": mode.slug, "code": mode.code, "name": mode.name},
        "places": [place_values(one) for one in codes],
        "file": None if request.dry_run else str(file),
    }
    return _tell_carried(document, mapping, viewer, lines, as_json=request.as_json)


def _carried_over(
    mapping: CodebookMap, who: str | None, viewer: Viewer, *, dry_run: bool
) -> dict[str, Any]:
    """Carry labels over, or try that on a copy, and return what changed as a document."""
    place = viewer.workspace
    left_out = viewer.hidden
    with place.trial() if dry_run else nullcontext(place) as target:
        done = migrate(target, mapping, who)
        document = _document(done, mapping, target, _seen_by(viewer))
    if dry_run:
        document |= {"dry_run": True, "import": None}
    viewer.reveal(viewer.traces or ())
    return {**document, **sight_values(viewer, left_out)}


def _tell_carried(
    document: Mapping[str, Any],
    mapping: CodebookMap,
    viewer: Viewer,
    lines: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Print a document of ``_carried_over``, as text with ``lines``, and return the exit code."""
    if as_json:
        print_json(document)
    else:
        _print(document, mapping)
        for line in lines:
            print_line(line)
        say_left_out(viewer, viewer.hidden)
    return 1 if document["lost"] else 0


def _named(name: str, place: Workspace | None) -> Taxonomy:
    """The taxonomy in a file, of that name in the workspace, or MAST."""
    if Path(name).is_file():
        return load_taxonomy(Path(name))
    kept = {} if place is None else {one.ref: one for one in place.taxonomies()}
    mast = load_mast()
    kept.setdefault(mast.ref, mast)
    kept.setdefault(mast.id, kept[mast.ref])
    if name not in kept:
        raise click.ClickException(
            f"{name}: no such file, and no taxonomy of that name here; there are "
            f"{', '.join(sorted(ref for ref in kept if '@' in ref))}"
        )
    return kept[name]


def _seen_by(viewer: Viewer) -> Callable[[str, str], bool]:
    """Whether somebody may see what an annotator said of a trace."""
    return lambda annotator, trace_id: (
        not viewer.limited or annotator == viewer.name or viewer.may_see_others(trace_id)
    )


def _undo(place: Workspace, who: str | None, as_json: bool) -> int:
    if not standing_migrations(place):
        raise click.ClickException("there is no migration here that could be taken back")
    record = find_import(place, "", only=MIGRATION)
    undone = undo_import(place, record, who)
    migration = f"the migration {' → '.join(record.files)}"
    return print_undone(
        undone,
        {"import": record.id, "from": record.files[0], "to": record.files[1]},
        command="mast-tui taxonomy migrate",
        what=migration,
        done=f"took {migration} back: {counted(undone.events, 'event')}",
        as_json=as_json,
    )


# What a migration did


def _document(
    done: Migrated, mapping: CodebookMap, place: Workspace, shown: Callable[[str, str], bool]
) -> dict[str, Any]:
    """Make the JSON document of a migration.

    Labels of others that are hidden from the person who migrates are only counted.
    """
    carried = [label for label in done.carried.values() if shown(label.annotator, label.trace_id)]
    again = [one for one in done.look_again if shown(one.annotator, one.trace_id)]
    dropped = [one for one in done.dropped if shown(one.annotator, one.trace_id)]
    left = [one for one in done.left if shown(one.annotator, one.trace_id)]
    return {
        "from": mapping.old.ref,
        "to": mapping.new.ref,
        "dry_run": False,
        "import": None if done.record is None else done.record.id,
        "events": done.events,
        "works": len(done.works),
        "modes": _modes(mapping, place, shown),
        "added": list(mapping.added),
        "labels": {
            "carried": len(carried),
            "joined": sum(label.id in done.joined for label in carried),
            "look_again": sum(len(one.places) for one in again),
            "dropped": len(dropped),
        },
        "hidden": {
            "carried": len(done.carried) - len(carried),
            "look_again": len(done.look_again) - len(again),
            "dropped": len(done.dropped) - len(dropped),
            "left": len(done.left) - len(left),
        },
        "look_again": [
            {
                "annotator": one.annotator,
                "trace_id": one.trace_id,
                "modes": list(one.modes),
                "places": [_place(label) for label in one.places],
            }
            for one in again
        ],
        "dropped": [
            {"annotator": one.annotator, "trace_id": one.trace_id, **_place(one)} for one in dropped
        ],
        "left": [
            {"annotator": one.annotator, "trace_id": one.trace_id, "why": one.why} for one in left
        ],
        "lost": [
            {"annotator": one.annotator, "trace_id": one.trace_id, **_place(one)}
            for one in done.lost
        ],
    }


def _modes(
    mapping: CodebookMap, place: Workspace, shown: Callable[[str, str], bool]
) -> list[dict[str, Any]]:
    """Each old mode, what it became, and how often it was said, in everybody's last pass."""
    said = Counter(
        (one.mode, one.value)
        for one in place.verdicts(taxonomy=mapping.old.ref)
        if shown(one.annotator, one.trace_id)
    )
    return [
        {
            "mode": mode.slug,
            "code": mode.code,
            "change": mapping.change(mode.slug).value,
            "becomes": list(mapping.targets[mode.slug]),
            **{value.value: said[mode.slug, value] for value in VerdictValue},
        }
        for mode in mapping.old.modes
    ]


def _place(label: Label) -> dict[str, Any]:
    target = label.target
    return {
        "mode": label.mode,
        "first": target.first,
        "last": target.last,
        "quote": target.quote,
        "note": label.note,
    }


def _print(document: Mapping[str, Any], mapping: CodebookMap) -> None:
    done = "would carry" if document["dry_run"] else "carried"
    labels = document["labels"]
    hidden = document["hidden"]
    print_line(
        f"{document['from']} → {document['to']}: {done} {counted(document['works'], 'reading')} "
        f"with {counted(labels['carried'], 'label')} over ({labels['joined']} joined with another)"
    )
    if hidden["carried"]:
        verb = "is" if hidden["carried"] == 1 else "are"
        print_line(
            f"{counted(hidden['carried'], 'label')} of others {verb} hidden from you and {verb} "
            "carried over too"
        )
    columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
        TableColumn("mode", lambda row: f"{row['code']} {row['mode']}"[:_WIDEST]),
        key_column("change"),
        TableColumn("becomes", lambda row: _becomes(row, mapping)),
        *(key_column(value.value, right=True) for value in VerdictValue),
    )
    print_table(columns, document["modes"])
    if document["added"]:
        print_line(f"new, and open everywhere: {', '.join(document['added'])}")
    again = [
        f"{one['trace_id']} · {one['annotator']} · {', '.join(one['modes'])} "
        f"({counted(len(one['places']), 'place')})"
        for one in document["look_again"]
    ]
    _list("traces to look at again", again, hidden["look_again"])
    dropped = "labels of dropped modes stay under the old taxonomy"
    _list(dropped, _where(document["dropped"]), hidden["dropped"])
    left = [
        f"{one['trace_id']} · {one['annotator']} · {_WHY[one['why']]}" for one in document["left"]
    ]
    _list("readings left as they are", left, hidden["left"])
    _list("labels lost", _where(document["lost"]), hidden=0)


def _becomes(one: Mapping[str, Any], mapping: CodebookMap) -> str:
    if mapping.change(one["mode"]) is Change.SAME:
        return ""
    return ", ".join(mapping.new.mode(slug).code for slug in one["becomes"])


def _where(labels: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{one['trace_id']} · {one['annotator']} · {one['mode']} · {one['first'] or 'whole trace'}"
        for one in labels
    ]


def _list(title: str, lines: Sequence[str], hidden: int) -> None:
    """Print some of the lines, with how many there are and how many more are hidden."""
    more = f", and {hidden} hidden from you" if hidden else ""
    click.echo(f"{title}: {len(lines)}{more}")
    for line in lines[:_SHOWN]:
        click.echo(f"  {one_line(line)}")
    if len(lines) > _SHOWN:
        click.echo(f"  and {len(lines) - _SHOWN} more; --json lists all")


# What changed between two taxonomies


def _changes_values(found: TaxonomyChanges) -> dict[str, Any]:
    return {
        "same": found.same,
        "wording": {slug: list(texts) for slug, texts in found.wording.items()},
        "names": _differs(found.names),
        "codes": _differs(found.codes),
        "moved": _differs(found.moved),
        "categories": list(found.categories),
        "reordered": found.reordered,
        "added": list(found.added),
        "dropped": list(found.dropped),
        "renamed": _candidates(found.renamed),
        "split": _candidates(found.split),
        "merged": _candidates(found.merged),
    }


def _differs(found: Sequence[Differs]) -> list[dict[str, str]]:
    return [{"mode": one.mode, "from": one.old, "to": one.new} for one in found]


def _candidates(found: Sequence[ModeCandidate]) -> list[dict[str, Any]]:
    return [{"from": list(one.old), "to": list(one.new), "likeness": one.likeness} for one in found]


def _changes_lines(found: TaxonomyChanges, new: Taxonomy) -> Iterator[str]:
    for slug, texts in found.wording.items():
        yield one_line(f"wording   {slug}: {', '.join(texts)}")
    for title, differs in (("name", found.names), ("code", found.codes), ("moved", found.moved)):
        for one in differs:
            yield one_line(f"{title:<9} {one.mode}: {one.old} → {one.new}")
    for category in found.categories:
        gone = category.startswith("-")
        yield one_line(f"category  {category.removeprefix('-')} {'is gone' if gone else 'is new'}")
    if found.reordered:
        yield "order     the modes stand in another order"
    for title, slugs in (("added", found.added), ("dropped", found.dropped)):
        for slug in slugs:
            yield one_line(f"{title:<9} {slug}")
    for title, candidates in (
        ("renamed?", found.renamed),
        ("split?", found.split),
        ("merged?", found.merged),
    ):
        for pair in candidates:
            told = f"{', '.join(pair.old)} → {', '.join(pair.new)}"
            yield one_line(f"{title:<9} {told} ({pair.likeness:.2f} alike)")
    if found.same:
        yield f"labels can stay under {new.ref}: only words differ, or nothing"
        return
    yield f"labels cannot stay: carry them over with 'mast-tui taxonomy migrate', to {new.ref}"
    if found.dropped:
        yield "a map to begin with; look at each line:"
        yield "  [modes]"
        guesses = [(one.old, one.new) for one in (*found.renamed, *found.split, *found.merged)]
        for slug in found.dropped:
            parts = dict.fromkeys(b for before, after in guesses if slug in before for b in after)
            told = ", ".join(f'"{part}"' for part in parts)
            yield f"  {slug} = " + (told if len(parts) == 1 else f"[{told}]")
