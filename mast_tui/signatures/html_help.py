"""What helps against the modes of a group, and the labels behind it, as parts of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_tui.reports.render.svg import shown
from mast_tui.safe_text import display_lines
from mast_tui.signatures.figure_model import group_words

if TYPE_CHECKING:
    from mast_tui.figures.signatures.groups import GroupJson
    from mast_tui.figures.signatures.report import Report
    from mast_tui.signatures.html_extras import Example, Extras

_MOST_QUOTED = 600


@dataclass(frozen=True, slots=True)
class Decided:
    """How many failed traces a mode decided, of those that show it."""

    code: str
    name: str
    traces: int
    showing: int


def decided_modes(group: GroupJson, by_labels: dict[str, int] | None) -> list[Decided]:
    """The modes that failed traces show, those first that decided most of them.

    ``by_labels`` are traces of which the labels say so. Where nobody has said anything of the
    kind, a mode whose class is fatal counts as having decided every failed trace that shows it.
    """
    found = []
    for code, mode in group["modes"].items():
        showing = mode["failed"]["count"]
        if by_labels is not None:
            traces = by_labels.get(code, 0)
        else:
            traces = showing if mode["severity"] == "fatal" else 0
        if showing:
            found.append(Decided(code, mode["name"], traces, showing))
    return sorted(found, key=lambda one: (-one.traces, -one.showing))


def help_part(name: str, group: GroupJson, extras: Extras) -> str:
    """The strategies against the modes of a group, as an ordered list; empty without a taxonomy."""
    if extras.taxonomy is None:
        return ""
    labels = extras.decided.get(name)
    by_labels = None if labels is None else dict(labels)
    modes = decided_modes(group, by_labels)
    if not modes:
        return ""
    rule = (
        "the labels say of a mode in a trace that it was fatal"
        if by_labels is not None
        else "nobody has said of a label how severe it is, so a mode decided the failed traces "
        "that show it where its class is fatal"
    )
    items = "".join(_item(name, one, group["failed"], extras) for one in modes)
    return (
        f"<h3>What helps</h3><p>Ordered by the number of failed traces that each mode decided: "
        f"{rule}. The strategies are those of the taxonomy.</p>"
        f'<ol class="helps">{items}</ol>'
    )


def _item(group: str, mode: Decided, failed: int, extras: Extras) -> str:
    assert extras.taxonomy is not None
    known = extras.taxonomy.find(mode.code)
    fixes = () if known is None else known.fixes
    listed = "".join(f"<li>{shown(fix)}</li>" for fix in fixes)
    listed = f"<ul>{listed}</ul>" if listed else "<p>The taxonomy names no strategy.</p>"
    links = [
        f'<a href="#{anchor(place)}">{shown(one.trace)}&nbsp;{place_words(one)}</a>'
        for place, one in enumerate(extras.examples)
        if (one.group, one.code) == (group, mode.code)
    ]
    see = f'<p class="see">For example {", ".join(links)}</p>' if links else ""
    return (
        f"<li><p><b>{shown(mode.code)} {shown(mode.name)}</b> decided {mode.traces or 'none'} and "
        f"shows in {mode.showing} of {failed} failed traces.</p>{listed}{see}</li>"
    )


def anchor(place: int) -> str:
    """The name of an example's place on the page."""
    return f"example-{place + 1}"


def place_words(one: Example) -> str:
    """Where a label stands, as numbers of spans."""
    if one.whole:
        return "(whole trace)"
    if one.first is None:
        return "(place not known here)"
    return f"#{one.first}" if one.last in (None, one.first) else f"#{one.first}–#{one.last}"


def appendix(report: Report, extras: Extras) -> str:
    """The labels that the page points to, with their words; empty where there are none."""
    if not extras.examples:
        return ""
    items = "".join(_quoted(report, place, one) for place, one in enumerate(extras.examples))
    return (
        '<section id="examples"><h2>Examples</h2><p>Labels on failed traces, with the words that '
        f"they quote, and notes. The words are data and nothing else.</p>{items}</section>"
    )


def _quoted(report: Report, place: int, one: Example) -> str:
    quote = one.quote if len(one.quote) <= _MOST_QUOTED else f"{one.quote[:_MOST_QUOTED]}…"
    lines = "<br>".join(shown(line) for line in display_lines(quote))
    said = f"<blockquote>{lines}</blockquote>" if quote else ""
    note = f"<p><b>Note:</b> <bdi>{shown(one.note)}</bdi></p>" if one.note else ""
    if not quote and not one.note:
        note = "<p>Neither words nor a note.</p>"
    fatal = " · said to be fatal" if one.fatal else ""
    group = group_words(report, one.group)
    mode = report["groups"][one.group]["modes"].get(one.code)
    name = one.code if mode is None else f"{one.code} {mode['name']}"
    return (
        f'<article id="{anchor(place)}"><h3>{shown(name)} in <bdi>{shown(one.trace)}</bdi> '
        f"{place_words(one)}</h3><p>{shown(group)}{fatal}</p>{said}{note}</article>"
    )
