"""Reports as they are printed and written: text, a page, tables, figures for a paper."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.output_files import Outputs
from mast_tui.reports.render import rendered
from mast_tui.reports.render.images import check_format, image_of
from mast_tui.reports.render.svg import MARK
from mast_tui.reports.render.text import render_text
from mast_tui.safe_text import one_line
from mast_tui.workspace.outputs import marked

if TYPE_CHECKING:
    from mast_tui.reports.model import Report


WIDTH: Final = 100
"""How wide text is that does not go to a terminal."""


def print_text(report: Report) -> None:
    """Print a report as text, as wide as the terminal is."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    for line in render_text(report, width):
        click.echo(one_line(line))


@dataclass(frozen=True, slots=True)
class Files:
    """Where a report is written: files by language, and a folder for its ``figures``.

    ``image`` is what these are (``svg``, ``pdf``, ``png``), ``bare`` leaves title and caption out
    of them.
    """

    whole: Mapping[str, Path]
    figures: Path | None = None
    image: str = "svg"
    bare: bool = False

    def __bool__(self) -> bool:
        return bool(self.whole) or self.figures is not None

    def check(self, outputs: Outputs) -> None:
        """Refuse what cannot be written before anything is counted.

        Raises:
            OutputError: A file is in the way that stays.
            ImageError: What draws images of this kind is not installed.
        """
        for file in self.whole.values():
            outputs.check(file)
        if self.figures is not None:
            outputs.add_folder(self.figures)
            check_format(self.image)

    def write(self, report: Report, outputs: Outputs) -> list[str]:
        """Write what is asked for, all of it or nothing; a line for people on each place.

        Raises:
            OutputError: A file is in the way that stays; of figures only earlier ones are replaced.
            OSError: Something could not be written.
        """
        said = []
        if self.figures is not None:
            names = [f"{one.id}.{self.image}" for one in report.charts]
            for name, one in zip(names, report.charts, strict=True):
                content = image_of(one, self.image, bare=self.bare)
                outputs.add(self.figures / name, content, ours=marked(MARK))
            said += [f"{self.figures}: {len(names)} figures", *(f"  {name}" for name in names)]
        for language, file in self.whole.items():
            text = rendered(report, language)
            replaced = ", in the stead of an earlier file" if file.is_file() else ""
            outputs.add(file, text)
            told = {
                "html": f"the report as a page{replaced}",
                "markdown": "the report as Markdown",
                "csv": f"{text.count(chr(10)) - 1} figures",
                "latex": "tables for LaTeX",
            }
            said.append(f"{file}: {told[language]}")
        outputs.commit()
        return said
