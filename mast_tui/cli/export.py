"""``mast-tui export``: labels as files for others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.agree.command import split_names
from mast_tui.cli.export_files import Request, add_codebook, add_gold, add_words
from mast_tui.cli.shared.asking import asked_by, say_hidden
from mast_tui.cli.shared.common import (
    checked_sight,
    common_options,
    gold_option,
    json_option,
    kept_taxonomy,
    open_workspace,
    print_json,
    pseudonyms_option,
    say,
)
from mast_tui.cli.shared.outputs import force_option, outputs_beside
from mast_tui.exchange.formats import EXPORT_FORMATS
from mast_tui.exchange.jsonl import workspace_lines
from mast_tui.output_files import Outputs, is_stdout
from mast_tui.safe_text import one_line
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_tui.gold import GoldKind
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.registers.pseudonyms import Pseudonyms

_NAMES_SHOWN: Final = 10


@click.command()
@click.option("--format", "file_format", type=click.Choice(EXPORT_FORMATS), required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="OUT",
    help="The file to write; for huggingface a folder. gold and label-studio write a second file "
    "beside it.",
)
@click.option(
    "--labels", metavar="gold|NAME|all", help="Whose labels. Default: gold; jsonl holds all."
)
@click.option(
    "--pass",
    "which",
    type=click.Choice(["1", "last"]),
    help="Which reading. Default: 1 for csv-wide and for the agreement beside gold, else last.",
)
@click.option("--annotators", metavar="A,B,…", help="The sides of the gold. Default: all people.")
@click.option("--majority", is_flag=True, help="Let a majority settle verdicts in the gold.")
@gold_option
@click.option(
    "--datasheet",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who labelled, licence, contact and such (TOML), for gold and huggingface. Default: "
    "datasheet.toml beside the workspace's database.",
)
@pseudonyms_option
@force_option
@common_options()
@json_option
def export_command(
    file_format: str,
    output: Path,
    labels: str | None,
    which: str | None,
    annotators: str | None,
    majority: bool,
    gold: GoldKind | None,
    datasheet: Path | None,
    pseudonyms: bool,
    force: bool,
    workspace: str | None,
    annotator: str | None,
    taxonomy: Path | None,
    blind: bool,
    assisted: bool,
    as_json: bool,
) -> None:
    """Export labels: the gold with its sources and figures, or anybody's.

    An earlier export is replaced, and only once the new one is complete. Whoever labels here
    gets their own labels, and those of others on traces that they have finished or adjudicate,
    which is recorded: who this login works here as, else --annotator. jsonl is the whole workspace.
    """
    checked_sight(blind, assisted)
    if file_format == "jsonl":
        _refuse_for_jsonl(taxonomy, blind, assisted, pseudonyms)
    names = split_names(annotators)
    of_gold = file_format in ("gold", "huggingface")
    if file_format == "jsonl" and labels not in (None, "all"):
        raise click.UsageError("jsonl holds the whole workspace; leave out --labels")
    if of_gold and labels not in (None, "gold"):
        raise click.UsageError(f"{file_format} holds gold and its sides; use csv-long for others")
    if gold is not None and not of_gold:
        raise click.UsageError("--gold goes with --format gold and huggingface")
    if file_format == "codebook" and labels is not None:
        raise click.UsageError("codebook holds no labels; leave out --labels")
    if datasheet is not None and not of_gold:
        raise click.UsageError("--datasheet goes with --format gold and huggingface")
    place = open_workspace(workspace, create=False)
    outputs = outputs_beside(place, force=force)
    if file_format == "huggingface":
        if not output.parent.is_dir():
            raise click.ClickException(f"{output.parent}: no such folder; make it first")
        outputs.add_folder(output)
    else:
        outputs.check(output)
    if file_format == "jsonl":
        counts = _add_workspace(place, outputs, output)
    else:
        chosen = kept_taxonomy(place, taxonomy)
        first = which == "1" or (which is None and (of_gold or file_format == "csv-wide"))
        viewer = asked_by(place, chosen.ref, annotator, blind, assisted)
        request = Request(
            place,
            chosen,
            labels or "gold",
            "first" if first else "last",
            majority,
            viewer,
            gold or "all",
            datasheet,
            _letters(place) if pseudonyms else None,
        )
        if of_gold:
            counts = add_gold(request, file_format, outputs, output, names)
        elif file_format == "codebook":
            counts = add_codebook(request, outputs, output)
        else:
            counts = add_words(request, file_format, outputs, output)
    place.close()
    outputs.commit()
    document = {"format": file_format, "output": str(output), **counts}
    if as_json:
        print_json(document)
    else:
        err = is_stdout(output)
        written = [f"{n} {name}" for name, n in counts.items() if isinstance(n, int)]
        click.echo(one_line(f"{output}: {', '.join(written)}"), err=err)
        for beside in counts.get("beside", ()):
            click.echo(one_line(f"{beside}: written with it"), err=err)
        told = counts.get("sight")
        if told is not None:
            say_hidden(told["annotator"], told["left_out"])
    missing = counts.get("without_text", 0)
    if missing:
        say(
            f"{missing} traces are not at hand, so their text is missing; open the app or "
            "'mast-tui judge' on their folder once, then export again"
        )
    _say_without_id(counts.get("without_id", {}), file_format)


def _say_without_id(left_out: dict[str, Any], file_format: str) -> None:
    """Say what the tool that the scores are for does not know."""
    traces = left_out.get("traces", ())
    if traces:
        say(
            f"{len(traces)} traces are left out, as no id of theirs in {file_format} is known: "
            f"they were recorded by another tool, or their files are not at hand: {_some(traces)}"
        )
    spans = [f"{one['key']} in {one['trace_id']}" for one in left_out.get("spans", ())]
    if spans:
        say(
            f"{len(spans)} labelled spans are left out, as no id of theirs in {file_format} is "
            f"known: {_some(spans)}"
        )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    left = len(names) - _NAMES_SHOWN
    return f"{shown} and {left} more; --json names all" if left > 0 else shown


def _refuse_for_jsonl(taxonomy: Path | None, blind: bool, assisted: bool, pseudonyms: bool) -> None:
    """Refuse what a copy of the whole workspace cannot heed, rather than to ignore it."""
    given = {
        "--taxonomy": taxonomy is not None,
        "--blind": blind,
        "--assisted": assisted,
        "--pseudonyms": pseudonyms,
    }
    for option, is_given in given.items():
        if is_given:
            raise click.UsageError(
                f"export --format jsonl does not take {option}: it is the whole workspace, to keep "
                "and to merge; choose another format to look at labels"
            )


def _letters(place: Workspace) -> Pseudonyms:
    return pseudonyms_of(place)


def _add_workspace(workspace: Workspace, outputs: Outputs, output: Path) -> dict[str, Any]:
    lines = list(workspace_lines(workspace))
    outputs.add(output, "".join(lines))
    for event in workspace.edited_histories():
        say(
            f"{event.annotator}'s events were edited outside of mast-tui, at or before step "
            f"{event.seq}; who imports this is asked for --replace"
        )
    return {"traces": len(workspace.traces()), "lines": len(lines)}
