"""``mast-tui agree``: how far annotators agree."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from mast_tui.cli.common import (
    checked_sight,
    common_options,
    json_option,
    kept_taxonomy,
    open_workspace,
    print_json,
    say,
)
from mast_tui.safe_text import one_line


@click.command()
@click.option(
    "--annotators",
    metavar="A,B,…",
    help="Who is compared. Default: all people with finished traces; judges only by name.",
)
@click.option(
    "--pass",
    "which",
    type=click.Choice(["1", "last"]),
    default="1",
    show_default=True,
    help="The first reading, before anybody saw the others, or the last one.",
)
@common_options
@json_option
def agree_command(
    annotators: str | None,
    which: str,
    workspace: str | None,
    annotator: str | None,
    taxonomy: Path | None,
    blind: bool,
    assisted: bool,
    as_json: bool,
) -> None:
    """Show how far annotators agree, per mode and over all.

    The unit is trace × mode where both have a verdict, in finished traces. With --annotator only
    the traces that this person has finished or adjudicates; that the figures were shown is noted.
    """
    checked_sight(blind, assisted)
    from mast_tui.agreement.from_workspace import study_from_workspace
    from mast_tui.agreement.study import agreement_report
    from mast_tui.session import record_reveal, visible_traces_for_agreement

    names = split_names(annotators)
    place = open_workspace(workspace, create=False)
    chosen = kept_taxonomy(place, taxonomy)
    visible = None
    if annotator is not None:
        visible = visible_traces_for_agreement(place, annotator, chosen.ref)
        record_reveal(place, annotator, chosen.ref, visible)
    study = study_from_workspace(
        place,
        chosen,
        annotators=names,
        which="first" if which == "1" else "last",
        traces=visible,
    )
    place.close()
    report = agreement_report(study)
    if len(study.annotators) < 2:
        say("agreement needs two annotators with finished traces; name them with --annotators")
    if as_json:
        print_json(report)
        return
    from mast_tui.agreement.text_table import render_table

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in render_table(report, width):
        click.echo(one_line(line))


def split_names(text: str | None) -> list[str] | None:
    """The names in ``A,B,…``; names hold no comma. None where nobody is named."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--annotators names nobody; give them as A,B")
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"--annotators names {name!r} twice")
    return names
