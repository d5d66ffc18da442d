"""The output of reports: text, HTML pages, tables, images and records.

Charts are SVG. An optional library converts them to PDF and PNG.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import click

from mast_tui.cli.shared.common import print_json, print_line, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.figures.record import PAIR, Figure, record_json
from mast_tui.output_files import Content, Outputs, is_stdout
from mast_tui.reports.model import Chart, Report
from mast_tui.reports.render import rendered
from mast_tui.reports.render.csv import csv_text
from mast_tui.reports.render.svg import MARK, standalone_svg
from mast_tui.reports.render.text import render_text
from mast_tui.safe_text import one_line
from mast_tui.workspace.outputs import marked

FORMATS: Final = ("svg", "pdf", "png")
_PNG_SCALE: Final = 3
"""The pixels per unit of a chart: about 300 per inch in a column of a paper."""

_FOR_BROWSERS: Final = re.compile(
    r"^\.v-halo \{.*\}$| text-rendering: geometricPrecision;", re.MULTILINE
)
"""Styles that CairoSVG draws wrongly. It would draw a text's halo over the text, and lose half of
each letter."""

_PNG_HEAD: Final = 33
"""The bytes of a PNG's signature and header."""


def check_format(image_format: str) -> None:
    """Check that images of a format can be drawn.

    Raises:
        MastError: The drawing library, or a library that it needs, is not installed.
    """
    if image_format == "svg":
        return
    try:
        import cairosvg  # noqa: F401
    except ImportError as error:
        raise MastError(
            f"figures as {image_format} need CairoSVG; install it with: pip install "
            "'mast-tui[figures]', or write SVG"
        ) from error
    except OSError as error:
        raise MastError(
            f"figures as {image_format} need the library Cairo, which is not installed; write SVG"
        ) from error


def draw_image(
    chart: Chart, image_format: str, *, without_text: bool = False
) -> str | tuple[bytes]:
    """Draw a chart as the content of a file: text for SVG, else a tuple of bytes.

    The content contains ``MARK``, by which a later run recognises its own file.

    Args:
        chart: The chart.
        image_format: One of ``FORMATS``.
        without_text: Leave out the title and the note.

    Raises:
        MastError: The format cannot be drawn on this machine.
    """
    svg = standalone_svg(chart, without_text)
    if image_format == "svg":
        return svg
    check_format(image_format)
    import cairosvg

    printable_svg = _FOR_BROWSERS.sub("", svg).encode("utf-8")
    if image_format == "pdf":
        # A line after the end of a PDF is a comment.
        pdf: bytes = cairosvg.svg2pdf(bytestring=printable_svg)
        return (pdf + f"\n% {MARK}\n".encode(),)
    png: bytes = cairosvg.svg2png(bytestring=printable_svg, scale=_PNG_SCALE)
    return (png[:_PNG_HEAD] + _png_text(b"Software", MARK.encode()) + png[_PNG_HEAD:],)


def _png_text(key: bytes, text: bytes) -> bytes:
    body = b"tEXt" + key + b"\0" + text
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


SAME_FILE: Final = OptionRule[Any](
    "--{request.files.same[0]} and --{request.files.same[1]} name the same file; give two files",
    when=lambda request: request.files.same,
)
"""The rule that no two files of a request are the same."""

WIDTH: Final = 100
"""The width of text outside a terminal, in columns."""


def print_text(report: Report) -> None:
    """Print a report as text."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if has_width else WIDTH
    for line in render_text(report, width):
        click.echo(one_line(line))


RECORD_FORMATS: Final = (".jsonl", ".csv", ".parquet")
"""The extensions of record files."""


RECORD_RULES: Final = (
    OptionRule[Any](
        "--output is for records; give --records too", options=("--output",), needs=("--records",)
    ),
    OptionRule[Any](
        "--output {request.output}: use an extension out of " + ", ".join(RECORD_FORMATS),
        options=("--output",),
        when=lambda request: (
            not is_stdout(request.output) and request.output.suffix.lower() not in RECORD_FORMATS
        ),
    ),
    OptionRule[Any](
        "--records prints records; leave out {other}", options=("--records",), excludes=("--json",)
    ),
)
"""The rules of requests with the options ``--records`` and ``--output``."""


_RECORD_FIELDS: Final = tuple(record_json(Figure()))
"""The fields of a record, in their order."""


def record_lines(figures: Iterable[Figure]) -> str:
    """Return figures as JSON Lines, one record per line."""
    return "".join(json.dumps(record_json(figure), allow_nan=False) + "\n" for figure in figures)


def records_content(figures: Iterable[Figure], extension: str) -> Content:
    """Return the content of a record file.

    JSON Lines keep the structure of ``subject`` and ``sources``. Tables have text in these columns.

    Args:
        figures: The figures.
        extension: One of ``RECORD_FORMATS``.

    Raises:
        MastError: The extension is unknown, or the library of the format is not installed.
    """
    match extension.lower():
        case ".jsonl":
            return record_lines(figures)
        case ".csv":
            rows = map(_table_row, figures)
            return csv_text(
                _RECORD_FIELDS, ({name: _csv_cell(row[name]) for name in row} for row in rows)
            )
        case ".parquet":
            return (_parquet_content(list(map(_table_row, figures))),)
    raise MastError(f"records are written as {', '.join(RECORD_FORMATS)}, not as {extension!r}")


def _table_row(figure: Figure) -> dict[str, Any]:
    """Return a figure as a row of text and numbers."""
    record = record_json(figure)
    return record | {
        "subject": PAIR.join(record["subject"]),
        "sources": json.dumps(record["sources"]),
    }


def _csv_cell(value: object) -> str:
    """Return the text of a cell: empty for None, all digits for a number."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def _parquet_content(rows: list[dict[str, Any]]) -> bytes:
    """Return the rows as the content of a Parquet file."""
    try:
        from pyarrow import Table, float64, int64, parquet, schema, string  # an extra
    except ImportError as error:
        raise MastError(
            "records as Parquet need more packages; install them with: pip install "
            "'mast-tui[parquet]', or write .jsonl"
        ) from error
    column_types = {
        **dict.fromkeys(("value", "low", "high", "bound_low", "bound_high"), float64()),
        **dict.fromkeys(("count", "n", "unresolved", "needs"), int64()),
    }
    columns = [(name, column_types.get(name, string())) for name in _RECORD_FIELDS]
    content = BytesIO()
    parquet.write_table(Table.from_pylist(rows, schema=schema(columns)), content)
    return content.getvalue()


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files of a report.

    Attributes:
        by_language: The files of the whole report, by language.
        chart_folder: The folder of the charts.
        image_format: The format of the charts: one of ``FORMATS``.
        without_text: Leave title and caption out of the charts.
        records: The file of records.
    """

    by_language: Mapping[str, Path]
    chart_folder: Path | None = None
    image_format: str = "svg"
    without_text: bool = False
    records: Path | None = None

    @classmethod
    def named(cls, **by_language: Path | None) -> ReportFiles:
        """Return the files by language, without those that are None."""
        return cls({language: file for language, file in by_language.items() if file is not None})

    def __bool__(self) -> bool:
        return bool(self.by_language) or (self.chart_folder, self.records) != (None, None)

    @property
    def by_option(self) -> dict[str, Path]:
        """The files by the name of their option."""
        return {**self.by_language, **({} if self.records is None else {"output": self.records})}

    @property
    def same(self) -> tuple[str, ...]:
        """Two options with the same file; empty if there are none."""
        files = self.by_option
        return next(
            (pair for pair in combinations(files, 2) if files[pair[0]] == files[pair[1]]), ()
        )

    def check(self, outputs: Outputs) -> None:
        """Check that the files can be written and the images drawn.

        Raises:
            OutputError: An existing file must not be replaced.
            MastError: The images cannot be drawn on this machine.
        """
        for file in self.by_option.values():
            outputs.check(file)
        if self.chart_folder is not None:
            outputs.add_folder(self.chart_folder)
            check_format(self.image_format)

    def write(self, report: Report, outputs: Outputs, figures: Sequence[Figure] = ()) -> list[str]:
        """Write all files or none, and return a line about each.

        Args:
            report: The report.
            outputs: The files to write, with the rules for replacing existing ones.
            figures: The figures for the records.

        Raises:
            OutputError: An existing file must not be replaced.
            OSError: A file could not be written.
        """
        lines = [
            *self._add_charts(report, outputs),
            *(
                self._add_text(language, file, report, outputs)
                for language, file in self.by_language.items()
            ),
        ]
        if self.records is not None:
            extension = ".jsonl" if is_stdout(self.records) else self.records.suffix
            outputs.add(self.records, records_content(figures, extension))
            lines.append(f"{self.records}: {counted(len(figures), 'record')}")
        outputs.commit()
        return lines

    def _add_charts(self, report: Report, outputs: Outputs) -> list[str]:
        """Add a file for each chart, and return the lines about them."""
        if self.chart_folder is None:
            return []
        names = [f"{chart.id}.{self.image_format}" for chart in report.charts]
        for name, chart in zip(names, report.charts, strict=True):
            content = draw_image(chart, self.image_format, without_text=self.without_text)
            # Only a chart of an earlier run may be replaced.
            outputs.add(self.chart_folder / name, content, ours=marked(MARK))
        return [f"{self.chart_folder}: {len(names)} figures", *(f"  {name}" for name in names)]

    def _add_text(self, language: str, file: Path, report: Report, outputs: Outputs) -> str:
        """Add the file of one language, and return the line about it."""
        text = rendered(report, language)
        replaced = ", replacing an earlier file" if file.is_file() else ""
        outputs.add(file, text)
        row_count = text.count("\n") - 1  # without the headings
        descriptions = {
            "html": f"the report as a page{replaced}",
            "markdown": "the report as Markdown",
            "csv": f"{row_count} figures",
            "latex": "tables for LaTeX",
        }
        return f"{file}: {descriptions[language]}"


@dataclass(frozen=True, slots=True)
class ReportOutput:
    """The output of a command with a report.

    Attributes:
        files: The files to write.
        stdout: The form on stdout: ``json``, ``text``, ``records``, ``methods`` or a language; None
            for no report.
    """

    files: ReportFiles
    stdout: str | None

    @classmethod
    def of_options(cls, files: ReportFiles, *, as_json: bool, records: bool) -> ReportOutput:
        """Return the output of a command that prints its report unless it only writes files.

        Args:
            files: The files to write.
            as_json: The value of ``--json``.
            records: The value of ``--records``.
        """
        if as_json:
            return cls(files, "json")
        if records:
            return cls(files, "records")
        return cls(files, None if files else "text")

    def show(
        self,
        report: Report,
        document: Mapping[str, Any],
        outputs: Outputs,
        figures: Sequence[Figure] = (),
    ) -> None:
        """Write the files, report each of them, and print the report.

        If stdout is in use, files are reported on stderr.

        Args:
            report: The report.
            document: The JSON document.
            outputs: The files to write, with the rules for replacing existing ones.
            figures: The figures for the records.

        Raises:
            OutputError: An existing file must not be replaced.
        """
        stdout_in_use = self.stdout is not None or any(
            map(is_stdout, self.files.by_language.values())
        )
        for line in self.files.write(report, outputs, figures):
            click.echo(one_line(line), err=stdout_in_use)
        match self.stdout:
            case "json":
                print_json(document)
            case "text":
                print_text(report)
            case "records":
                if self.files.records is None:
                    sys.stdout.write(record_lines(figures))
            case "methods":
                _print_methods(report)
            case str(language):
                sys.stdout.write(rendered(report, language))


def _print_methods(report: Report) -> None:
    """Print the paragraph for a paper, or report the reason why there is none."""
    if report.methods:
        print_line(report.methods)
        return
    for note in report.notes:
        if note.reason in ("few_annotators", "nothing_shared"):
            say(note.text)
