"""Reports as they are printed and written: text, a page, tables, figures for a paper.

Charts are written as SVG, or as PDF and PNG by a library that is not always installed.
"""

from __future__ import annotations

import re
import shutil
import struct
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.shared.common import print_json
from mast_tui.cli.shared.options import OptionRule
from mast_tui.errors import MastError
from mast_tui.output_files import Outputs, is_stdout
from mast_tui.reports.model import Chart
from mast_tui.reports.render import rendered
from mast_tui.reports.render.svg import MARK, standalone_svg
from mast_tui.reports.render.text import render_text
from mast_tui.safe_text import one_line
from mast_tui.workspace.outputs import marked

if TYPE_CHECKING:
    from mast_tui.reports.model import Report

FORMATS: Final = ("svg", "pdf", "png")
_PNG_SCALE: Final = 3
"""So many pixels for each unit of a drawing, some 300 to the inch in a paper's column."""

_FOR_BROWSERS: Final = re.compile(
    r"^\.v-halo \{.*\}$| text-rendering: geometricPrecision;", re.MULTILINE
)
"""Styles that CairoSVG takes otherwise: it knows no order of painting, so that the halo of words
would cover them, and loses half of each letter at that precision."""

_PNG_HEAD: Final = 33
"""The bytes of a PNG's signature and header."""


class ImageError(MastError):
    """An image of this kind cannot be drawn here; the message is one sentence for a person."""


def check_format(image: str) -> None:
    """Say early that images of a kind cannot be drawn.

    Raises:
        ImageError: The library that draws them, or what it needs, is not installed.
    """
    if image == "svg":
        return
    try:
        import cairosvg  # noqa: F401
    except ImportError as error:
        raise ImageError(
            f"figures as {image} need CairoSVG: pip install 'mast-tui[figures]', or write SVG"
        ) from error
    except OSError as error:
        raise ImageError(
            f"figures as {image} need the library Cairo, which is not installed here; write SVG"
        ) from error


def image_of(chart: Chart, image: str, *, bare: bool = False) -> str | tuple[bytes]:
    """Draw a chart as a file's content: a text for SVG, else one piece of bytes.

    Args:
        chart: The drawing and its words.
        image: One of ``FORMATS``.
        bare: Whether its title and note are left out, for a paper that sets its own.

    Raises:
        ImageError: As ``check_format``.
    """
    svg = standalone_svg(chart, bare)
    if image == "svg":
        return svg
    check_format(image)
    import cairosvg

    drawn = _FOR_BROWSERS.sub("", svg).encode("utf-8")
    if image == "pdf":
        # What follows the end of a PDF is a comment.
        pdf: bytes = cairosvg.svg2pdf(bytestring=drawn)
        return (pdf + f"\n% {MARK}\n".encode(),)
    png: bytes = cairosvg.svg2png(bytestring=drawn, scale=_PNG_SCALE)
    return (png[:_PNG_HEAD] + _png_text(b"Software", MARK.encode()) + png[_PNG_HEAD:],)


def _png_text(key: bytes, words: bytes) -> bytes:
    """A part of a PNG that holds a text."""
    body = b"tEXt" + key + b"\0" + words
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


SAME_FILE: Final = OptionRule[Any](
    "--{request.files.same[0]} and --{request.files.same[1]} name the same file; give each its own",
    when=lambda request: request.files.same,
)
"""The rule of a request with ``files`` that each has its own name."""

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

    @classmethod
    def named(cls, **whole: Path | None) -> Files:
        """Return the files by language, without those that are None."""
        return cls({language: file for language, file in whole.items() if file is not None})

    def __bool__(self) -> bool:
        return bool(self.whole) or self.figures is not None

    @property
    def same(self) -> tuple[str, ...]:
        """The languages of two that are the same file; empty if there are none."""
        pairs = combinations(self.whole, 2)
        return next((pair for pair in pairs if self.whole[pair[0]] == self.whole[pair[1]]), ())

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


@dataclass(frozen=True, slots=True)
class ReportOutput:
    """The files and the form in which a command prints a report.

    ``stdout`` is ``json``, ``text``, the name of a language, or None if files are enough.
    """

    files: Files
    stdout: str | None

    def show(self, report: Report, document: Mapping[str, Any], outputs: Outputs) -> None:
        """Write the files, report each on stderr or else stdout, and print.

        Args:
            report: The report.
            document: It as ``--json`` prints it.
            outputs: The rules by which files are replaced.

        Raises:
            OutputError: A file is in the way that stays.
        """
        stdout_in_use = self.stdout is not None or any(map(is_stdout, self.files.whole.values()))
        for line in self.files.write(report, outputs):
            click.echo(one_line(line), err=stdout_in_use)
        if self.stdout == "json":
            print_json(document)
        elif self.stdout == "text":
            print_text(report)
        elif self.stdout is not None:
            sys.stdout.write(rendered(report, self.stdout))
