"""A report on failure signatures as one HTML file that needs nothing beside it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.figures.signatures.report import whose_labels
from mast_tui.reports.render.svg import DARK, LIGHT, figure_style, inline_svg, shown
from mast_tui.signatures.figure_model import Figure, group_words
from mast_tui.signatures.figure_set import report_figures
from mast_tui.signatures.html_extras import Extras
from mast_tui.signatures.html_help import appendix, help_part
from mast_tui.signatures.html_tables import (
    categories_table,
    comparison_table,
    corrected_part,
    modes_table,
    places_tables,
    stratified_part,
)

if TYPE_CHECKING:
    from mast_tui.figures.signatures.groups import GroupJson
    from mast_tui.figures.signatures.report import Report

_PAGE_COLOURS: Final = (
    {"link": "#24548f", "soft": "#f4f6f8", "shade": "#c3cad2"},
    {"link": "#8fb7ee", "soft": "#1d2228", "shade": "#000000"},
)
_USED: Final = ("paper", "ink", "muted", "grid")


def report_html(report: Report, *, extras: Extras | None = None) -> str:
    """The page: for each group its figures and tables, what helps, and labels to look at.

    It asks nothing of any network. Its policy lets no script run but its own, whatever stands in
    labels and traces, and every foreign word is escaped, with control characters made visible.
    """
    extras = Extras() if extras is None else extras
    figures = report_figures(report)
    script = _beside("html_page.js")
    parts = [
        _head(report, script),
        "<body>",
        _opening(report, has_examples=bool(extras.examples)),
    ]
    for place, (name, group) in enumerate(report["groups"].items()):
        own = [one for one in figures if one.group == name and one.kind != "compared"]
        parts.append(_group(report, place, name, group, own, extras))
    if report["comparison"] is not None:
        parts.append(_comparison(report, [one for one in figures if one.kind == "compared"]))
    parts += [
        appendix(report, extras),
        _method(report),
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


@cache
def _beside(name: str) -> str:
    """A text that lies beside this module."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _head(report: Report, script: str) -> str:
    digest = b64encode(sha256(script.encode("utf-8")).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{shown(_title(report))}, {shown(report['taxonomy'])}</title>\n"
        f"<style>\n{_style()}\n</style>\n</head>"
    )


def _title(report: Report) -> str:
    return (
        "Failure signatures" if report["by"] == "all" else f"Failure signatures by {report['by']}"
    )


def _style() -> str:
    light, dark = (
        ":root { "
        + " ".join(f"--{name}: {colours[name]};" for name in _USED)
        + " ".join(f" --{name}: {colour};" for name, colour in page.items())
        + " }\n"
        + figure_style(colours)
        for colours, page in zip((LIGHT, DARK), _PAGE_COLOURS, strict=True)
    )
    # On paper the colours are the light ones, whatever the screen prefers.
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n" + _beside(
        "html_page.css"
    )


def _opening(report: Report, *, has_examples: bool) -> str:
    traces, whose = report["traces"], shown(whose_labels(report))
    facts = [
        ("traces", str(traces["labelled"]), ""),
        ("failed", str(traces["failed"]), ""),
        ("successful", str(traces["succeeded"]), ""),
        ("outcome unknown", str(traces["unknown"]), ""),
    ]
    below = report["rules"]["failed_below"]
    outcome = "" if below is None else f" A trace has failed where its score is below {below:g}."
    links = [
        f'<a href="#group-{place}">{shown(group_words(report, name))}</a>'
        for place, name in enumerate(report["groups"])
    ]
    links += ['<a href="#comparison">comparison</a>'] * (report["comparison"] is not None)
    links += ['<a href="#examples">examples</a>'] * has_examples
    links.append('<a href="#method">how it was counted</a>')
    return (
        f"<h1>{shown(_title(report))}</h1>"
        f'<p class="lead">Labels: <bdi>{whose}</bdi>. Taxonomy: {shown(report["taxonomy"])}.'
        f"{outcome}</p>{_facts(facts)}{_cannot(report['cannot_say'])}<nav>{''.join(links)}</nav>"
    )


def _facts(facts: Iterable[tuple[str, str, str]]) -> str:
    items = (
        f"<div><dt>{shown(name)}</dt><dd>{shown(value)}"
        f"{f'<small>{shown(more)}</small>' if more else ''}</dd></div>"
        for name, value, more in facts
    )
    return f'<dl class="facts">{"".join(items)}</dl>'


def _cannot(said: Sequence[str]) -> str:
    items = "".join(f"<li>{shown(one)}</li>" for one in said)
    return f'<ul class="cannot">{items}</ul>' if items else ""


def _group(
    report: Report,
    place: int,
    name: str,
    group: GroupJson,
    figures: Sequence[Figure],
    extras: Extras,
) -> str:
    drawn = {one.kind: _figure(one) for one in figures}
    parts = [
        f'<section id="group-{place}"><h2><bdi>{shown(group_words(report, name))}</bdi></h2>',
        _facts(_group_facts(group)),
        _cannot(group["cannot_say"]),
        *(drawn.get(kind, "") for kind in ("distribution", "shapes", "prevalence", "difference")),
        _folded(
            "All numbers of the modes", modes_table(group, stated=report["stated"] is not None)
        ),
        _folded("Within each model", stratified_part(group)),
        drawn.get("categories", ""),
        _folded("All numbers of the categories", categories_table(group)),
        *(drawn.get(kind, "") for kind in ("onset", "order", "chains")),
        _places(group),
        drawn.get("together", ""),
        corrected_part(group),
        help_part(name, group, extras),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _folded(words: str, inside: str) -> str:
    return f"<details open><summary>{words}</summary>{inside}</details>" if inside else ""


def _group_facts(group: GroupJson) -> Iterator[tuple[str, str, str]]:
    yield "traces", str(group["traces"]), ""
    yield "failed", str(group["failed"]), ""
    yield "successful", str(group["succeeded"]), ""
    if group["unknown"]:
        yield "outcome unknown", str(group["unknown"]), ""
    score = group["mean_score"]
    if score["value"] is not None:
        yield "mean score", f"{score['value']:.2f}", f"n {score['n']}"
    mean = group["modes_per_failed_trace"]
    if mean["value"] is not None:
        ends = "" if mean["ci"] is None else f"{mean['ci'][0]:.1f} to {mean['ci'][1]:.1f}"
        yield "modes per failed trace", f"{mean['value']:.1f}", ends


def _figure(one: Figure) -> str:
    title = one.heading
    return (
        f'<figure id="{one.name}"><h3>{shown(title)}</h3>'
        f'<div class="box" tabindex="0" role="region" aria-label="{shown(title)}">'
        f"{inline_svg(one.chart())}</div><figcaption>{shown(one.note)}</figcaption></figure>"
    )


def _places(group: GroupJson) -> str:
    both = group["places"]
    if both is None:
        return ""
    failed = bool(both["failed"]["traces"])
    found, which = (both["failed"], "failed traces") if failed else (both["all"], "traces")
    said = []
    for after in found["after_fatal"]:
        on = after["spans_after"]
        if on["median"] is not None and on["quartiles"] is not None:
            by = "as the labels say" if after["by"] == "labels" else "as the class of its mode says"
            said.append(
                f"<p>After the first failure that is fatal, {by}, a run went on for "
                f"{on['median']:.0f} spans in the median (quartiles {on['quartiles'][0]:.0f} to "
                f"{on['quartiles'][1]:.0f}; n = {on['n']} {which}).</p>"
            )
    return "".join(said) + places_tables(found, which)


def _comparison(report: Report, figures: Sequence[Figure]) -> str:
    found = report["comparison"]
    assert found is not None
    first, second = found["groups"]
    means, said = found["modes_per_failed_trace"], ""
    if means["difference"] is not None:
        ends = "" if means["ci"] is None else f" ({means['ci'][0]:+.1f} to {means['ci'][1]:+.1f})"
        said = f"<p>Modes per failed trace: {means['difference']:+.1f}{ends}.</p>"
    return (
        f'<section id="comparison"><h2><bdi>{shown(first)}</bdi> against <bdi>{shown(second)}</bdi>'
        f"</h2>{said}{''.join(_figure(one) for one in figures)}{comparison_table(found)}</section>"
    )


def _method(report: Report) -> str:
    rules, drawn = report["rules"], report["bootstrap"]
    said = [
        "Open and unsure verdicts, and traces whose outcome is not known, count on neither side.",
        "Intervals hold 95 %: Wilson's for shares, Newcombe's for differences, Katz's for ratios; "
        f"that of a mean by resampling traces ({drawn['rounds']} rounds, seed {drawn['seed']}).",
        "p: Fisher's exact test, two-sided; adjusted over the modes after Benjamini and Hochberg.",
        f"Fatal: more often in failed traces and adjusted p < {rules['alpha']:g}. Benign: in at "
        f"least {rules['least']} successful traces, and the interval of the difference ends at "
        f"most at {rules['margin_pp']:g} points. Unclear: anything else, and fewer than "
        f"{rules['least']} failed or successful traces.",
        f"Isolated: a failed trace with up to {rules['isolated']} modes; cascading: with "
        f"{rules['cascading']} or more.",
    ]
    if report["stated"] is not None:
        said.append(
            f"Study: the word of the {report['stated']['source']}; it decides nothing here."
        )
    items = "".join(f"<li>{shown(one)}</li>" for one in said)
    return (
        f'<section id="method"><h2>How it was counted</h2><ul class="method">{items}</ul></section>'
    )
