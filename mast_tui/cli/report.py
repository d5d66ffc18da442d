"""``mast-tui report``: failure signatures."""

from __future__ import annotations

import sys
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mast_tui.adjudication import SpanOrders, keep_missing_indices, traces_from_files
from mast_tui.adjudication.for_signatures import corrected_prevalence, extras_for, gold_of
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import asked_by, say_left_out
from mast_tui.cli.shared.common import kept_taxonomy, open_workspace, print_json, say
from mast_tui.cli.shared.report_files import (
    Files,
    check_records_file,
    print_text,
    record_lines,
    records_content,
)
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.counts import counted
from mast_tui.figures.signatures.bill import spent_from
from mast_tui.figures.signatures.model import Rules
from mast_tui.figures.signatures.report import signature_report
from mast_tui.figures.source.signatures import input_from_workspace, without_outcomes
from mast_tui.figures.source.verdicts import GOLD
from mast_tui.gc_tuning import uncollected
from mast_tui.gold import no_orders
from mast_tui.output_files import is_stdout
from mast_tui.reports.signature_document import signature_document
from mast_tui.reports.signatures import signatures_report, what_helps
from mast_tui.safe_text import one_line
from mast_tui.session import said_by, sight_values, within_sight
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.outcome_files import take_outcomes
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of

if TYPE_CHECKING:
    from mast_tui.adjudication import OrderOf
    from mast_tui.figures.signatures.model import SignatureInput
    from mast_tui.figures.signatures.report import SignatureReport
    from mast_tui.gold import GoldKind, GoldTrace
    from mast_tui.session import Viewer, WithinSight
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.registers.pseudonyms import Pseudonyms

_SHARDS: Final = "mast_tui.scale.report"
"""The module of the report on shards, which the core imports by name alone."""


@click.command()
@click.argument("shards", required=False, metavar="[SHARDS]")
@click.option(
    "--by",
    default="model",
    show_default=True,
    metavar="FIELD[,FIELD]|all",
    help="What tells the groups apart: model, system, benchmark, task, reader, version, date, or "
    "several of them; all makes one group. Without it all traces come first, then the models with "
    "five traces or more.",
)
@click.option(
    "--labels", default="gold", show_default=True, metavar="gold|NAME", help="Whose labels."
)
@options.gold
@click.option(
    "--failed-below",
    type=float,
    metavar="X",
    help="Let the outcome follow from the score: below X a trace has failed.",
)
@click.option("--compare", metavar="A,B", help="Two groups against each other, mode by mode.")
@click.option(
    "--paired",
    metavar="MODEL,MODEL",
    help="Two models on the tasks that both did, task by task; also compares them as --compare.",
)
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Fatal is an adjusted p below it."
)
@click.option(
    "--margin",
    type=float,
    default=10.0,
    show_default=True,
    help="Benign is a difference that lies under so many points, by its interval.",
)
@click.option(
    "--least",
    type=int,
    default=5,
    show_default=True,
    help="With fewer failed or successful traces every mode is unclear.",
)
@click.option(
    "--isolated", type=int, default=2, show_default=True, help="Most modes of an isolated failure."
)
@click.option(
    "--cascading", type=int, default=4, show_default=True, help="Fewest modes of a cascade."
)
@options.rounds("Resamples; 0: none.")
@options.seed
@click.option("--without-places", is_flag=True, help="Say nothing of places.")
@click.option(
    "--bill",
    is_flag=True,
    help="Count tokens and minutes after the first fatal failure; reads the files of failed runs.",
)
@options.report_file(
    "--html", "Write the report as one page that opens anywhere without a network."
)
@options.report_file("--markdown", "Write it as Markdown.")
@options.report_file("--csv", "Write every figure as a row of a tidy table.")
@options.report_file("--latex", "Write its tables for LaTeX.")
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write each figure as an image into this folder.",
)
@click.option(
    "--figures-format",
    "image",
    type=click.Choice(["svg", "pdf", "png"]),
    default="svg",
    show_default=True,
    help="What the figures are; PDF and PNG need mast-tui[figures].",
)
@click.option(
    "--bare", is_flag=True, help="Leave title and caption out of the figures, for a paper."
)
@click.option(
    "--records",
    is_flag=True,
    help="Print all figures as flat records, one JSON object a line.",
)
@options.output("With --records: the file for them, by its ending .jsonl, .csv or .parquet.")
@options.pseudonyms
@options.force
@options.workers
@options.common()
@options.as_json
@click.pass_context
def report_command(
    context: click.Context,
    /,
    shards: str | None,
    by: str,
    labels: str,
    gold: GoldKind | None,
    failed_below: float | None,
    compare: str | None,
    paired: str | None,
    alpha: float,
    margin: float,
    least: int,
    isolated: int,
    cascading: int,
    rounds: int,
    seed: int,
    without_places: bool,
    bill: bool,
    html_file: Path | None,
    markdown_file: Path | None,
    csv_file: Path | None,
    latex_file: Path | None,
    figures: Path | None,
    image: str,
    bare: bool,
    records: bool,
    output: Path | None,
    pseudonyms: bool,
    force: bool,
    wanted_workers: str | None,
    common: CommonOptions,
    as_json: bool,
) -> None:
    """Show how and why runs fail: which modes, how sure, and where.

    With SHARDS, a folder or URL that 'mast-tui judge --out' has written to, it is about what that
    judge found in all traces there, and needs no workspace.

    For annotators only the traces count that they have finished or adjudicate; this is recorded.
    """
    try:
        rules = Rules(alpha, margin / 100, least, isolated, cascading)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if bill and without_places:
        raise click.UsageError("--bill needs the places of labels; leave out --without-places")
    if failed_below is not None and not isfinite(failed_below):
        raise click.UsageError(f"--failed-below takes a score, not {failed_below:g}")
    if gold is not None and labels != "gold":
        raise click.UsageError("--gold says how much of the gold counts; leave out --labels")
    if shards is not None:
        report: Any = import_module(_SHARDS)
        report.refuse_others(context)
        report.report_shards(
            shards, by, rules, failed_below, common, wanted_workers, as_json=as_json
        )
        return
    check_records_file(output, records=records)
    if records and as_json:
        raise click.UsageError("--records prints records; leave out --json")
    if figures is None and (bare or image != "svg"):
        raise click.UsageError("--bare and --figures-format say how --figures draws; name a folder")
    named = {"html": html_file, "markdown": markdown_file, "csv": csv_file, "latex": latex_file}
    whole = {language: file for language, file in named.items() if file is not None}
    files = Files(whole, figures, image, bare)
    named_files = [file for file in (*whole.values(), output) if file is not None]
    if len(set(named_files)) < len(named_files):
        raise click.UsageError("two options name the same file; give each its own")
    if paired is not None and (compare is not None or by != "model"):
        raise click.UsageError("--paired compares two models; leave out --compare and --by")
    two = paired or compare
    pair = None if two is None else split_pair(two, "--compare" if compare else "--paired")
    place = open_workspace(common)
    outputs = outputs_beside(place, force=force)
    files.check(outputs)
    if output is not None:
        outputs.check(output)
    chosen = kept_taxonomy(place, common.taxonomy)
    try:
        viewer = asked_by(place, chosen.ref, common)
        for line in take_outcomes(place):
            say(line)
        sight = sight_of_labels(viewer, labels)
        with WorkerPool(None if without_places else wanted_workers) as pool:
            given = signature_input(
                place,
                chosen,
                labels=labels,
                by=by,
                failed_below=failed_below,
                traces=None if sight is None else sight.seen,
                places=not without_places,
                which=gold or "all",
                pool=pool,
            )
        # What is recorded as shown is hidden no longer, its outcomes among it.
        viewer.reveal(() if sight is None else sight.told)
        given, veiled = without_outcomes(given, outcomes_shown(viewer, given.traces))
        letters = pseudonyms_of(place) if pseudonyms else None
        report = report_of(
            place,
            chosen,
            given,
            compare=pair,
            rules=rules,
            rounds=rounds,
            seed=seed,
            traces=viewer.traces,
            bill=bill,
        )
        if letters is not None:
            report = replace(report, given=_with_letters(report.given, letters))
        if paired is not None and report.paired is None:
            raise click.ClickException(f"--paired {paired}: no task is known that both have run")
        left_out = () if sight is None else sight.hidden
        # The document alone needs none of the labels' words.
        extras = None
        if whole or not (as_json or records):
            extras = extras_for(place, chosen, given, places=not without_places, letters=letters)
        revisions = list(place.revisions_read(chosen.ref))
    finally:
        place.close()
    told = sight_values(viewer, left_out)
    if told:
        told["sight"]["outcomes_hidden"] = veiled
    more = {
        "revisions": revisions,
        "what_helps": what_helps(chosen),
        **(told if letters is None else letters.in_document(told)),
    }
    if not as_json:
        say_left_out(viewer, left_out)
        if veiled:
            say(
                f"the outcomes of {counted(veiled, 'trace')} are hidden from {viewer.name}, who "
                "works blind"
            )
    if as_json and not files:
        print_json(signature_document(report) | more)
        return
    if records:
        if output is None:
            sys.stdout.write(record_lines(report.figures.figures))
        else:
            outputs.add(output, records_content(report.figures.figures, output.suffix))
            say(f"{output}: {counted(len(report.figures.figures), 'record')}")
        if not files:
            outputs.commit()
            return
    asked = context.get_parameter_source("by") is ParameterSource.COMMANDLINE
    made = signatures_report(report, extras=extras, groups_asked=asked)
    if files:
        written = files.write(made, outputs)
        if as_json:
            print_json({**made.document, **more})
        on_stdout = records or any(map(is_stdout, whole.values()))
        for line in written:
            click.echo(one_line(line), err=as_json or on_stdout)
        return
    print_text(made)


def _with_letters(given: SignatureInput, letters: Pseudonyms) -> SignatureInput:
    """Return the input of a report with letters in place of people's names."""
    return replace(given, labels=letters.name(given.labels), gold=letters.in_document(given.gold))


def split_pair(text: str, option: str) -> tuple[str, str]:
    """The two names in ``A,B``."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) != 2 or names[0] == names[1]:
        raise click.UsageError(f"{option} takes two different names, as A,B")
    return names[0], names[1]


def report_of(
    workspace: Workspace,
    taxonomy: Taxonomy,
    given: SignatureInput,
    *,
    compare: tuple[str, str] | None = None,
    rules: Rules | None = None,
    rounds: int = 2000,
    seed: int = 0,
    traces: Container[str] | None = None,
    bill: bool = False,
) -> SignatureReport:
    """The report on an input that was read from a workspace.

    ``traces`` are those that may be seen, None for all. With ``bill`` the files of failed traces
    are read for what they used up. Raises ``ClickException`` for a group that is not there.
    """
    for name in compare or ():
        if name not in given.group_names:
            there = ", ".join(given.group_names) or "none"
            raise click.ClickException(f"--compare: no {given.by} {name!r}; there are: {there}")
    corrected = spent_of = None
    if given.labels_kind == "judge":
        corrected = corrected_prevalence(workspace, taxonomy, given, traces)
    if bill:
        spent_of = spent_from(traces_from_files(workspace))
    return signature_report(
        given,
        rules=rules,
        rounds=rounds,
        seed=seed,
        compare=compare,
        corrected=corrected,
        spent_of=spent_of,
    )


def sight_of_labels(viewer: Viewer, labels: str) -> WithinSight | None:
    """Tell on which traces figures of somebody's labels may be shown; None for all.

    Args:
        viewer: Who asks.
        labels: ``gold`` or a name.
    """
    if viewer.name is None or not viewer.limited:
        return None
    return within_sight(
        viewer.workspace,
        viewer.name,
        viewer.taxonomy,
        None if labels == GOLD else labels,
        blind=viewer.blind,
        said=said_by(viewer.workspace, viewer.taxonomy),
    )


def outcomes_shown(viewer: Viewer, traces: Iterable[str]) -> frozenset[str] | None:
    """Which of these traces' outcomes may be shown; None for all.

    Args:
        viewer: Who asks.
        traces: Ids of traces.
    """
    return frozenset(filter(viewer.may_see_outcomes(), traces)) if viewer.blind else None


@uncollected()
def signature_input(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    labels: str = "gold",
    by: str = "model",
    failed_below: float | None = None,
    traces: Container[str] | None = None,
    places: bool = True,
    which: GoldKind = "all",
    pool: WorkerPool | None = None,
) -> SignatureInput:
    """The input of a report, with the gold and the places of a workspace."""

    def gold(wanted: Collection[str]) -> Mapping[str, GoldTrace]:
        # Imported only where somebody has decided something.
        return gold_of(workspace, taxonomy, order_of)(wanted)

    if pool is not None and pool.workers is not None:
        pool.on_trace(keep_missing_indices(workspace, pool.workers, pool.tell))
    order_of: OrderOf = SpanOrders(workspace) if places else no_orders
    return input_from_workspace(
        workspace,
        taxonomy,
        labels=labels,
        by=by,
        failed_below=failed_below,
        gold=gold,
        order_of=order_of,
        traces=traces,
        which=which,
    )
