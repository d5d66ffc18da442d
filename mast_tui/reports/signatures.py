"""Failure signatures as a report: the only place where their figures become sentences.

Tables are made by ``_Group`` for one group of traces, or for all of them; a page takes them group
by group, the screen takes one at a time. Each begins with how often modes occur, whatever the
outcome; failed and successful traces are compared where enough outcomes are known. In ``Behind``
modes are codes, as in the JSON document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from mast_tui.counts import counted
from mast_tui.figures.intervals import LEAST_OF_DIFFERENCE
from mast_tui.figures.signatures.model import ALL, OVERALL
from mast_tui.figures.signatures.report import (
    LEAST_OUTCOMES,
    LEAST_TRACES,
    compares_outcomes,
    group_of,
    large_groups,
    whose_labels,
)
from mast_tui.reports import model
from mast_tui.reports.charts import (
    comparison_charts,
    group_charts,
    group_parts,
    group_words,
    source_words,
)
from mast_tui.reports.model import (
    Behind,
    Cell,
    Column,
    Estimate,
    Kind,
    Note,
    Row,
    Section,
    Table,
    columns,
)
from mast_tui.reports.sentences import withheld_notes

if TYPE_CHECKING:
    from mast_tui.figures.intervals import RateJson
    from mast_tui.figures.signatures.comparison import PairedCountsJson
    from mast_tui.figures.signatures.groups import CategoryJson, GroupJson, LevelJson, TogetherJson
    from mast_tui.figures.signatures.modes import DifferenceJson, ModeJson
    from mast_tui.figures.signatures.onset import PlacesJson, TransitionJson
    from mast_tui.figures.signatures.report import Report
    from mast_tui.reports.examples import Example, Extras
    from mast_tui.taxonomy.model import Taxonomy

MOST_PAIRS: Final = 6
MOST_STEPS: Final = 8
MOST_HELPED: Final = 4
"""Of so many modes what helps stands open on a page; that of the others is folded."""

MOST_QUOTED: Final = 300
"""Code points of a span's own text."""

HOW_TO_GIVE_OUTCOMES: Final = (
    "Outcomes come with the traces' files, from an outcomes.csv beside them (columns trace, "
    "outcome and score), or with labels: mast-tui import FILE --format csv-wide (columns outcome "
    "and score). Where traces have a score, --failed-below says below which they have failed."
)

_Side = Literal["failed", "succeeded"]
_SIDES: Final[tuple[_Side, ...]] = ("failed", "succeeded")

_BECAUSE: Final[Mapping[str, str]] = {
    "more_in_failed": "more often in failed traces",
    "seen_in_successes": "seen in successful traces as well",
    "too_few_traces": "too few traces",
    "unresolved": "disagreements are unresolved",
    "not_told_apart": "not told apart",
}

_SIDE_WORDS: Final = {
    "failed": "failed trace",
    "succeeded": "successful trace",
    "first": "trace of the first group",
    "second": "trace of the second group",
}

_FATAL_BY: Final = {"labels": "as labels say", "class": "by the class of its mode"}

_MISSING: Final[Mapping[str, str]] = {
    "not_judged": "Nobody was judged on it with a known outcome, so there is nothing to compare.",
    **{
        f"no_{side}": f"No {whose} was judged on it, so there is nothing to compare."
        for side, whose in _SIDE_WORDS.items()
    },
    "no_strata": "No model has failed and successful traces that were judged on it.",
    "never_seen": "It shows in no trace, so there is no ratio.",
    **{
        f"none_in_{side}": f"It shows in no {whose}, so "
        + (
            "there is no ratio."
            if side in ("succeeded", "second")
            else "its ratio has no interval."
        )
        for side, whose in _SIDE_WORDS.items()
    },
    "few_traces": "A side has fewer than 5 traces, so the difference has no interval.",
    "rare_mode": "Fewer than 5 traces of both sides together show it, or do not, so the difference "
    "has no interval.",
    "unresolved": "Disagreements are unresolved, so the difference has no interval.",
    "no_unlabelled": "People have labelled all of the judge's traces here.",
    "no_positives": "The gold calls it present nowhere that the judge has judged.",
    "no_negatives": "The gold calls it absent nowhere that the judge has judged.",
    "no_better_than_chance": "Beside the gold the judge's word on it is no better than chance.",
}

_MEASURED: Final = (
    "The study behind MAST changed ChatDev and ran it again on its ProgramDev tasks, with the same "
    "model. Clearer roles, of which the higher one has the last word, raised task success by 9.4 "
    "points; a step that verifies the objective of the task raised it by 15.6 points, from 25.0 to "
    "40.6 %.",
    "Most runs still failed. The study takes from it that single fixes of prompts or structure are "
    "no cure, and that reliability asks for structural changes such as verification.",
)
_STUDY: Final = (
    (
        "Cemri et al., Why Do Multi-Agent LLM Systems Fail? (2025)",
        "https://arxiv.org/abs/2503.13657",
    ),
)

_MODE: Final = columns("""
    code | code | text | | 100
    name | mode | text | | 100
""")
_DIFFERENCE: Final = """
    difference_pp | points | points | {first} minus {second}, points | 90
    risk_ratio | ratio | number | risk ratio | 45
"""
_P_ADJUSTED: Final = "p_adjusted | p adj | p_value | p, adjusted over the modes | 60"
_PUBLISHED: Final = "stated | published | text | published class | 55"

_TABLES: Final[Mapping[str, tuple[str, str]]] = {
    "mode_shares": (
        "How often each mode occurs",
        """
        all | of all | share | share of all labelled traces | 95
        count | traces | count | traces that show it | 92
        n | of | count | traces judged on it | 91
        unsure | unsure | count | traces on which it is unsure | 40
        open | open | count | traces not judged on it | 41
        unresolved | unresolved | count | open ones on which annotators differ | 42
        more_labels | for ± 3 | count | more traces to label for ± 3 points | 30
        """,
    ),
    "modes": (
        "Modes in failed and successful traces",
        f"""
        failed | failed | share | share of failed traces | 95
        succeeded | succeeded | share | share of successful traces | 95
        {_DIFFERENCE.strip().format(first="failed", second="successful")}
        {_P_ADJUSTED}
        severity | class | text | | 92
        {_PUBLISHED}
        """,
    ),
    "counts": (
        "Counts and tests of the modes",
        """
        failed | failed | count | failed traces that show it
        failed_n | of | count | failed traces judged on it
        succeeded | succeeded | count | successful traces that show it
        succeeded_n | of | count | successful traces judged on it
        unsure | unsure | count | traces on which it is unsure
        open | open | count | traces not judged on it
        unresolved | unresolved | count | open ones on which annotators differ
        with | success with it | share | share of success with the mode
        without | without it | share | share of success without the mode
        p_value | p | p_value | p of Fisher's exact test
        severity_because | class because | text | why the class is what it is
        """,
    ),
    "stratified": (
        "Difference failed - successful, within {} models",
        f"""
        strata | models | count | models with both outcomes | 30
        n | n | count | traces of these models | 40
        {_DIFFERENCE.strip().format(first="failed", second="successful")}
        """,
    ),
    "corrected": (
        "Prevalence corrected for the judge's errors",
        """
        n_unlabelled | traces | count | traces that only the judge has judged
        apparent | said | share | share as the judge says | 80
        corrected | corrected | share | share, corrected for its errors
        """,
    ),
    "category_shares": (
        "Shares of the categories",
        """
        name | category | text | | 100
        failed_share | share, failed | share | share of what shows in failed traces
        failed_traces | traces, failed | share | failed traces with any of its modes | 40
        succeeded_share | share, successful | share | share of what shows in successful traces | 30
        succeeded_traces | traces, successful | share | successful traces with any of its modes | 20
        """,
    ),
    "first_failure": (
        "Where the first failure stands",
        """
        part | part of the run | text | | 100
        traces | traces | count | | 90
        share | share | share | share of the traces | 80
        """,
    ),
    "first_mode": (
        "Which mode comes first",
        """
        count | traces | count | traces in which it comes first | 90
        share | share | share | share of the traces with a place | 80
        """,
    ),
    "transitions": (
        "What sets on next",
        """
        step | step | text | | 100
        name | next mode | text | | 90
        count | traces | count | | 95
        """,
    ),
    "mode_onsets": (
        "Where in the run each mode sets on",
        """
        median | median | share | part of the run at onset, median | 90
        low | from | share | lower quartile | 70
        high | to | share | upper quartile | 70
        n | n | count | traces | 80
        """,
    ),
    "after_fatal": (
        "How long runs went on after the first fatal failure",
        """
        by | fatal | text | what makes it fatal | 100
        median | spans | count | spans that followed, median | 90
        low | from | count | lower quartile | 60
        high | to | count | upper quartile | 60
        share | of the run | share | share of the run, median | 70
        n | n | count | traces | 80
        """,
    ),
    "order_counts": (
        "Of two modes, which sets on first",
        """
        pair | modes | text | | 100
        before | first one first | count | | 90
        after | second one first | count | | 90
        together | at the same span | count | | 60
        n | n | count | traces with both | 80
        """,
    ),
    "chain_counts": (
        "Chains of failure",
        """
        chain | modes by onset | text | | 100
        count | traces | count | | 90
        """,
    ),
    "bill": (
        "What failed runs used up once they were lost",
        """
        by | fatal | text | what makes it fatal | 100
        what | used up | text | | 99
        total | all | count | all that failed traces used up | 60
        before | before | count | before the first fatal failure | 70
        after | after | count | from the first fatal failure on | 90
        share | share after | share | share from then on | 95
        n | n | count | failed traces of which it is known | 80
        """,
    ),
    "pairs": (
        "Pairs of modes most often together",
        """
        pair | modes | text | | 100
        both | both | count | {which} with both | 95
        n | of | count | traces judged on both | 80
        jaccard | of either | share | share of the traces with either | 70
        phi | φ | number | correlation φ | 60
        """,
    ),
    "helps": (
        "What helps",
        """
        decided | decided | count | failed traces that it decided | 90
        showing | shows in | count | {which} that show it | 80
        """,
    ),
}
"""The title and the columns of each table of a group; where rows are modes, these come first."""

_ALL_SHARES: Final = """
    name | category | text | | 100
    share | share | share | share of all that shows
    traces | traces | share | traces with any of its modes | 40
"""
"""The columns of categories where few outcomes are known."""

_COMPARED: Final = f"""
    first | {{first}} | share | share of the failed traces of {{first}} | 95
    second | {{second}} | share | share of the failed traces of {{second}} | 95
    {_DIFFERENCE.strip()}
    {_P_ADJUSTED}
"""
_OF_TASKS: Final = f"""
    first | {{first}} | share | share of the tasks, {{first}} | 95
    second | {{second}} | share | share of the tasks, {{second}} | 95
    only_first | only first | count | tasks of {{first}} alone | 30
    only_second | only second | count | tasks of {{second}} alone | 30
    {_DIFFERENCE.strip().splitlines()[0]}
    p_value | p | p_value | p of McNemar's exact test | 40
    {_P_ADJUSTED}
"""
_ALONG: Final = f"""
    first | {{first}} | share | share, {{first}} | 80
    last | {{last}} | share | share, {{last}} | 80
    slope_pp | {{slope}} | points | {{slope_words}}
    {_P_ADJUSTED}
"""


def signatures_report(
    document: Report, *, extras: Extras | None = None, groups_asked: bool = False
) -> model.Report:
    """Put failure signatures into words: all traces, the groups, the comparison, the rules.

    Args:
        document: The figures as ``report --json`` prints them.
        extras: The taxonomy with its strategies, the traces that modes decided, and examples.
        groups_asked: Whether groups were asked for by name of the field: then all of them are
            shown, and of all traces together only how often modes occur. Otherwise all traces come
            first with everything, and groups of ``LEAST_TRACES`` or more follow.

    Returns:
        The report, with charts.
    """
    parts = group_parts(document)
    by_groups = groups_asked and document["by"] != ALL
    group_names = list(document["groups"]) if by_groups else large_groups(document)
    sections = []
    for name in (OVERALL, *group_names):
        group = _Group(document, name, f"-{parts[name]}", extras=extras)
        brief = name == OVERALL and by_groups
        section = Section(
            f"group-{parts[name]}",
            group_words(document, name),
            tuple(_prevalence_of(group) if brief else _page_of(group)),
            tuple(_group_facts(group.group)),
            () if brief else tuple(group.in_short()),
        )
        sections.append(section)
    if document["comparison"] is not None:
        sections.append(_comparison(document))
    if document["trend"] is not None:
        sections.append(_trend(document))
    method = (_method(document), *_measured(extras))
    sections.append(Section("method", "How it was counted", method))
    by = document["by"]
    notes = [*_cannot_say(document["cannot_say"]), *_small_groups(document, len(group_names))]
    return model.Report(
        id="signatures",
        title="Failure signatures" + (f" by {by.replace(',', ' and ')}" if by_groups else ""),
        about=_about(document, by if by_groups else ALL),
        sections=tuple(sections),
        notes=tuple(notes),
        document=document,
    )


def _small_groups(document: Report, shown_count: int) -> Iterator[Note]:
    """Tell how many groups are not shown by themselves."""
    groups = len(document["groups"])
    left = 0 if document["by"] == ALL or groups < 2 else groups - shown_count
    if left:
        grouping = document["by"]
        yield Note(
            f"Not shown by itself: {counted(left, grouping)} of fewer than {LEAST_TRACES} traces; "
            f"--by {grouping} shows each.",
            "small_groups",
        )


def what_helps(taxonomy: Taxonomy) -> dict[str, Any]:
    """Tell what helps against modes, as ``report --json`` has it.

    Args:
        taxonomy: Names the strategies.

    Returns:
        ``strategies`` by code; ``measured``, what the literature measured, with its ``source``,
        null for a taxonomy that is not MAST.
    """
    measured = None
    if taxonomy.id == "mast":
        (words, address), *_ = _STUDY
        measured = {"text": list(_MEASURED), "source": {"title": words, "url": address}}
    return {
        "strategies": {mode.code: list(mode.fixes) for mode in taxonomy.modes if mode.fixes},
        "measured": measured,
    }


def group_report(
    document: Report, group: str, *, every: bool = False, extras: Extras | None = None
) -> model.Report:
    """Put one group into words for a screen: its modes, their onset, what shows together.

    Args:
        document: The figures as ``report --json`` prints them.
        group: The name of one of its groups, or ``OVERALL``.
        every: Count onset and what shows together over all traces, not over failed ones alone.
        extras: What ``signatures_report`` takes; with a taxonomy there is a section on what helps.

    Returns:
        The report, without charts. Behind its rows and cells stand traces of the group.

    Raises:
        KeyError: There is no such group.
    """
    found = _Group(document, group, "", every=every, extras=extras)
    reading = tuple(Note(text, "method") for text in _reading(document))
    no_places = () if found.places is not None else (_no_places(document),)
    sections = [
        Section(
            "modes",
            "modes",
            _tables(found.prevalence(), found.modes(), *found.categories(), *found.of_judges()),
        ),
        Section("onset", "onset", _tables(*found.onset_tables()), notes=no_places),
        Section("together", "together", _tables(found.matrix(), found.pairs())),
    ]
    helps = found.helps_table()
    if helps is not None:
        sections.append(Section("helps", "what helps", (helps, *_measured(extras))))
    notes = [*_cannot_say(found.group["cannot_say"]), *_cannot_say(document["cannot_say"])]
    if not found.compares:
        notes.append(Note(HOW_TO_GIVE_OUTCOMES, "no_outcomes"))
    return model.Report(
        id="signatures",
        title=group_words(document, group),
        about=_about(document, document["by"]),
        sections=tuple(sections),
        notes=(*notes, *reading),
        facts=tuple(_group_facts(found.group)),
        document=document,
    )


def _tables(*tables: Table | None) -> tuple[Table, ...]:
    return tuple(one for one in tables if one is not None)


def _page_of(found: _Group) -> Iterator[model.Part]:
    """What a page shows of a group, charts beside the tables that they draw."""
    drawn = group_charts(found.document, found.name)

    def charts(*kinds: str) -> Iterator[model.Chart]:
        return (drawn[kind] for kind in kinds if kind in drawn)

    yield from _prevalence_of(found)
    yield from charts("prevalence", "difference")
    yield from _tables(found.modes(), found.counts(), *found.of_judges())
    yield from charts("distribution", "shapes", "categories")
    yield from _tables(*found.categories())
    yield from charts("onset", "chains")
    yield from _tables(*found.onset_tables())
    yield from charts("order", "together")
    yield from _tables(found.pairs())
    yield from found.help_texts()
    yield from found.example_texts()


def _prevalence_of(group: _Group) -> Iterator[model.Part]:
    """Yield the chart and the table of how often modes occur in a group."""
    drawn = group_charts(group.document, group.name)
    if "occurrence" in drawn:
        yield drawn["occurrence"]
    yield from _tables(group.prevalence())


def _about(document: Report, grouping: str) -> str:
    traces = document["traces"]
    below = document["rules"]["failed_below"]
    outcome = "" if below is None else f" A trace has failed where its score is below {below:g}."
    return (
        f"{document['taxonomy']}, labels: {whose_labels(document)}, by {grouping}; "
        f"{counted(traces['labelled'], 'trace')}: {traces['failed']:,} failed, "
        f"{traces['succeeded']:,} succeeded, {traces['unknown']:,} unknown.{outcome}"
    )


def _group_facts(group: GroupJson) -> Iterator[tuple[str, str, str]]:
    """Yield how many traces there are, how they ended, and how failed ones fail."""
    yield "traces", f"{group['traces']:,}", ""
    yield "failed", f"{group['failed']:,}", ""
    yield "successful", f"{group['succeeded']:,}", ""
    if group["unknown"]:
        yield "outcome unknown", f"{group['unknown']:,}", ""
    score = group["mean_score"]
    if score["value"] is not None:
        yield "mean score", f"{score['value']:.2f}", f"n {score['n']:,}"
    if not compares_outcomes(group):
        return
    mean = group["modes_per_failed_trace"]
    if mean["value"] is not None:
        ends = "" if mean["ci"] is None else f"{mean['ci'][0]:.1f} to {mean['ci'][1]:.1f}"
        if "bounds" in mean:
            low, high = mean["bounds"]
            ends = f"bounds {low:.1f} to {high:.1f}, {mean['unresolved']:,} unresolved"
        yield "modes per failed trace", f"{mean['value']:.1f}", ends
    for shape in ("isolated", "cascading"):
        if group["shapes"][shape]:
            share = group["shapes"][shape] / group["failed"]
            yield shape, f"{group['shapes'][shape]:,}", f"{share:.0%} of failed"


def _cannot_say(said: Iterable[str]) -> Iterator[Note]:
    return (Note(one, "cannot_say") for one in said)


def _no_places(document: Report) -> Note:
    said = "No label names spans that are known here, so nothing can be said of places."
    if document["traces"]["labels_not_found"]:
        said += (
            " The traces of the labels were never read here: open the folder that holds them once, "
            "with mast-tui FOLDER, so that the workspace knows the order of their spans."
        )
    else:
        said += " Labels on spans are given with the cursor on the span, not with t."
    return Note(said, "no_places")


def _notes(*told: tuple[object, str, str]) -> list[Note]:
    """The notes, as (whether there is anything to tell, sentence, reason), that tell something."""
    return [Note(text, reason) for something, text, reason in told if something]


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _interval(ends: Iterable[float] | None, scale: float = 1) -> tuple[float, float] | None:
    if ends is None:
        return None
    low, high = ends
    return low / scale, high / scale


def _rate(rate: RateJson, of: int) -> Estimate:
    """A share; what it is of is told beside it where that are not all ``of`` traces."""
    n = None if rate["n"] in (0, of) else rate["n"]
    return Estimate(
        rate["rate"],
        _interval(rate["ci"]),
        rate.get("undefined"),
        rate.get("ci_withheld"),
        n,
        _interval(rate.get("bounds")),
    )


def _difference_cells(found: Mapping[str, Any], *, ratio: bool = True) -> dict[str, Cell]:
    """The difference in points and the ratio, of a mode or of one within each model.

    Without ``ratio`` there is an empty cell where there is none, as a note tells why.
    """
    why = found.get("undefined", {})
    # A stratified mode has one reason for whatever is missing.
    reasons = why if isinstance(why, dict) else {"difference_pp": why, "risk_ratio": why}
    points = found["difference_pp"]
    cells: dict[str, Cell] = {
        "difference_pp": Estimate(
            None if points is None else points / 100,
            _interval(found["difference_ci_pp"], 100),
            reasons.get("difference_pp") if points is None else None,
            found.get("ci_withheld") or reasons.get("difference_ci_pp"),
            bounds=_interval(found.get("difference_bounds_pp"), 100),
        ),
    }
    if ratio or found.get("risk_ratio") is not None:
        cells["risk_ratio"] = Estimate(
            found["risk_ratio"],
            _interval(found["risk_ratio_ci"]),
            reasons.get("risk_ratio") if found["risk_ratio"] is None else None,
            found.get("ci_withheld") or reasons.get("risk_ratio_ci"),
        )
    return cells


def _withheld(modes: Mapping[str, Mapping[str, Any]]) -> Iterator[Note]:
    """Say why shares and differences of modes have no interval."""
    differences = [mode.get("undefined", {}) for mode in modes.values()]
    stated = [
        {"ci_withheld": reason, "ci_needs": LEAST_OF_DIFFERENCE}
        for reason in ("few_traces", "rare_mode")
        if any(isinstance(one, dict) and reason in one.values() for one in differences)
    ]
    yield from withheld_notes(modes, *stated)


def _no_ratio(modes: Mapping[str, DifferenceJson], sides: Mapping[str, str]) -> Iterator[Note]:
    """Which modes have no ratio; ``sides`` name in words where they do not show, by reason."""
    for reason, where in sides.items():
        codes = [
            code
            for code, mode in modes.items()
            if mode.get("undefined", {}).get("risk_ratio") == reason
        ]
        if codes:
            yield Note(f"No ratio, as {where} shows the mode: {', '.join(codes)}.", reason)


def _p_cell(found: DifferenceJson, name: Literal["p_value", "p_adjusted"]) -> Estimate:
    return Estimate(found[name], undefined=found.get("undefined", {}).get(name))


def _missing(found: Mapping[str, Any]) -> Iterator[str]:
    """Why a figure of a mode is missing, each reason once."""
    why = found.get("undefined", {})
    for reason in dict.fromkeys(why.values() if isinstance(why, dict) else [why]):
        yield _MISSING.get(reason, reason)


def _is_undefined(cell: Cell) -> bool:
    return isinstance(cell, Estimate) and cell.value is None


def _with_values(table: Table) -> Table | None:
    """Leave out the columns in which every figure is undefined.

    Returns:
        The table; None where no figure has a value, or there are no rows.
    """
    cells = [(key, cell) for row in table.rows for key, cell in row.cells.items()]
    undefined = {key for key, cell in cells if _is_undefined(cell)}
    undefined -= {key for key, cell in cells if not _is_undefined(cell)}
    figures = {key for key, cell in cells if isinstance(cell, Estimate | float)}
    if not table.rows or (figures and figures <= undefined):
        return None
    visible = [column for column in table.columns if column.key not in undefined]
    keys = {column.key for column in visible}
    groups = tuple(
        tuple(
            replace(
                row,
                cells={key: cell for key, cell in row.cells.items() if key in keys},
                behind_cells={key: one for key, one in row.behind_cells.items() if key in keys},
            )
            for row in rows
        )
        for rows in table.groups
    )
    return replace(table, columns=tuple(visible), groups=groups)


@dataclass(frozen=True)
class _Group:
    """The tables of one group; ``suffix`` makes their ids unlike those of other groups."""

    document: Report
    name: str
    suffix: str
    every: bool | None = None
    extras: Extras | None = None

    @property
    def group(self) -> GroupJson:
        return group_of(self.document, self.name)

    @property
    def compares(self) -> bool:
        """Whether enough outcomes are known to compare failed with successful traces."""
        return compares_outcomes(self.group)

    @property
    def places(self) -> PlacesJson | None:
        """The places in the traces that have the ``outcome``."""
        both = self.group["places"]
        return None if both is None else both["all" if self.outcome is None else "failed"]

    @property
    def outcome(self) -> str | None:
        """The outcome of the traces that onset and what shows together are counted over.

        None, which is all traces, where that is asked for or few outcomes are known, and on a page
        where no failed trace has a place.
        """
        if not self.compares or self.every:
            return None
        both = self.group["places"]
        none_failed = both is not None and not both["failed"]["traces"]
        return None if self.every is None and none_failed else "failed"

    @property
    def which(self) -> str:
        return "traces" if self.outcome is None else "failed traces"

    def table(
        self,
        id: str,
        rows: Iterable[Row],
        *notes: Note,
        title: str = "",
        shown: Iterable[Column] = (),
        n: str = "",
        folded: bool = False,
    ) -> Table | None:
        """Make a table of this group; ``title`` and ``shown`` are by ``_TABLES``.

        None without rows, and where no figure has a value.
        """
        rows = tuple(rows)
        if not rows:
            return None
        told, lines = _TABLES.get(id, (title, ""))
        shown = tuple(shown) or columns(lines, which=self.which)
        if "code" in rows[0].cells:
            shown = (*_MODE, *shown)
        caption = f"{group_words(self.document, self.name)}: {n or self.sides}."
        if id == "mode_shares":
            caption += f" {source_words(self.document)}"
        ident = f"{id}{self.suffix}"
        return _with_values(Table(ident, title or told, shown, (rows,), caption, notes, folded))

    def mode_cells(self, code: str) -> dict[str, Cell]:
        """What names the row of a mode."""
        return {"code": code, "name": self.mode_name(code)}

    @property
    def sides(self) -> str:
        group = self.group
        failed = counted(group["failed"], "failed trace")
        return f"{failed} and {counted(group['succeeded'], 'successful trace')}"

    def behind(self, title: str, *codes: str, outcome: str | None = "", **more: Any) -> Behind:
        """The traces of this group with all of these modes."""
        outcome = self.outcome if outcome == "" else outcome
        which = {"group": self.name or None, "outcome": outcome, **more}
        return Behind(
            title, codes, tuple((key, value) for key, value in which.items() if value is not None)
        )

    def mode_name(self, code: str) -> str:
        return self.group["modes"][code]["name"]

    # Modes in all traces, in failed and in successful ones.

    def prevalence(self) -> Table | None:
        """Make the table of how often each mode occurs in all traces, whatever their outcome."""
        rows = [
            Row(
                code,
                {
                    **self.mode_cells(code),
                    "all": _rate(mode["all"], mode["n"])
                    if mode["n"]
                    else Estimate(None, undefined="not_judged"),
                    "count": mode["count"],
                    "n": mode["n"],
                    "unsure": mode["unsure"] or None,
                    "open": mode["open"] or None,
                    "unresolved": mode["unresolved"] or None,
                    "more_labels": mode["more_labels"],
                },
                detail=tuple(_corrected_words(mode)),
                behind=self.behind(f"{code} in all traces", code, outcome=None)
                if mode["count"]
                else None,
            )
            for code, mode in self.group["modes"].items()
        ]
        known_outcomes = self.group["failed"] + self.group["succeeded"]
        notes = _notes(
            (
                not self.compares and self.group["traces"],
                f"Failed and successful traces are compared from {LEAST_OUTCOMES} known outcomes "
                f"on; {known_outcomes:,} of {counted(self.group['traces'], 'trace')} "
                f"{'has' if known_outcomes == 1 else 'have'} one.",
                "few_outcomes",
            ),
            (
                any(mode["more_labels"] for mode in self.group["modes"].values()),
                "for ± 3: about so many more traces bring the interval to ± 3 points.",
                "more_labels",
            ),
        )
        n = counted(self.group["traces"], "labelled trace")
        shares = {code: mode["all"] for code, mode in self.group["modes"].items()}
        return self.table("mode_shares", rows, *notes, *withheld_notes(shares), n=n)

    def modes(self) -> Table | None:
        """Make the table of how often each mode shows in failed and in successful traces."""
        if not self.compares:
            return None
        group = self.group
        rows = [self._mode_row(code, mode) for code, mode in group["modes"].items()]
        withheld = tuple(_withheld(group["modes"]))
        sides = {"none_in_succeeded": "no successful trace", "never_seen": "no trace"}
        ratios = _no_ratio(group["modes"], sides)
        return self.table("modes", rows, *self._fewer(), *ratios, *withheld)

    def counts(self) -> Table | None:
        """Make the table of what the table of modes has no room for: counts, tests, reasons."""
        if not self.compares:
            return None
        rows = [
            Row(
                code,
                {
                    **self.mode_cells(code),
                    "failed": mode["failed"]["count"],
                    "failed_n": mode["failed"]["n"],
                    "succeeded": mode["succeeded"]["count"],
                    "succeeded_n": mode["succeeded"]["n"],
                    "unsure": mode["unsure"],
                    "open": mode["open"],
                    "unresolved": mode["unresolved"],
                    "with": _rate(given["present"], 0),
                    "without": _rate(given["absent"], 0),
                    "p_value": _p_cell(mode, "p_value"),
                    "severity_because": _BECAUSE[mode["severity_because"]],
                },
            )
            for code, mode in self.group["modes"].items()
            for given in (mode["success_given"],)
        ]
        note = Note(
            "Success with and without a mode is no effect of it: outcomes came as they did.",
            "no_effect",
        )
        return self.table("counts", rows, note, folded=True)

    def _mode_row(self, code: str, mode: ModeJson) -> Row:
        cells: dict[str, Cell] = {
            **self.mode_cells(code),
            "failed": _rate(mode["failed"], self.group["failed"]),
            "succeeded": _rate(mode["succeeded"], self.group["succeeded"]),
            **_difference_cells(mode, ratio=False),
            "p_adjusted": _p_cell(mode, "p_adjusted"),
            "severity": mode["severity"],
            "stated": mode["stated"],
        }
        leads: dict[str, Behind] = {}
        if mode["failed"]["count"]:
            leads["failed"] = self.behind(f"{code} in failed traces", code, outcome="failed")
        if mode["succeeded"]["count"]:
            title = f"{code} in successful traces"
            leads["succeeded"] = self.behind(title, code, outcome="succeeded")
        whole = self.behind(f"{code} in all traces", code, outcome=None)
        lead = whole if mode["count"] else None
        return Row(code, cells, "", tuple(self._mode_words(mode)), lead, leads)

    def _mode_words(self, mode: ModeJson) -> Iterator[str]:
        yield f"Failed: {_rate_words(mode['failed'])}."
        yield f"Succeeded: {_rate_words(mode['succeeded'])}."
        yield from _missing(mode)
        rules = self.document["rules"]
        because = {
            "more_in_failed": "it shows more often in failed traces, adjusted p < "
            f"{rules['alpha']:g}",
            "seen_in_successes": (
                f"{rules['least']} successful traces or more show it, and the difference lies at "
                f"{rules['margin_pp']:g} points or less with its whole interval"
            ),
            "too_few_traces": (
                f"fewer than {rules['least']} failed or successful traces judged on it"
            ),
            "unresolved": "over 2 % of the verdicts on it are unresolved disagreements",
            "not_told_apart": (
                "these traces show neither that it decides runs nor that it does not"
            ),
        }[mode["severity_because"]]
        yield f"Class: {mode['severity']}; {because}."
        out = [f"{counted(mode['unsure'], 'trace')} unsure"] if mode["unsure"] else []
        out += [f"{counted(mode['open'], 'trace')} not judged"] if mode["open"] else []
        out += [f"{mode['unresolved']:,} of them unresolved"] if mode["unresolved"] else []
        if out:
            yield f"Left out: {', '.join(out)}."

    def _fewer(self) -> Iterator[Note]:
        """Which modes were not judged on all failed or successful traces."""
        group = self.group
        parts = [
            f"{code} {mode['failed']['n']:,}/{mode['succeeded']['n']:,}"
            for code, mode in group["modes"].items()
            if mode["n"]
            and (mode["failed"]["n"], mode["succeeded"]["n"])
            != (group["failed"], group["succeeded"])
        ]
        if parts:
            yield Note(
                f"Judged on fewer traces (failed/successful): {', '.join(parts)}.",
                "judged_on_fewer",
            )

    def of_judges(self) -> Iterator[Table | None]:
        """The modes within each model, and corrected for a judge's errors, where there are such."""
        yield self._stratified()
        yield self._corrected()

    def _stratified(self) -> Table | None:
        found = self.group["stratified"]
        if found is None or not self.compares:
            return None
        notes = []
        if found["reversed"]:
            notes.append(
                Note(
                    "The other way round over all models at once than within each, so that the "
                    "table of all misleads (Simpson's paradox): "
                    f"{', '.join(found['reversed'])}.",
                    "reversed",
                    warning=True,
                )
            )
        left_out = f"{counted(found['left_out'], 'trace')} of unknown model left out."
        rows = [
            Row(
                code,
                {
                    **self.mode_cells(code),
                    "strata": one["strata"],
                    "n": one["n"],
                    **_difference_cells(one),
                },
                "†" if code in found["reversed"] else "",
                tuple(_missing(one)),
                self.behind(f"{code} in all traces", code, outcome=None),
            )
            for code, one in found["modes"].items()
        ]
        sign = "†: the difference over all models has the other sign."
        notes += _notes(
            (found["left_out"], left_out, "left_out"),
            (
                True,
                "After Mantel and Haenszel, with models as strata; intervals of differences after "
                "Miettinen and Nurminen.",
                "mantel_haenszel",
            ),
            (found["reversed"], sign, "mark"),
        )
        notes += withheld_notes(found["modes"])
        title = _TABLES["stratified"][0].format(len(found["strata"]))
        return self.table("stratified", rows, *notes, title=title)

    def _corrected(self) -> Table | None:
        rows = []
        for code, mode in self.group["modes"].items():
            found: Any = mode["corrected"]
            if found is not None:
                cells: dict[str, Cell] = {
                    **self.mode_cells(code),
                    "n_unlabelled": found["n_unlabelled"],
                    "apparent": Estimate.of(found["apparent"]),
                    "corrected": Estimate.of(found["corrected"]),
                }
                words = tuple(_corrected_words(mode))
                rows.append(Row(code, cells, detail=words))
        note = Note(
            "On the traces that nobody but the judge has judged: how often it says that the mode "
            "shows, and how often it really shows if the judge errs there as it does on the gold "
            "(Rogan and Gladen).",
            "corrected",
        )
        return self.table("corrected", rows, note)

    def categories(self) -> Iterator[Table | None]:
        """What part of all that shows belongs to which category, and traces with any of it."""
        yield self._shares("category_shares", self.group["categories"])
        for number, (level, one) in enumerate(self.lower, start=2):
            yield self._shares(f"level_{number}", one["categories"], level)

    @property
    def lower(self) -> Sequence[tuple[str, LevelJson]]:
        """The levels of categories under the topmost."""
        return tuple(self.group.get("levels", {}).items())[1:]

    def _shares(
        self, ident: str, categories: Mapping[str, CategoryJson], level: str = ""
    ) -> Table | None:
        rows = []
        for id, one in categories.items():
            cells: dict[str, Cell] = {
                "name": one["name"],
                "share": one["share"],
                "traces": _rate(one["traces"], self.group["traces"]),
            }
            for side in _SIDES:
                found = one[side]
                share = found["share"]
                cells[f"{side}_share"] = Estimate(share, undefined=None if share else "no_traces")
                cells[f"{side}_traces"] = _rate(found["traces"], self.group[side])
            if one["count"]:
                rows.append(Row(id, cells))
        title, lines = _TABLES["category_shares"]
        if not self.compares:
            lines = _ALL_SHARES
        level_columns = list(columns(lines))
        if level:
            level_columns = [
                replace(one, title=level) if one.key == "name" else one for one in level_columns
            ]
            title = f"{title}, at the level of {level}"
        return self.table(ident, rows, title=title, shown=level_columns, folded=self.every is None)

    # Places.

    def onset_tables(self) -> Iterator[Table | None]:
        """Where failures stand along the run, which mode comes first, and what follows."""
        places = self.places
        if places is None or not places["traces"]:
            return
        yield self._tenths(places)
        yield self._first_modes(places)
        yield self._steps(places)
        yield self._onsets(places)
        yield self._after_fatal(places)
        yield self.bill()
        yield self._order(places)
        yield self._chains(places)

    def _of_places(self, places: PlacesJson) -> str:
        return (
            f"over {counted(places['traces'], 'trace')} with a place, of "
            f"{counted(places['of'], self.which.removesuffix('s'))} with a failure"
        )

    def in_short(self) -> Iterator[Note]:
        """What stands under a group, among it what its folded tables tell in full."""
        levels = [self.group["categories"], *(one["categories"] for _, one in self.lower)]
        for categories in levels:
            shares = [
                f"{one['name']} {_percent(share)}"
                for one in categories.values()
                for share in (one["failed"]["share"] if self.compares else one["share"],)
                if share is not None
            ]
            if shares:
                which = "failed traces" if self.compares else "all traces"
                yield Note(f"Of what shows in {which}: {', '.join(shares)}.", "categories")
        yield from self.first_failure()
        yield from _cannot_say(self.group["cannot_say"])

    def first_failure(self) -> Iterator[Note]:
        """Where the first failure stands, in a sentence."""
        first = None if self.places is None else self.places["first_failure"]
        if first and first["median"] is not None and first["quartiles"] is not None:
            low, high = (_percent(end) for end in first["quartiles"])
            yield Note(
                f"The first failure stands at {_percent(first['median'])} of the run in the "
                f"median (quartiles {low} to {high}; {counted(first['n'], 'trace')}).",
                "first_failure",
            )

    def _tenths(self, places: PlacesJson) -> Table | None:
        first = places["first_failure"]
        uncounted = places["uncounted"]
        said = f"{counted(uncounted, 'trace')} without a position, as nobody counted the spans."
        notes = [*self.first_failure(), *_notes((uncounted, said, "uncounted"))]
        rows = []
        for tenth, count in enumerate(first["bins"] if first["n"] else ()):
            what = f"{10 * tenth}–{10 * tenth + 10} %"
            title = f"first failure at {what} of the run"
            rows.append(
                Row(
                    f"tenth {tenth}",
                    {"part": what, "traces": count, "share": count / first["n"]},
                    behind=self.behind(title, tenth=tenth) if count else None,
                )
            )
        n = self._of_places(places)
        # On a page a chart shows it, and a sentence stands under the group.
        folded = self.every is None
        return self.table("first_failure", rows, *notes, n=n, folded=folded)

    def _first_modes(self, places: PlacesJson) -> Table | None:
        ordered = sorted(places["first_mode"].items(), key=lambda item: -item[1]["count"])
        said = (
            f"In {counted(places['tied'], 'trace')} several modes set on at the first span; each "
            "of them counts."
        )
        notes = _notes((places["tied"], said, "tied"))
        rows = [
            Row(
                f"first {code}",
                {
                    **self.mode_cells(code),
                    "count": rate["count"],
                    "share": _rate(rate, places["traces"]),
                },
                behind=self.behind(f"{code} first, {self.which}", code, first=code),
            )
            for code, rate in ordered
        ]
        return self.table("first_mode", rows, *notes, n=self._of_places(places))

    def _steps(self, places: PlacesJson) -> Table | None:
        steps = places["transitions"]
        rows = [
            Row(
                f"step {' '.join(step['modes'])}",
                {
                    "step": " → ".join(step["modes"]),
                    "name": self.mode_name(step["modes"][1]),
                    "count": step["count"],
                },
                detail=tuple(self._step_words(step, places)),
                behind=self.behind(" → ".join(step["modes"]), step=tuple(step["modes"])),
            )
            for step in steps[:MOST_STEPS]
        ]
        often = f"The {MOST_STEPS} most frequent of {len(steps)} steps."
        notes = _notes(
            (True, "A → B: the onset of B is the next after that of A.", "transitions"),
            (len(steps) > MOST_STEPS, often, "most_frequent"),
        )
        return self.table("transitions", rows, *notes, n=self._of_places(places))

    def _step_words(self, step: TransitionJson, places: PlacesJson) -> Iterator[str]:
        first, second = step["modes"]
        for one in places["order"]:
            if set(one["modes"]) == {first, second}:
                before, after = one["before"], one["after"]
                if one["modes"][0] != first:
                    before, after = after, before
                yield (
                    f"Of {counted(one['n'], 'trace')} with both, {first} sets on earlier in "
                    f"{before:,}, later in {after:,}, at the same span in {one['together']:,}."
                )

    def _onsets(self, places: PlacesJson) -> Table | None:
        rows = []
        for code, at in places["onset"].items():
            if at["median"] is not None and at["quartiles"] is not None:
                low, high = at["quartiles"]
                cells: dict[str, Cell] = {
                    **self.mode_cells(code),
                    "median": at["median"],
                    "low": low,
                    "high": high,
                    "n": at["n"],
                }
                title = f"{code} with a place, {self.which}"
                lead = self.behind(title, code, placed=True)
                rows.append(Row(f"onset {code}", cells, behind=lead))
        return self.table("mode_onsets", rows, n=self._of_places(places), folded=True)

    def _after_fatal(self, places: PlacesJson) -> Table | None:
        rows = []
        for after in places["after_fatal"]:
            on, share = after["spans_after"], after["share_after"]
            if on["median"] is None or on["quartiles"] is None:
                continue
            by = _FATAL_BY[after["by"]]
            cells: dict[str, Cell] = {
                "by": by,
                "median": on["median"],
                "low": on["quartiles"][0],
                "high": on["quartiles"][1],
                "share": share["median"],
                "n": on["n"],
            }
            words = (
                f"After the first failure that is fatal, {by}, a run went on for "
                f"{on['median']:.0f} spans in the median (quartiles {on['quartiles'][0]:.0f} to "
                f"{on['quartiles'][1]:.0f}; {on['n']:,} {self.which})."
            )
            rows.append(Row(f"after {after['by']}", cells, detail=(words,)))
        return self.table("after_fatal", rows, n=self._of_places(places))

    def _order(self, places: PlacesJson) -> Table | None:
        rows = [
            Row(
                f"order {' '.join(one['modes'])}",
                {
                    "pair": " + ".join(one["modes"]),
                    "before": one["before"],
                    "after": one["after"],
                    "together": one["together"],
                    "n": one["n"],
                },
                behind=self.behind(f"{' and '.join(one['modes'])}", *one["modes"], placed=True),
            )
            for one in sorted(places["order"], key=lambda one: -one["n"])
        ]
        return self.table("order_counts", rows, n=self._of_places(places), folded=True)

    def _chains(self, places: PlacesJson) -> Table | None:
        rows = []
        for place, one in enumerate(places["chains"]):
            codes = tuple(code for step in one["steps"] for code in step)
            words = " → ".join("+".join(step) for step in one["steps"])
            chain = tuple(tuple(step) for step in one["steps"])
            lead = self.behind(words, *codes, chain=chain)
            rows.append(Row(f"chain {place}", {"chain": words, "count": one["count"]}, behind=lead))
        note = Note("A → B: B sets on next after A. A+B: both set on at the same span.", "chains")
        return self.table("chain_counts", rows, note, n=self._of_places(places), folded=True)

    def bill(self) -> Table | None:
        """What failed runs used up before and after they were lost, where that was counted."""
        rows = []
        for one in self.group["bill"] or ():
            by = _FATAL_BY[one["by"]]
            for name, sums in (("tokens", one["tokens"]), ("minutes", one["minutes"])):
                if sums is None:
                    continue
                cells: dict[str, Cell] = {
                    "by": by,
                    "what": name,
                    "total": round(sums["total"]),
                    "before": round(sums["before_first_fatal"]),
                    "after": round(sums["after"]),
                    "share": sums["share_after"],
                    "n": sums["traces"],
                }
                most = sorted(sums["by_mode"].items(), key=lambda item: -item[1])
                told = [f"{code} {value:,.0f}" for code, value in most if value]
                words = (f"After a first fatal failure by mode: {', '.join(told)}.",) * bool(told)
                rows.append(Row(f"bill {one['by']} {name}", cells, detail=words))
        n = f"over {self.group['failed']:,} failed traces"
        return self.table("bill", rows, n=n)

    # What shows together.

    @property
    def _pairs(self) -> list[TogetherJson]:
        return self.group["together"]["all" if self.outcome is None else "failed"]

    def _seen(self) -> dict[str, int]:
        """The modes that show, and in how many traces."""
        counts = {
            code: mode["all" if self.outcome is None else "failed"]["count"]
            for code, mode in self.group["modes"].items()
        }
        return {code: count for code, count in counts.items() if count}

    def matrix(self) -> Table | None:
        """How many traces show both of two modes; on the diagonal how many show the one."""
        seen = self._seen()
        pairs = {frozenset(pair["modes"]): pair for pair in self._pairs}
        rows = []
        for code, count in seen.items():
            cells = self.mode_cells(code)
            leads, told = {}, {}
            for other in seen:
                pair = pairs.get(frozenset((code, other)))
                both = count if other == code else 0 if pair is None else pair["both"]
                cells[f"with {other}"] = both
                if both:
                    codes = (code,) if other == code else (code, other)
                    title = f"{' and '.join(codes)} in {self.which}"
                    leads[f"with {other}"] = self.behind(title, *codes)
                if pair is not None and other != code:
                    told[f"with {other}"] = tuple(_pair_words(pair, self.which))
            lead = leads[f"with {code}"]
            rows.append(Row(code, cells, behind=lead, behind_cells=leads, detail_cells=told))
        shown = [
            Column(f"with {code}", code, Kind.COUNT, f"{self.which} with {code} too")
            for code in seen
        ]
        title = "Modes that show together"
        note = Note(
            f"A cell is how many {self.which} show both modes; on the diagonal how many show the "
            "one.",
            "matrix",
        )
        return self.table("together", rows, note, title=title, shown=shown, n=self._together_n())

    def _together_n(self) -> str:
        many = self.group["traces" if self.outcome is None else "failed"]
        return f"over {counted(many, self.which.removesuffix('s'))}"

    def pairs(self) -> Table | None:
        """The pairs of modes that most often show in one trace."""
        there = sorted(
            (pair for pair in self._pairs if pair["both"]), key=lambda pair: -pair["both"]
        )
        rows = [
            Row(
                " ".join(pair["modes"]),
                {
                    "pair": " + ".join(pair["modes"]),
                    "both": pair["both"],
                    "n": pair["n"],
                    "jaccard": pair["jaccard"],
                    "phi": Estimate(pair["phi"], undefined=pair.get("undefined", {}).get("phi")),
                },
                detail=tuple(_pair_words(pair, self.which)),
                behind=self.behind(f"{' and '.join(pair['modes'])}", *pair["modes"]),
            )
            for pair in there[:MOST_PAIRS]
        ]
        often = f"The {MOST_PAIRS} most frequent of {len(there)} pairs."
        notes = _notes((len(there) > MOST_PAIRS, often, "most_frequent"))
        return self.table("pairs", rows, *notes, n=self._together_n())

    # What helps, and what labels look like.

    def _decided(self) -> list[tuple[str, int | None, int]]:
        """List the modes that failed traces show: code, traces decided, traces that show it.

        Those first that decided most. Where no label has a severity, a mode whose class is fatal
        counts as having decided every failed trace that shows it. Where few outcomes are known,
        those that all traces show, and nothing of what they decided.
        """
        if not self.compares:
            modes = self.group["modes"].items()
            shown = [(code, None, mode["count"]) for code, mode in modes if mode["count"]]
            return sorted(shown, key=lambda one: -one[2])
        by_labels = None if self.extras is None else self.extras.decided.get(self.name)
        counts: list[tuple[str, int, int]] = []
        for code, mode in self.group["modes"].items():
            showing = mode["failed"]["count"]
            by_class = showing if mode["severity"] == "fatal" else 0
            decided = by_class if by_labels is None else by_labels.get(code, 0)
            if showing:
                counts.append((code, decided, showing))
        return [*sorted(counts, key=lambda one: (-one[1], -one[2]))]

    def _strategies(self, code: str) -> tuple[str, ...]:
        assert self.extras is not None
        assert self.extras.taxonomy is not None
        known = self.extras.taxonomy.find(code)
        fixes = () if known is None else known.fixes
        return fixes or ("The taxonomy names no strategy.",)

    def _helps_order(self) -> str:
        if not self.compares:
            return (
                "Ordered by the number of traces that show each mode. The strategies are those of "
                "the taxonomy."
            )
        said = self.extras is not None and self.name in self.extras.decided
        rule = (
            "A mode decided a failed trace where its labels there are fatal."
            if said
            else 'No severities were set, so modes of class "fatal" count as decisive in the '
            "failed traces that show them."
        )
        return (
            f"Ordered by the number of failed traces that each mode decided. {rule} The strategies "
            "are those of the taxonomy."
        )

    def helps_table(self) -> Table | None:
        """Make the table of modes that decided failed traces; the strategies are details."""
        if self.extras is None or self.extras.taxonomy is None:
            return None
        rows = [
            Row(
                code,
                {
                    **self.mode_cells(code),
                    "decided": decided,
                    "showing": showing,
                },
                detail=self._strategies(code),
                behind=self.behind(
                    f"{code} in {'failed' if self.compares else 'all'} traces",
                    code,
                    outcome="failed" if self.compares else None,
                ),
            )
            for code, decided, showing in self._decided()
        ]
        note = Note(self._helps_order(), "decided")
        return self.table("helps", rows, note)

    def help_texts(self) -> Iterator[model.Text]:
        """Yield the strategies against the modes of failed traces, the decisive ones open."""
        if self.extras is None or self.extras.taxonomy is None:
            return
        source = (
            counted(self.group["failed"], "failed trace")
            if self.compares
            else counted(self.group["traces"], "trace")
        )
        told = [
            f"{code} {self.mode_name(code)} "
            + ("" if decided is None else f"decided {decided or 'none'} and ")
            + f"shows in {showing} of {source}. {' '.join(self._strategies(code))}"
            for code, decided, showing in self._decided()
        ]
        if not told:
            return
        open_ones = (self._helps_order(), *told[:MOST_HELPED])
        yield model.Text(f"helps{self.suffix}", "What helps", open_ones)
        if told[MOST_HELPED:]:
            yield model.Text(
                f"helps-more{self.suffix}",
                "What helps against the other modes",
                tuple(told[MOST_HELPED:]),
                folded=True,
            )

    def example_texts(self) -> Iterator[model.Text]:
        """Labels on failed traces, with the text that they stand on."""
        if self.extras is None:
            return
        told = [
            _example_words(f"{one.code} {self.mode_name(one.code)}", one)
            for one in self.extras.examples
            if one.group == self.name and one.code in self.group["modes"]
        ]
        if told:
            yield model.Text(
                f"examples{self.suffix}", "Examples from failed traces", tuple(told), folded=True
            )


def _rate_words(rate: RateJson) -> str:
    """A share, with what it is of and its interval."""
    if rate["rate"] is None:
        return "no trace was judged on it"
    low, high = (_percent(end) for end in rate["ci"] or rate["bounds"])
    differ = f", as {rate['unresolved']:,} unresolved may be" if "bounds" in rate else ""
    share = _percent(rate["rate"])
    return f"{rate['count']:,} of {rate['n']:,} judged, {share} ({low} to {high}{differ})"


def _corrected_words(mode: ModeJson) -> Iterator[str]:
    """The corrected prevalence of a mode, or why there is none."""
    found: Any = mode["corrected"]
    if found is None:
        return
    corrected = found["corrected"]
    value, ends = corrected["value"], corrected.get("ci")
    if value is None:
        why = _MISSING.get(corrected.get("undefined", ""), "Too little is known.")
        yield f"Not corrected for the judge's errors: {why[0].lower()}{why[1:]}"
        return
    between = "" if ends is None else f" ({_percent(ends[0])} to {_percent(ends[1])})"
    if "bounds" in corrected:
        low, high = (_percent(end) for end in corrected["bounds"])
        between = f" ({low} to {high}, as disagreements are unresolved)"
    elif "ci_withheld" in corrected:
        between = f" (too few traces for an interval, n < {corrected['ci_needs']})"
    yield (
        f"Corrected for the judge's errors: {_percent(value)}{between}, where it says "
        f"{_percent(found['apparent']['value'])}, on {found['n_unlabelled']:,} traces that nobody "
        "else has labelled."
    )


def _pair_words(pair: TogetherJson, which: str) -> Iterator[str]:
    first, second = pair["modes"]
    yield (
        f"{first} and {second}: both in {pair['both']:,} of {pair['n']:,} {which} judged on both; "
        f"only {first} in {pair['only_first']:,}, only {second} in {pair['only_second']:,}, "
        f"neither in {pair['neither']:,}."
    )
    often = f"Of the traces with either, {_percent(pair['jaccard'])} have both (Jaccard)"
    if pair["phi"] is None:
        yield f"{often}; no correlation, as one of them shows in every trace."
    else:
        yield f"{often}; correlation φ {pair['phi']:+.2f}."


def _example_words(mode: str, one: Example) -> str:
    where = "whole trace" if one.whole else ""
    if one.first is not None:
        where = f"#{one.first}" if one.last in (None, one.first) else f"#{one.first}–#{one.last}"
    head = ", ".join(part for part in (mode, one.trace, where) if part)
    if one.fatal:
        head += ", said to be fatal"
    words = " ".join(one.text.split())
    if len(words) > MOST_QUOTED:
        words = f"{words[:MOST_QUOTED].rstrip()}…"
    said = [f"“{words}”"] if words else []
    said += [f"Note: {' '.join(one.note.split())}"] if one.note else []
    return f"{head}: {' '.join(said)}"


def _comparison(document: Report) -> Section:
    """Two groups against each other, over their failed traces."""
    found = document["comparison"]
    assert found is not None
    first, second = found["groups"]
    means, facts = found["modes_per_failed_trace"], []
    if means["difference"] is not None:
        ends = "" if means["ci"] is None else f"{means['ci'][0]:+.1f} to {means['ci'][1]:+.1f}"
        facts.append(("modes per failed trace, difference", f"{means['difference']:+.1f}", ends))
    rows, groups = [], document["groups"]
    for code, mode in found["modes"].items():
        cells: dict[str, Cell] = {
            "code": code,
            "name": mode["name"],
            "first": _rate(mode["first"], groups[first]["failed"]),
            "second": _rate(mode["second"], groups[second]["failed"]),
            **_difference_cells(mode, ratio=False),
            "p_adjusted": _p_cell(mode, "p_adjusted"),
        }
        leads = {
            side: Behind(
                f"{code} in failed traces of {name}",
                (code,),
                (("group", name), ("outcome", "failed")),
            )
            for side, name, count in (
                ("first", first, mode["first"]["count"]),
                ("second", second, mode["second"]["count"]),
            )
            if count
        }
        rows.append(Row(code, cells, detail=tuple(_missing(mode)), behind_cells=leads))
    table = Table(
        "comparison",
        f"Failed traces of {first} minus those of {second}",
        (*_MODE, *columns(_COMPARED, first=first, second=second)),
        (tuple(rows),),
        f"{groups[first]['failed']:,} and {groups[second]['failed']:,} failed traces. "
        f"{source_words(document)}",
        (
            *_no_ratio(
                found["modes"],
                {"none_in_second": f"no failed trace of {second}", "never_seen": "no trace"},
            ),
            *_withheld(found["modes"]),
        ),
    )
    title = f"{first} against {second}"
    parts: tuple[model.Part, ...] = (
        *comparison_charts(document),
        *_tables(_with_values(table), _paired(document)),
    )
    return Section("comparison", title, parts, tuple(facts))


def _paired(document: Report) -> Table | None:
    """Two sides over the tasks that both did."""
    found = document["paired"]
    if found is None:
        return None
    first, second = found["pair"]
    both: list[tuple[str, str, PairedCountsJson, float | None]] = [
        ("", "run failed", found["failed"], None)
    ]
    modes = [
        (code, mode["name"], mode, mode["p_adjusted"]) for code, mode in found["modes"].items()
    ]
    groups = tuple(
        tuple(
            Row(
                code or "failed",
                {
                    "code": code,
                    "name": name,
                    "first": _rate(one["first"], found["tasks"]),
                    "second": _rate(one["second"], found["tasks"]),
                    "only_first": one["only_first"],
                    "only_second": one["only_second"],
                    "difference_pp": _difference_cells(one, ratio=False)["difference_pp"],
                    "p_value": Estimate(one["p_value"], undefined=one.get("undefined")),
                    "p_adjusted": adjusted,
                },
            )
            for code, name, one, adjusted in rows
        )
        for rows in (both, modes)
    )
    left = found["left_out"]
    notes = [
        Note("Differences with Newcombe's paired interval, p by McNemar's exact test.", "paired")
    ]
    if any(left["repeated"]):
        runs = [
            f"{repeats:,} of {run:,}"
            for repeats, run in zip(left["repeated"], found["runs"], strict=True)
        ]
        notes.insert(
            0,
            Note(
                f"One run of each task counts, the first by trace id: {runs[0]} runs of {first} "
                f"and {runs[1]} of {second} are further runs of a task and are left out.",
                "repeated",
                warning=True,
            ),
        )
    if any(map(any, (left["no_task"], left["unpaired"]))):
        words = "; ".join(
            f"{what} {pair[0]:,} and {pair[1]:,}"
            for what, pair in (
                ("traces that name no task", left["no_task"]),
                ("tasks that the other one did not do", left["unpaired"]),
            )
            if any(pair)
        )
        notes.append(Note(f"Left out of {first} and {second}: {words}.", "left_out"))
    notes += withheld_notes(found["modes"], found["failed"])
    caption = f"{counted(found['tasks'], 'task')} that both did. {source_words(document)}"
    title = f"{first} and {second} on the same tasks"
    shown = (*_MODE, *columns(_OF_TASKS, first=first, second=second))
    return _with_values(Table("paired", title, shown, groups, caption, tuple(notes)))


def _trend(document: Report) -> Section:
    """Tell whether modes grow more or less frequent along the groups."""
    found = document["trend"]
    assert found is not None
    groups = found["groups"]
    span = 1
    slope = "each step"
    slope_words = "points from a group to the next"
    scale = "Versions count as steps of equal size, in the order of their numbers."
    if found["unit"] == "day":
        span = found["scores"][-1]
        slope = f"in {counted(span, 'day')}"
        slope_words = "points from the first date to the last, along a straight line"
        scale = "Dates count by the days between them."
    parts: list[model.Part] = []
    for id, title, modes in (
        ("trend", "Trend in failed traces", found["modes"]["failed"]),
        ("trend-all", "Trend in all traces", found["modes"]["all"]),
    ):
        rows = tuple(
            Row(
                code,
                {
                    "code": code,
                    "name": mode["name"],
                    **{
                        end: Estimate(rate["rate"], undefined=rate.get("undefined"))
                        for end, rate in (("first", mode["rates"][0]), ("last", mode["rates"][-1]))
                    },
                    "slope_pp": Estimate(
                        None if mode["slope_pp"] is None else mode["slope_pp"] * span / 100,
                        undefined=mode.get("undefined"),
                    ),
                    "p_adjusted": Estimate(mode["p_adjusted"], undefined=mode.get("undefined")),
                },
                detail=(
                    "; ".join(
                        f"{group} {_rate_words(rate)}"
                        for group, rate in zip(groups, mode["rates"], strict=True)
                    ),
                ),
            )
            for code, mode in modes.items()
        )
        titles = {"slope": slope, "slope_words": slope_words}
        shown_columns = (*_MODE, *columns(_ALONG, first=groups[0], last=groups[-1], **titles))
        caption = f"Along {', '.join(groups)}. {source_words(document)}"
        left_out = f"{counted(found['left_out'], 'trace')} of no group left out."
        notes = _notes(
            (True, f"{scale} p: test for trend after Cochran and Armitage.", "trend"),
            (found["left_out"], left_out, "left_out"),
        )
        table = Table(id, title, shown_columns, (rows,), caption, tuple(notes), id != "trend")
        parts += _tables(_with_values(table))
    return Section("trend", f"Trend by {found['by']}", tuple(parts))


def _reading(document: Report) -> Iterator[str]:
    """How figures are to be read, and the rule for classes."""
    rules, drawn = document["rules"], document["bootstrap"]
    yield "Open and unsure verdicts, and unknown outcomes, count on neither side."
    if document["weighted"]:
        yield (
            "Traces were drawn with different chances: shares, their differences and means are "
            "weighted by one over these, and rest on the traces of the study. Counts, tests, what "
            "shows together, places, trends and figures by task are those of the labelled traces."
        )
    yield (
        "Shares are estimates for traces like these, not for these alone. Where over 2 % of the "
        "verdicts of a mode are unresolved, (a to b) are bounds: all of them absent, and present."
    )
    yield (
        "Intervals are 95 %: of shares Wilson's, of differences Newcombe's, of ratios Katz's, of "
        f"means by resampling traces ({drawn['rounds']:,} resamples, seed {drawn['seed']})."
    )
    yield (
        "p: Fisher's exact test, two-sided; adjusted over the modes after Benjamini and Hochberg."
    )
    yield (
        f"Class: fatal is more often in failed traces with adjusted p < {rules['alpha']:g}; benign "
        f"is in {rules['least']} successful traces or more, with an interval of the difference "
        f"that ends at most at {rules['margin_pp']:g} points; unclear is anything else, and "
        f"whatever rests on fewer than {rules['least']} failed or successful traces."
    )
    if document["stated"] is not None:
        yield f"Published: what the {document['stated']['source']} say; it decides nothing here."
    yield (
        f"Isolated: a failed trace with up to {rules['isolated']} modes; cascading: with "
        f"{rules['cascading']} or more."
    )


def _method(document: Report) -> model.Text:
    caution = (
        "A difference between failed and successful runs is no proof that the mode caused the "
        "failure: hard tasks may bring about both."
    )
    return model.Text("counted", "Rules and intervals", (*_reading(document), caution))


def _measured(extras: Extras | None) -> tuple[model.Text, ...]:
    """What the literature measured of fixes against the modes of MAST."""
    if extras is None or extras.taxonomy is None or extras.taxonomy.id != "mast":
        return ()
    return (model.Text("measured", "What helped where it was measured", _MEASURED, _STUDY),)
