"""``mast-tui study notes``: what people wrote down that no mode describes, and whether it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by, say_left_out
from mast_tui.cli.shared.common import opened, print_json, print_line, print_table, say
from mast_tui.columns import TableColumn, key_column
from mast_tui.configuration import read_judge_configuration
from mast_tui.counts import counted
from mast_tui.judges.llm.run.grouping import propose_groups, used_words, what_it_takes
from mast_tui.judges.llm.run.setup import configured_setup
from mast_tui.safe_text import one_line
from mast_tui.session import sight_values
from mast_tui.session.open_codes import (
    OpenCode,
    OpenCoding,
    Saturation,
    keep_groups,
    open_coding,
    toggle_tag,
)

if TYPE_CHECKING:
    from mast_tui.session import Viewer
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

_LAST: Final = 10
"""Traces at the end of which it is told how many new kinds they brought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeChoice:
    """The options that choose among open codes."""

    group: int | None = options.option(
        "--group", type=click.IntRange(1), metavar="N", help="Only the group N."
    )
    tag: str | None = options.option(
        "--tag", metavar="TAG", help="Only those with #TAG in their text."
    )
    search: str | None = options.option(
        "--search", metavar="WORDS", help="Only those that hold all of these words."
    )

    def __bool__(self) -> bool:
        return (self.group, self.tag, self.search) != (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyNotesRequest:
    """The options of ``mast-tui study notes``."""

    chosen: CodeChoice = options.group(CodeChoice)
    by: Literal["words", "model"] | None = options.option(
        "--by",
        type=click.Choice(["words", "model"]),
        help="Group what no tag does anew: by words, or as the model of [judge] in config.toml "
        "proposes. Kept until one asks again.",
    )
    give: str | None = options.option(
        "--give", metavar="TAG", help="Give those a tag, or take it off where all of them have it."
    )
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


@click.command()
@options.takes(StudyNotesRequest)
def notes_command(request: StudyNotesRequest) -> None:
    """Gather what no mode describes: labels 'none of these' (0 0) and notes on spans.

    They are grouped by a #tag in their text, or else by their words (--by), with the number of new
    kinds of failure that each trace brought, in the order of reading. 'taxonomy add' makes a mode
    of a group. Annotators see what others wrote only of traces that they have finished.
    """
    place, chosen = opened(request.common)
    viewer = asked_by(place, chosen.ref, request.common)
    whole = coding_seen_by(viewer, place, chosen)
    if request.by is not None:
        _group_by(request.by, whole.texts_to_group, viewer, place, chosen)
        whole = coding_seen_by(viewer, place, chosen)
    shown = chosen_of(whole, request.chosen)
    if request.give is not None:
        who = viewer.name or request.common.annotator
        if who is None:
            raise click.UsageError("--give wants to know who tags: --annotator NAME")
        on = toggle_tag(place, chosen.id, who, shown.codes, request.give)
        told = f"{len(shown.codes)} tagged" if on else f"taken off {len(shown.codes)}"
        say(f"#{request.give.removeprefix('#')}: {told}")
        places = {code.identity for code in shown.codes}
        whole = coding_seen_by(viewer, place, chosen)
        shown = whole.keeping(lambda code: code.identity in places)
    viewer.reveal(whole.revealed_traces)
    left_out = viewer.hidden
    document: dict[str, Any] = {
        "taxonomy": chosen.ref,
        "grouped_by": whole.model or "words",
        "groups": _groups(shown, whole),
        "saturation": saturation_values(whole.saturation),
        **sight_values(viewer, left_out),
    }
    if request.as_json:
        print_json(document)
        return
    say_left_out(viewer, left_out)
    if not whole.codes:
        click.echo(
            "Nobody has written anything down yet: 0 0 labels what is none of the modes, and m "
            "writes a note on a span"
        )
    elif not request.chosen:
        columns: tuple[TableColumn[Mapping[str, Any]], ...] = (
            key_column("number", "group"),
            TableColumn("codes", lambda row: str(len(row["places"]))),
            key_column("traces"),
            key_column("name", "what"),
        )
        print_table(columns, document["groups"])
    else:
        for one in document["groups"]:
            print_line(f"{one['number']} {one['name']}")
            for found in one["places"]:
                where = found["first"] or "whole trace"
                words = f"{found['trace_id']} · {found['annotator']} · {where} · {found['text']}"
                words += "".join(f" #{tag}" for tag in found["given"])
                click.echo(f"  {one_line(words)}")
    click.echo(saturation_words(whole.saturation))


def coding_seen_by(viewer: Viewer, place: Workspace, taxonomy: Taxonomy) -> OpenCoding:
    """Gather the open codes that whoever asks may see."""
    reader = viewer.name if viewer.limited else None
    return open_coding(place, taxonomy, reader, viewer.traces)


def _group_by(
    by: Literal["words", "model"],
    notes: Sequence[str],
    viewer: Viewer,
    place: Workspace,
    taxonomy: Taxonomy,
) -> None:
    """Forget what a model has proposed, or ask one, after saying what that sends and takes."""
    whose = (taxonomy.ref, viewer.name if viewer.limited else None, viewer.traces)
    if by == "words":
        keep_groups(place, *whose, None, {})
        return
    configured = read_judge_configuration()
    if configured.model is None:
        say("no model is named in [judge] of config.toml: groups go by words")
        return
    if not notes:
        return
    setup = configured_setup(taxonomy, configured)
    say(what_it_takes(setup, notes))
    found = asyncio.run(propose_groups(setup, notes, on_wait=say))
    keep_groups(place, *whose, configured.model, found.groups)
    say(used_words(found.usage))


def chosen_of(coding: OpenCoding, choice: CodeChoice) -> OpenCoding:
    """Keep the open codes that the options choose.

    Args:
        coding: All open codes.
        choice: The options.

    Raises:
        click.ClickException: There is no such group.
    """
    if choice.group is not None:
        if choice.group > len(coding.groups):
            raise click.ClickException(
                f"there is no group {choice.group}: 'mast-tui study notes' lists "
                f"{len(coding.groups)}"
            )
        coding = replace(coding, groups=(coding.groups[choice.group - 1],))
    if choice.tag is not None:
        tag = choice.tag.removeprefix("#").casefold()
        coding = coding.keeping(lambda code: tag in code.tags)
    return coding if choice.search is None else coding.matching(choice.search)


def _groups(shown: OpenCoding, whole: OpenCoding) -> list[dict[str, Any]]:
    numbers = {one.name: number for number, one in enumerate(whole.groups, start=1)}
    return [
        {
            "number": numbers[one.name],
            "name": one.name,
            "tag": one.tag,
            "traces": one.traces,
            "places": [place_values(code) for code in one.codes],
        }
        for one in shown.groups
    ]


def place_values(code: OpenCode) -> dict[str, Any]:
    """Make the values of one open code."""
    target = code.target
    return {
        "annotator": code.annotator,
        "trace_id": code.trace_id,
        "kind": "label" if code.is_label else "note",
        "first": target.first,
        "last": target.last,
        "quote": target.quote,
        "text": code.text,
        "tags": list(code.tags),
        "given": list(code.added_tags),
    }


def saturation_values(found: Saturation) -> dict[str, Any]:
    """Make the values of the figure of saturation."""
    return {
        "traces": len(found.traces),
        "kinds": found.kinds,
        "since_last_new": found.since_last_new,
        f"new_in_last_{_LAST}": found.new_in_last(_LAST),
        "looked_at": [
            {"trace_id": one.trace_id, "kinds": one.kinds, "new": list(one.new)}
            for one in found.traces
        ],
    }


def saturation_words(found: Saturation) -> str:
    """Say how far the kinds of failure saturate."""
    if not found.traces:
        return "saturation: no trace is finished yet"
    last, quiet = min(_LAST, len(found.traces)), found.since_last_new
    none = f", the last {quiet} none" if quiet else ""
    return (
        f"saturation: {counted(found.kinds, 'kind')} of failure on "
        f"{counted(len(found.traces), 'trace')}; the last {last} "
        f"brought {found.new_in_last(last)} new{none}"
    )
