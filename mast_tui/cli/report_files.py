"""The files that ``mast-tui report`` writes: a page, and figures for a paper."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mast_tui.cli.outputs import marked
from mast_tui.output_files import Outputs

if TYPE_CHECKING:
    from mast_tui.adjudication import OrderOf
    from mast_tui.figures.signatures.model import SignatureInput
    from mast_tui.figures.signatures.report import Report
    from mast_tui.gold import Order
    from mast_tui.signatures.html_extras import Extras
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


def extras_for(
    workspace: Workspace, taxonomy: Taxonomy, given: SignatureInput, *, places: bool
) -> Extras:
    """What the page shows beside the report; with ``places`` numbers of spans from the files."""
    from mast_tui.adjudication.for_signatures import gold_of
    from mast_tui.signatures.html_extras import extras_from_workspace

    order_of = _orders(workspace) if places else _no_orders
    return extras_from_workspace(
        workspace,
        taxonomy,
        given,
        gold_of=gold_of(workspace, taxonomy, order_of),
        order_of=order_of,
    )


def _orders(workspace: Workspace) -> OrderOf:
    """The orders of traces from their files; what is known of the files is read when needed."""

    @cache
    def from_files() -> OrderOf:
        from mast_tui.adjudication import orders_from_files

        return orders_from_files(workspace)

    def order_of(trace: str) -> Order:
        return from_files()(trace)

    return order_of


def _no_orders(_trace: str) -> Order:
    from mast_tui.gold import no_order

    return no_order


def write_report_files(
    report: Report, extras: Extras | None, outputs: Outputs, html: Path | None, figures: Path | None
) -> list[str]:
    """Write what is asked for, all of it or nothing; a line for people on each place.

    Raises:
        OutputError: A file is in the way that stays; of figures only earlier ones are replaced.
        OSError: Something could not be written.
    """
    said = []
    if figures is not None:
        from mast_tui.reports.render.svg import MARK
        from mast_tui.signatures.figure_files import figure_files

        texts = figure_files(report)
        for name, text in texts.items():
            outputs.add(figures / name, text, ours=marked(MARK))
        said.append(f"{figures}: {len(texts)} figures")
        said += [f"  {name}" for name in texts]
    if html is not None:
        from mast_tui.signatures.html_page import report_html

        replaced = ", in the stead of an earlier file" if html.is_file() else ""
        outputs.add(html, report_html(report, extras=extras))
        said.append(f"{html}: the report as a page{replaced}")
    outputs.commit()
    return said
