"""``mast-tui study notes``: open codes, their groups, and saturation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import command_viewer, report_hidden_traces
from mast_tui.cli.shared.common import open_with_taxonomy, print_json, print_line, print_table, say
from mast_tui.columns import TableColumn, key_column
from mast_tui.configuration import read_judge_configuration
from mast_tui.counts import counted
from mast_tui.judges.llm.run.grouping import grouping_notice, propose_groups, used_words
from mast_tui.judges.llm.run.setup import configured_setup
from mast_tui.safe_text import one_line
from mast_tui.session import Viewer, visibility_json
from mast_tui.session.open_codes import (
    LAST_TRACES,
    OpenCode,
    OpenCoding,
    Saturation,
    keep_groups,
    open_coding,
    toggle_tag,
)

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeChoice:
    """The options that select open codes."""

    group: int | None = options.option(
        "--group", type=click.IntRange(1), metavar="N", help="Only the group N."
    )
    tag: str | None = options.option(
        "--tag", metavar="TAG", help="Only codes with #TAG in their text."
    )
    search: str | None = options.option(
        "--search", metavar="WORDS", help="Only codes that contain all of these words."
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
        help="Group codes without a tag again: by their words, or as the model of [judge] in "
        "config.toml proposes. Stored until the next --by.",
    )
    give: str | None = options.option(
        "--give",
        metavar="TAG",
        help="Add a tag to these codes, or remove it if all of them have it.",
    )
    common: CommonOptions = options.common()
    as_json: bool = options.as_json()


@click.command()
@options.takes(StudyNotesRequest)
def notes_command(request: StudyNotesRequest) -> None:
    """List open codes: labels of the code 0.0 and notes on spans.

    A label of the code 0.0 (keys 0 0) is for a failure that no mode describes. Open codes are
    grouped by a #tag in their text, or else by their words (--by), with the number of new
    kinds of failure per trace, in reading order. 'taxonomy add' makes a mode of a group. Annotators
    see what others wrote only on traces that they have finished.

    Example: mast-tui study notes --tag timeout
    """
    workspace, taxonomy = open_with_taxonomy(request.common)
    viewer = command_viewer(workspace, taxonomy.ref, request.common)
    coding = visible_coding(viewer, workspace, taxonomy)
    if request.by is not None:
        _group_by(request.by, coding.texts_to_group, viewer, workspace, taxonomy)
        coding = visible_coding(viewer, workspace, taxonomy)
    selected = select_codes(coding, request.chosen)
    if request.give is not None:
        annotator = viewer.name or request.common.annotator
        if annotator is None:
            raise click.UsageError("--give needs your name: --annotator NAME")
        added = toggle_tag(workspace, taxonomy.id, annotator, selected.codes, request.give)
        change = "added to" if added else "removed from"
        codes_text = counted(len(selected.codes), "open code")
        say(f"#{request.give.removeprefix('#')}: {change} {codes_text}")
        identities = {code.identity for code in selected.codes}
        coding = visible_coding(viewer, workspace, taxonomy)
        selected = coding.keeping(lambda code: code.identity in identities)

    # Record that the viewer has seen others' codes on these traces.
    viewer.reveal(coding.revealed_traces)
    hidden = viewer.hidden
    document: dict[str, Any] = {
        "taxonomy": taxonomy.ref,
        "grouped_by": coding.model or "words",
        "groups": _groups_json(selected, coding),
        "saturation": saturation_json(coding.saturation),
        **visibility_json(viewer, hidden),
    }
    if request.as_json:
        print_json(document)
        return

    report_hidden_traces(viewer, hidden)
    if not coding.codes:
        click.echo(
            "There are no open codes yet. In the app the keys 0 0 label a failure that no mode "
            "describes, and m writes a note on a span without a label."
        )
    elif request.chosen:
        _print_codes(document["groups"])
    else:
        print_table(_GROUP_COLUMNS, document["groups"])
    print_line(saturation_text(coding.saturation))


_GROUP_COLUMNS: Final[Sequence[TableColumn[Mapping[str, Any]]]] = (
    key_column("number", "group"),
    TableColumn("codes", lambda row: str(len(row["places"]))),
    key_column("traces"),
    key_column("name", "what"),
)


def _print_codes(groups: Iterable[Mapping[str, Any]]) -> None:
    for group in groups:
        print_line(f"{group['number']} {group['name']}")
        for code in group["places"]:
            parts = (code["trace_id"], code["annotator"], code["first"] or "whole trace")
            tags = "".join(f" #{tag}" for tag in code["given"])
            click.echo(f"  {one_line(' · '.join((*parts, code['text'])) + tags)}")


def visible_coding(viewer: Viewer, workspace: Workspace, taxonomy: Taxonomy) -> OpenCoding:
    """Return the open codes that a viewer may see.

    An open code is a label or note on a failure that no mode describes.

    Args:
        viewer: The viewer.
        workspace: The workspace.
        taxonomy: The taxonomy of the labels.
    """
    # ``open_coding`` hides the reader's own codes on retests. Only annotators have retests.
    reader = viewer.name if viewer.sees_finished_only else None
    return open_coding(workspace, taxonomy, reader, viewer.traces)


def _group_by(
    by: Literal["words", "model"],
    texts: Sequence[str],
    viewer: Viewer,
    workspace: Workspace,
    taxonomy: Taxonomy,
) -> None:
    """Group open codes by their words or as a model proposes, and store the groups.

    Before a model is asked, the texts to send and their cost are reported.
    """
    reader = viewer.name if viewer.sees_finished_only else None  # as in ``visible_coding``
    scope = (taxonomy.ref, reader, viewer.traces)
    if by == "words":
        keep_groups(workspace, *scope, model=None, groups={})
        return
    configuration = read_judge_configuration()
    if configuration.model is None:
        say("no model is set in [judge] of config.toml: codes are grouped by their words")
        return
    if not texts:
        return
    setup = configured_setup(taxonomy, configuration)
    say(grouping_notice(setup, texts))
    grouping = asyncio.run(propose_groups(setup, texts, on_wait=say))
    keep_groups(workspace, *scope, model=configuration.model, groups=grouping.groups)
    say(used_words(grouping.usage))


def select_codes(coding: OpenCoding, choice: CodeChoice) -> OpenCoding:
    """Return the open codes that the options select.

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


def _groups_json(selected: OpenCoding, coding: OpenCoding) -> list[dict[str, Any]]:
    """Return the selected groups as JSON values, with their numbers among all groups."""
    number_by_name = {group.name: number for number, group in enumerate(coding.groups, start=1)}
    return [
        {
            "number": number_by_name[group.name],
            "name": group.name,
            "tag": group.tag,
            "traces": group.traces,
            "places": [open_code_json(code) for code in group.codes],
        }
        for group in selected.groups
    ]


def open_code_json(code: OpenCode) -> dict[str, Any]:
    """Return one open code as JSON values."""
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


def saturation_json(saturation: Saturation) -> dict[str, Any]:
    """Return the saturation as JSON values: the new kinds of failure by trace."""
    return {
        "traces": len(saturation.traces),
        "kinds": saturation.kinds,
        "since_last_new": saturation.since_last_new,
        f"new_in_last_{LAST_TRACES}": saturation.new_in_last(LAST_TRACES),
        "looked_at": [
            {"trace_id": trace.trace_id, "kinds": trace.kinds, "new": list(trace.new)}
            for trace in saturation.traces
        ],
    }


def saturation_text(saturation: Saturation) -> str:
    """Return one line on the kinds of failure and the new ones in the last traces."""
    if not saturation.traces:
        return "new failures per trace: no trace is finished yet"
    return saturation.summary
