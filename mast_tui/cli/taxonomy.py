"""``mast-tui taxonomy``: what changed between two versions, and labels carried over to the new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.open_codes import choosing_options, chosen_of, coding_seen_by, place_values
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


@taxonomy_command.command("show")
@click.argument("name", default="mast")
@options.common(annotator=_NO_LABELS, taxonomy=_NAMED, blind=_NO_LABELS, assisted=_NO_LABELS)
@options.as_json
def show_command(name: str, common: CommonOptions, as_json: bool) -> None:
    """Show the categories and modes of NAME, with what types each mode.

    NAME is a file, id@version of a taxonomy in the workspace, or mast. Two digits that earlier
    versions in the workspace have given to a mode stay its own.
    """
    place = workspace_there(common)
    found = _named(name, place)
    found = found if place is None else place.with_places(found)
    if as_json:
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


@taxonomy_command.command("diff")
@click.argument("old")
@click.argument("new")
@options.common(annotator=_NO_LABELS, taxonomy=_NAMED, blind=_NO_LABELS, assisted=_NO_LABELS)
@options.as_json
def diff_command(old: str, new: str, common: CommonOptions, as_json: bool) -> None:
    """Show what changed: words, names, codes, and which modes came, went, or may have become
    others.

    Labels can stay where the last line says so; else 'taxonomy migrate' carries them over.
    """
    place = workspace_there(common)
    before, after = _named(old, place), _named(new, place)
    found = changes(before, after)
    if as_json:
        print_json({"from": before.ref, "to": after.ref, **_changes_values(found)})
        return
    print_line(f"{before.ref} → {after.ref}")
    for line in _changes_lines(found, after):
        click.echo(line)


@taxonomy_command.command("migrate")
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What becomes of modes that have no namesake: TOML, JSON or CSV as for a crosswalk, or "
    "the name of one that comes with mast-tui.",
)
@click.option("--dry-run", is_flag=True, help="Tell what would come of it, and write nothing.")
@click.option("--undo", is_flag=True, help="Take the last migration back.")
@options.common(
    taxonomy=_NAMED,
    blind="it tells of no trace that is hidden from who asks",
    assisted="it tells of no trace that is hidden from who asks",
)
@options.as_json
def migrate_command(
    old: str | None,
    new: str | None,
    map_file: Path | None,
    dry_run: bool,
    undo: bool,
    common: CommonOptions,
    as_json: bool,
) -> int:
    """Carry everybody's labels, passes, decisions, guidelines and times from OLD over to NEW.

    Nothing under OLD changes: figures of both can be had. A mode without an entry in the map
    becomes the one of the same slug. Where a mode was split, whoever had seen it is to look again:
    the library's queue 'codebook changed' holds these traces.
    """
    if undo and (old or new or map_file or dry_run):
        raise click.UsageError("--undo takes the last migration back; leave the rest out")
    if not undo and (old is None or new is None):
        raise click.UsageError("name two taxonomies: mast-tui taxonomy migrate OLD NEW --map FILE")
    place = open_workspace(common)
    who = known_person(place) or common.annotator
    if undo:
        return _undo(place, who, as_json)
    before, after = _named(str(old), place), _named(str(new), place)
    mapping = codebook_map(before, after, None if map_file is None else find_crosswalk(map_file))
    check_lead(place, before, who)
    viewer = asked_by(place, before.ref, common)
    return _carry_over(place, mapping, who, viewer, dry_run=dry_run, as_json=as_json)


@taxonomy_command.command("add")
@click.argument("name")
@click.option("--category", required=True, metavar="ID", help="Under which category it stands.")
@choosing_options
@click.option("--definition", default="", help="What the mode is.")
@click.option("--slug", help="Its slug. Default: follows from NAME.")
@click.option("--code", help="Its code. Default: the next free one of the category.")
@click.option("--version", help="The version. Default: 3+1 follows 3, and 3+2 that.")
@options.output("Where the new taxonomy file goes. Default: ID-VERSION.toml.")
@click.option("--dry-run", is_flag=True, help="Tell what would come of it, and write nothing.")
@options.force
@options.common()
@options.as_json
def add_mode_command(
    name: str,
    category: str,
    group: int | None,
    tag: str | None,
    search: str | None,
    definition: str,
    slug: str | None,
    code: str | None,
    version: str | None,
    output: Path | None,
    dry_run: bool,
    force: bool,
    common: CommonOptions,
    as_json: bool,
) -> int:
    """Make a mode NAME of open codes: the next version of the taxonomy, with their places as its
    first labels.

    Choose them with --group, --tag or --search, as 'study notes' lists them. Everything else is
    carried over as it is; elsewhere the new mode is open, as nobody has looked for it. 'taxonomy
    migrate --undo' takes it back.
    """
    place, before = opened(common)
    outputs = outputs_beside(place, force=force)
    viewer = asked_by(place, before.ref, common)
    check_lead(place, before, viewer.name)
    if group is None and tag is None and search is None:
        raise click.UsageError(
            "choose the open codes with --group, --tag or --search, as 'study notes' lists them"
        )
    codes = chosen_of(coding_seen_by(viewer, place, before), group, tag, search).codes
    if not codes:
        raise click.ClickException("no open code is chosen; 'mast-tui study notes' lists them")
    after = with_mode(
        before,
        name,
        category,
        definition=definition,
        slug=slug,
        code=code,
        version=version,
        used_versions=[one.ref for one in place.taxonomies()],
    )
    (mode,) = set(after.modes) - set(before.modes)
    mapping = candidate_map(before, after, mode.slug, codes)
    file = output or Path(f"{after.id}-{after.version}.toml")
    told = f"{mode.code} {mode.name}: {len(codes)} open codes are its first labels"
    if dry_run:
        lines = [f"{told}, once it is done"]
    else:
        outputs.add(file, taxonomy_toml(after))
        outputs.commit()
        lines = [told, f"{file}: written; go on with --taxonomy {file}"]
    values = {
        "mode": {"slug": mode.slug, "code": mode.code, "name": mode.name},
        "places": [place_values(one) for one in codes],
        "file": None if dry_run else str(file),
    }
    return _carry_over(
        place, mapping, viewer.name, viewer, values, lines, dry_run=dry_run, as_json=as_json
    )


def _carry_over(
    place: Workspace,
    mapping: CodebookMap,
    who: str | None,
    viewer: Viewer,
    values: Mapping[str, Any] = MappingProxyType({}),
    lines: Sequence[str] = (),
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Carry labels over, or try that on a copy, and tell what came of it; the exit code.

    JSON tells ``values`` besides, and text ``lines``.
    """
    left_out = viewer.hidden
    with place.trial() if dry_run else nullcontext(place) as target:
        done = migrate(target, mapping, who)
        document = _document(done, mapping, target, _seen_by(viewer))
    if dry_run:
        document |= {"dry_run": True, "import": None}
    viewer.reveal(viewer.traces or ())
    document |= {**values, **sight_values(viewer, left_out)}
    if as_json:
        print_json(document)
    else:
        _print(document, mapping)
        for line in lines:
            print_line(line)
        say_left_out(viewer, left_out)
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


def _print(document: dict[str, Any], mapping: CodebookMap) -> None:
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
