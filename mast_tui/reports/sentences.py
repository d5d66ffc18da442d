"""Numbers, names and intervals in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar

from mast_tui.counts import counted
from mast_tui.counts import joined_names as joined_names
from mast_tui.figures.bootstrap import LEVEL, Resampling
from mast_tui.figures.experiment import LEAST_TASKS
from mast_tui.figures.jackknife import MANY
from mast_tui.figures.record import Figure, FigureTable
from mast_tui.grouping import values_by_key
from mast_tui.reports.model import Column, KeyFact, Note
from mast_tui.reports.render.cells import NONE, WITHHELD, fixed_number, undefined_words

_Item = TypeVar("_Item")

PARADOX: Final = "†"
"""The mark of a row with the κ paradox: κ is low only because nearly all verdicts are equal."""

WILSON: Final = "[a, b] is Wilson's 95 % confidence interval."
_NO_INTERVALS: Final = "No intervals were computed (--rounds 0)."

# The bounds of the κ paradox are this project's own. Landis and Koch call κ below 0.4 'fair' or
# worse.
_LOW_KAPPA: Final = 0.4
_HIGH_RAW: Final = 0.8
_EXTREME_PREVALENCE: Final = 0.2


def applicable(*items: tuple[object, _Item]) -> tuple[_Item, ...]:
    """Return the items, such as notes, that have a true condition.

    Args:
        items: Pairs of a condition and an item.
    """
    return tuple(item for condition, item in items if condition)


def of_pair(key: str) -> str:
    """Return the key of a pair (``A|B``) as two names in words."""
    return joined_names(key.split("|"))


def percent(share: float) -> str:
    """Return a share as text in percent."""
    return f"{share * 100:.0f} %"


def p_words(p: float) -> str:
    """Return a p-value as text, never as 0."""
    return "p < 0.001" if p < 0.001 else f"p {fixed_number(p, 3)}"


def in_words(figure: Figure) -> str:
    """Return a figure with its interval as text: ``0.61 [0.48, 0.72]``."""
    if figure.value is None:
        return undefined_words(str(figure.undefined))
    value = fixed_number(figure.value)
    if figure.interval is not None:
        return f"{value} [{', '.join(map(fixed_number, figure.interval))}]"
    if figure.bounds is not None:
        ends = " to ".join(map(fixed_number, figure.bounds))
        return f"{value} ({ends}, depending on unresolved verdicts)"
    return value if figure.withheld is None else f"{value} {WITHHELD}"


def fact(name: str, figure: Figure) -> KeyFact:
    """Make a fact for the head of a page.

    Args:
        name: The name of the figure.
        figure: The figure.
    """
    if figure.value is None:
        return KeyFact(name, NONE, str(figure.undefined).replace("_", " "))
    value = fixed_number(figure.value)
    if figure.interval is not None:
        return KeyFact(name, value, " to ".join(map(fixed_number, figure.interval)))
    return KeyFact(name, value, "" if figure.withheld is None else "no interval")


def intervals_note(
    resampling: Resampling, traces: int, bootstrap_name: str = "percentile bootstrap"
) -> str:
    """Return a sentence on the method of the intervals.

    Args:
        resampling: The resamples of the intervals.
        traces: The number of traces. The jackknife is used for fewer than ``MANY``.
        bootstrap_name: The kind of bootstrap for ``MANY`` traces or more.
    """
    if not resampling.count:
        return _NO_INTERVALS
    method = (
        "jackknife over traces"
        if traces < MANY
        else f"{bootstrap_name} over traces, {resampling.count:,} resamples, seed {resampling.seed}"
    )
    return f"[a, b] is a {percent(LEVEL)} confidence interval ({method})."


def withheld_notes(*parts: Figure | FigureTable) -> tuple[Note, ...]:
    """Return a note for each reason why figures have no interval.

    Args:
        parts: Figures, or tables of figures.
    """
    figures = list(
        chain.from_iterable(
            part.figures if isinstance(part, FigureTable) else (part,) for part in parts
        )
    )
    return tuple(
        Note(f"{WITHHELD} {text}.{_advice(figures) if reason == 'unresolved' else ''}", reason)
        for reason, text in _explanations(figures).items()
    )


def why_no_interval(figure: Figure) -> str:
    """Return why a figure has no interval: ``no interval: it needs 16 traces``."""
    reason = str(figure.withheld).replace("_", " ")
    return next(iter(_explanations([figure]).values()), f"no interval: {reason}")


def _explanations(figures: Iterable[Figure]) -> dict[str, str]:
    """Return a text for each reason why figures have no interval."""
    needed_by_reason = values_by_key(
        (_interval_reason(figure), figure.needs or 0) for figure in figures
    )
    return {
        reason: f"no interval: {explanation(sorted(set(needed_by_reason[reason])))}"
        for reason, explanation in _WHY.items()
        if reason in needed_by_reason
    }


def _interval_reason(figure: Figure) -> str | None:
    """Return the key in ``_WHY`` of the reason why a figure has no interval; None if it has one."""
    # Bounds replace an interval with too many unresolved verdicts.
    if figure.bounds is not None:
        return "unresolved"
    reason = figure.withheld
    return _OWN_REASONS.get((figure.statistic, reason), reason)


def _advice(figures: Iterable[Figure]) -> str:
    """Return sentences on figures with too many unresolved verdicts: bounds, and what to do."""
    unresolved = [figure for figure in figures if _interval_reason(figure) == "unresolved"]
    bounds = " (a to b) are bounds: all unresolved verdicts absent, or all present."
    has_bounds = any(figure.bounds is not None for figure in unresolved)
    needed = counted(max(figure.needs or 0 for figure in unresolved), "verdict")
    return f"{bounds if has_bounds else ''} For an interval, resolve up to {needed} per mode."


def _number_range(numbers: list[int]) -> str:
    """Return sorted numbers as text: ``16``, or ``4 to 6`` for several."""
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


_OWN_REASONS: Final[Mapping[tuple[str, str | None], str]] = {
    ("difference", "few_traces"): "few_traces_in_group",
    ("risk_ratio", "few_traces"): "few_traces_in_group",
    ("arm_difference", "rare_mode"): "rare_mode_in_tasks",
}
"""The keys in ``_WHY`` of reasons that mean something else for a statistic."""

_WHY: Final[Mapping[str, Callable[[list[int]], str]]] = {
    "few_traces": lambda least: (
        f"it needs {_number_range(least)} traces"
        f"{', depending on the figure' if len(least) > 1 else ''}"
    ),
    "few_traces_in_group": lambda least: f"it needs {least[-1]} traces in each group",
    "few_tasks": lambda _: f"it needs {LEAST_TASKS} tasks",
    "rare_answer": lambda least: (
        f"it needs {least[-1]} verdicts per annotator, on average, of the rarer kind (present or "
        "absent)"
    ),
    "rare_mode": lambda least: (
        f"it needs {least[-1]} traces with the mode and {least[-1]} without it, in both groups "
        "together"
    ),
    "rare_mode_in_tasks": lambda _: (
        f"it needs {LEAST_TASKS} tasks with the mode (or success) in a run, and {LEAST_TASKS} with "
        "a run without it"
    ),
    "few_shared_traces": lambda least: (
        f"it needs {least[-1]} traces shared by each pair of annotators"
    ),
    "few_places": lambda least: (
        f"it needs {least[-1]} traces in which places of two annotators overlap"
    ),
    "few_found_twice": lambda least: (
        f"it needs {least[-1]} failures found by two or more annotators"
    ),
    "dependent_finders": lambda _: "it needs annotators who find failures independently",
    "single_trace": lambda _: (
        "it depends on one trace, without which all verdicts are equal or the figure is undefined"
    ),
    "copied_blocks": lambda least: (
        f"it needs {_number_range(least)} traces, and those with identical sets of verdicts count "
        "once"
    ),
    "no_variance": lambda _: "all tasks have the same value, or the same difference",
    "unresolved": lambda _: "more than 2 % of the verdicts on a mode are unresolved disagreements",
}
"""The text after ``no interval:`` for the numbers of cases that intervals need, by reason."""


def why_undefined(
    figures: Sequence[tuple[str, Figure]],
    reasons: Mapping[str, str],
    no_variance: Mapping[str, str],
) -> Iterator[str]:
    """Yield a sentence for each reason why figures are undefined.

    Args:
        figures: Pairs of a name and its figure.
        reasons: The explanations of reasons, by reason.
        no_variance: The explanations of ``no_variance`` for single figures, by name.
    """
    names_by_explanation: dict[tuple[str, str], list[str]] = {}
    for name, figure in figures:
        reason = figure.undefined
        if reason is None:
            continue
        explanation = reasons.get(reason, reason.replace("_", " "))
        if reason == "no_variance":
            explanation = no_variance.get(name, explanation)
        # The sentence begins with the words that are shown in place of the figure.
        title = undefined_words(reason, figure.statistic).removeprefix(f"{NONE} ").capitalize()
        names_by_explanation.setdefault((title, explanation), []).append(name)
    for (title, explanation), names in names_by_explanation.items():
        yield f"{title}: {joined_names(names)}, because {explanation}."


def is_kappa_paradox(figures: FigureTable) -> bool:
    """Return whether κ is low only because nearly all verdicts are equal.

    This is the paradox of Feinstein and Cicchetti (1990).
    """
    kappa = figures.value("cohen_kappa")
    raw_agreement = figures.value("raw_agreement")
    present_shares = [share for share in figures.values("prevalence").values() if share is not None]
    if kappa is None or raw_agreement is None or not present_shares:
        return False
    mean_share = sum(present_shares) / len(present_shares)
    return (
        kappa < _LOW_KAPPA
        and raw_agreement >= _HIGH_RAW
        and min(mean_share, 1 - mean_share) <= _EXTREME_PREVALENCE
    )


def paradox_mark(table: FigureTable) -> str:
    """Return the mark of a row with the κ paradox, or an empty text."""
    return PARADOX if is_kappa_paradox(table) else ""


def paradox_note(figures_by_name: Mapping[str, FigureTable], advice: str) -> tuple[Note, ...]:
    """Return a note on the rows with the κ paradox; nothing without such rows.

    Args:
        figures_by_name: The figures of the rows by the name of the row.
        advice: The end of the note: the reason, and the figures to read instead of κ.
    """
    marked_names = [name for name, figures in figures_by_name.items() if is_kappa_paradox(figures)]
    text = f"{PARADOX} {', '.join(marked_names)}: κ is low although raw agreement is high{advice}"
    return applicable((marked_names, Note(text, "kappa_paradox")))


def macro_note(
    defined: Mapping[str, float | None], total: int, columns: Iterable[Column], ending: str = ""
) -> Note:
    """Return the note on macro means, with the number of modes of means that lack some.

    Args:
        defined: The number of modes with a defined figure, by the key of the column.
        total: The number of all modes.
        columns: The columns of the figures.
        ending: A text to add at the end.
    """
    count_texts = [
        f"{column.title} for {defined[column.key]}"
        for column in columns
        if (defined.get(column.key, total) or 0) < total
    ]
    counts_text = f"; of {total} modes, {', '.join(count_texts)}" if count_texts else ""
    return Note(
        f"macro mean: mean over the modes for which the figure is defined{counts_text}.{ending}",
        "macro",
    )
