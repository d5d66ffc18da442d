"""A report with every kind of cell, note and part, and hostile names."""

from __future__ import annotations

from typing import Final

from mast_tui.figures.record import Figure
from mast_tui.reports.model import (
    Chart,
    Column,
    KeyFact,
    Kind,
    Note,
    Report,
    ReportSection,
    Row,
    Table,
    Text,
)
from mast_tui.reports.render.svg import Drawing

SCRIPT: Final = "\"><script>window.hacked=1</script><img src=x onerror='window.hacked=2'> & co"
HOSTILE: Final = (
    SCRIPT,
    "A | B \\ and \\input{x} or `code` *bold* [link](http://x) #1 $x_1^2$ 50% ~ {}",
    "esc \x1b[31m bell \x07 line\nbreak \u202eexe.gpj tab\tend",
    "日本語の名前がとても長い 全角",
)
"""Names that look like markup, code or control sequences, or are wider than they look."""

COLUMNS: Final = (
    Column("code", "", Kind.TEXT),
    Column("name", "mode", Kind.TEXT),
    Column("n", "n", Kind.COUNT, priority=60),
    Column("share", "present", Kind.SHARE, name="share of present", priority=30),
    Column("kappa", "κ", name="Cohen's κ", priority=90),
    Column("alpha", "α", name="Krippendorff's α", priority=80),
    Column("ac1", "AC1", name="Gwet's AC1", priority=20),
    Column("points", "diff", Kind.POINTS, name="failed less successful", priority=25),
    Column("p", "p", Kind.P_VALUE, priority=10, interval=False),
    Column("nothing", "empty", Kind.NUMBER, name="what nobody has"),
)


def rows() -> tuple[tuple[Row, ...], ...]:
    """Return three groups: plain modes, one with undefined figures; hostile ones; and a total."""
    return (
        (
            Row(
                "1.1",
                {
                    "code": "1.1",
                    "name": "Disobey task specification",
                    "n": 1234,
                    "share": Figure(value=0.125, interval=(0.05, 0.3)),
                    "kappa": Figure(value=0.6149, interval=(0.4815, 0.7249)),
                    "alpha": Figure(value=-0.0001, interval=(-0.1, 0.1)),
                    "ac1": Figure(value=0.9, reason="few_traces"),
                    "points": Figure(value=0.141, interval=(-0.05, 0.33)),
                    "p": 0.00001,
                },
                mark="†",
            ),
            Row(
                "1.2",
                {
                    "code": "1.2",
                    "name": "Disobey role specification",
                    "n": 8,
                    "share": Figure(value=0, interval=(0, 0.4), n=8),
                    "kappa": Figure(reason="no_variance"),
                    "alpha": Figure(reason="no_variance"),
                    "ac1": Figure(reason="no_overlap"),
                    "points": -0.072,
                    "p": 0.5333,
                },
            ),
        ),
        tuple(
            Row(f"h{i}", {"code": f"9.{i}", "name": name, "n": i, "kappa": 0.1 * i, "p": 1.0})
            for i, name in enumerate(HOSTILE)
        ),
        (
            Row(
                "pooled",
                {"name": "pooled", "n": 2, "kappa": Figure(value=1.0, interval=(1.0, 1.0))},
            ),
        ),
    )


def table(*, columns: tuple[Column, ...] = COLUMNS, folded: bool = False) -> Table:
    """Return a table with all rows."""
    return Table(
        "folded" if folded else "modes",
        "All numbers" if folded else "Agreement on whole traces",
        columns,
        rows(),
        caption="First pass, 8 traces; 95 % intervals from 2000 resamples (seed 0).",
        notes=(
            Note("† κ is low although raw agreement is high.", "paradox"),
            Note("–: too few traces for an interval (n < 20).", "few_traces"),
        ),
        folded=folded,
    )


def chart() -> Chart:
    """Return a small chart."""
    drawing = Drawing(680, 60)
    drawing.rect(0, 10, 300, 20, "v-failed", tip=SCRIPT)
    drawing.text(0, 50, SCRIPT, "v-s")
    return Chart(
        "shares", f"Shares of {SCRIPT}", "n = 8; labels: gold.", 680, 60, (*drawing.parts,)
    )


def report(*, columns: tuple[Column, ...] = COLUMNS) -> Report:
    """Return the whole report, of two sections."""
    return Report(
        "agreement",
        "Agreement",
        f"mast@3, pass 1, {SCRIPT}; finished by all: 8 traces.",
        (
            ReportSection(
                "modes",
                "Modes",
                (
                    table(columns=columns),
                    table(columns=columns, folded=True),
                    Text(
                        "help",
                        f"What helps against {SCRIPT}",
                        ("Write down who decides.", HOSTILE[1]),
                        (
                            ("the paper", "https://example.org/a_b?c=1&d=2"),
                            ("not a link", "javascript:window.hacked=3"),
                        ),
                    ),
                    Text("more", "More to read", ("Only where somebody asks.",), folded=True),
                ),
                facts=(KeyFact("traces", "8"), KeyFact("mean score", "0.50", "n 4")),
                notes=(Note("4 of 8 traces share one block of labels.", "blocks", warning=True),),
            ),
            ReportSection("pictures", SCRIPT, (chart(),), notes=(Note("Drawn of 8 traces.", "n"),)),
        ),
        notes=(
            Note("Left out: 3 traces that bob has not finished.", "left_out"),
            Note("Pairs share few traces: lead with Krippendorff's α.", "rotating", warning=True),
        ),
        facts=(KeyFact("annotators", "2", "ann, bob"),),
    )
