"""Charts as image files: SVG as it is, PDF and PNG by a library that is not always installed."""

from __future__ import annotations

import re
import struct
import zlib
from typing import Final

from mast_tui.errors import MastError
from mast_tui.reports.model import Chart
from mast_tui.reports.render.svg import MARK, standalone_svg

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
