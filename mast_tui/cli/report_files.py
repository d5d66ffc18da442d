"""The files that ``mast-tui report`` writes: a page, tables, figures for a paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mast_tui.cli.outputs import marked
from mast_tui.output_files import Outputs

if TYPE_CHECKING:
    from mast_tui.figures.signatures.model import SignatureInput
    from mast_tui.gold import Order
    from mast_tui.reports.examples import Extras
    from mast_tui.reports.model import Report
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.pseudonyms import Pseudonyms


@dataclass(frozen=True, slots=True)
class Files:
    """Where a report is written, each in its language; ``figures`` is a folder.

    ``image`` is what its figures are (``svg``, ``pdf``, ``png``), ``bare`` leaves title and caption
    out of them.
    """

    html: Path | None = None
    markdown: Path | None = None
    csv: Path | None = None
    latex: Path | None = None
    figures: Path | None = None
    image: str = "svg"
    bare: bool = False

    @property
    def whole(self) -> tuple[Path, ...]:
        """The files that hold the whole report."""
        named = (self.html, self.markdown, self.csv, self.latex)
        return tuple(one for one in named if one is not None)

    def __bool__(self) -> bool:
        return bool(self.whole) or self.figures is not None

    def check(self, outputs: Outputs) -> None:
        """Refuse what cannot be written before anything is counted.

        Raises:
            OutputError: A file is in the way that stays.
            ClickException: What draws images of this kind is not installed.
        """
        for file in self.whole:
            outputs.check(file)
        if self.figures is not None:
            outputs.add_folder(self.figures)
            from mast_tui.reports.render.images import ImageError, check_format

            try:
                check_format(self.image)
            except ImageError as error:
                raise click.ClickException(str(error)) from None

    def write(self, report: Report, outputs: Outputs) -> list[str]:
        """Write what is asked for, all of it or nothing; a line for people on each place.

        Raises:
            OutputError: A file is in the way that stays; of figures only earlier ones are replaced.
            OSError: Something could not be written.
        """
        said = []
        if self.figures is not None:
            from mast_tui.reports.render.images import image_of
            from mast_tui.reports.render.svg import MARK

            names = [f"{one.id}.{self.image}" for one in report.charts]
            for name, one in zip(names, report.charts, strict=True):
                content = image_of(one, self.image, bare=self.bare)
                outputs.add(self.figures / name, content, ours=marked(MARK))
            said.append(f"{self.figures}: {len(names)} figures")
            said += [f"  {name}" for name in names]
        if self.html is not None:
            from mast_tui.reports.render.html import render_html

            replaced = ", in the stead of an earlier file" if self.html.is_file() else ""
            outputs.add(self.html, render_html(report))
            said.append(f"{self.html}: the report as a page{replaced}")
        if self.markdown is not None:
            from mast_tui.reports.render.markdown import render_markdown

            outputs.add(self.markdown, render_markdown(report))
            said.append(f"{self.markdown}: the report as Markdown")
        if self.csv is not None:
            from mast_tui.reports.render.csv import render_csv

            text = render_csv(report)
            outputs.add(self.csv, text)
            said.append(f"{self.csv}: {text.count(chr(10)) - 1} figures")
        if self.latex is not None:
            from mast_tui.reports.render.latex import render_latex

            outputs.add(self.latex, render_latex(report))
            said.append(f"{self.latex}: tables for LaTeX")
        outputs.commit()
        return said


def extras_for(
    workspace: Workspace,
    taxonomy: Taxonomy,
    given: SignatureInput,
    *,
    places: bool,
    letters: Pseudonyms | None = None,
) -> Extras:
    """What a report shows beside its figures; with ``places`` spans from the traces' files.

    Notes bear the ``letters`` of those who wrote them, where these are given.
    """
    from mast_tui.adjudication import traces_from_files
    from mast_tui.adjudication.for_signatures import gold_of
    from mast_tui.reports.examples import extras_from_workspace
    from mast_tui.traces.model import Trace

    def nowhere(_trace: str) -> Trace | None:
        return None

    trace_of = cache(traces_from_files(workspace)) if places else nowhere

    def order_of(trace_id: str) -> Order:
        # A trace is read only when one of its spans is asked for.
        def order(key: str) -> int | None:
            trace = trace_of(trace_id)
            return None if trace is None else trace.index_of(key)

        return order

    def text_of(trace_id: str, key: str) -> str:
        trace = trace_of(trace_id)
        index = None if trace is None else trace.index_of(key)
        return "" if trace is None or index is None else trace.text(index)

    return extras_from_workspace(
        workspace,
        taxonomy,
        given,
        gold_of=gold_of(workspace, taxonomy, order_of),
        order_of=order_of,
        text_of=text_of,
        called=str if letters is None else letters.name,
    )
