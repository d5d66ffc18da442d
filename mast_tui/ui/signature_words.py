"""What the figures of the signatures screen rest on, and what cannot be said, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from mast_tui.gold.sources import is_gold
from mast_tui.labels import JUDGE_PREFIX
from mast_tui.safe_text import one_line
from mast_tui.ui.signature_bars import LEGEND, p_words, percent, points
from mast_tui.ui.signature_corrected import corrected_words
from mast_tui.ui.suggestion_words import judge_name

if TYPE_CHECKING:
    from mast_tui.figures.signatures.groups import GroupJson
    from mast_tui.figures.signatures.modes import ModeJson
    from mast_tui.figures.signatures.rates import RateJson
    from mast_tui.figures.signatures.report import RulesJson
    from mast_tui.ui.signature_figures import Signatures

HOW_TO_GIVE: Final = (
    "Outcomes come with the traces' files, from an outcomes.csv beside them (columns trace, "
    "outcome and score), or with labels: mast-tui import FILE --format csv-wide (columns outcome "
    "and score). Where traces have a score, f says below which they have failed (mast-tui report "
    "--failed-below X)."
)

CHOOSE_LABELS: Final = "w chooses whose labels are counted."

_SEVERITY_WORDS: Final[Mapping[str, str]] = {
    "fatal": "▲ fatal",
    "benign": "○ benign",
    "unclear": "? unclear",
}

_MISSING: Final[Mapping[str, str]] = {
    "not_judged": "Nobody was judged on it with a known outcome, so there is nothing to compare.",
    "no_failed": "No failed trace was judged on it, so there is nothing to compare.",
    "no_succeeded": "No successful trace was judged on it, so there is nothing to compare.",
    "never_seen": "It shows in no trace, so there is no ratio.",
    "none_in_succeeded": "It shows in no successful trace, so there is no ratio.",
    "none_in_failed": "It shows in no failed trace, so its ratio has no interval.",
}


def counted(count: int, one: str) -> str:
    """A number with its noun: ``1 trace``, ``2 traces``."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def severity_cell(mode: ModeJson) -> str:
    """The class of a mode with its sign."""
    return _SEVERITY_WORDS[mode["severity"]]


def mode_words(found: Signatures, group: str, code: str) -> str:
    """What is known of one mode in a group."""
    assert found.report is not None
    report, mode = found.report, found.group(group)["modes"][code]
    lines = [*_rates(mode), *_difference(mode, len(report["groups"][group]["modes"]))]
    lines.append(_class(mode, report["rules"]))
    lines += corrected_words(mode)
    if report["stated"] is not None and mode["stated"] is not None:
        lines.append(f"Stated: {mode['stated']}, by {report['stated']['source']}; not ours.")
    left = [counted(mode["unsure"], "trace") + " unsure"] if mode["unsure"] else []
    left += [counted(mode["open"], "trace") + " not judged"] if mode["open"] else []
    if left:
        lines.append(f"Left out: {', '.join(left)}.")
    return "\n".join([*lines, *beyond_words(found, group)])


def _rates(mode: ModeJson) -> Iterator[str]:
    if mode["failed"]["n"] or mode["succeeded"]["n"]:
        yield f"Failed: {rate_words(mode['failed'])}"
        yield f"Succeeded: {rate_words(mode['succeeded'])}"
    else:
        yield f"All traces: {rate_words(mode['all'])}"


def rate_words(rate: RateJson) -> str:
    """A share, with what it is of and its interval."""
    if rate["rate"] is None or rate["ci"] is None:
        return "no trace was judged on it"
    low, high = (percent(end) for end in rate["ci"])
    return f"{rate['count']:,} of {rate['n']:,} judged, {percent(rate['rate'])} ({low} to {high})"


def _difference(mode: ModeJson, tests: int) -> Iterator[str]:
    ends, ratio, ratio_ends = (
        mode["difference_ci_pp"],
        mode["risk_ratio"],
        mode["risk_ratio_ci"],
    )
    if mode["difference_pp"] is not None and ends is not None:
        words = (
            f"Difference {points(mode['difference_pp'])} points "
            f"({points(ends[0])} to {points(ends[1])})"
        )
        if ratio is not None:
            words += f", risk ratio {ratio:.1f}"
        if ratio_ends is not None:
            words += f" ({ratio_ends[0]:.1f} to {ratio_ends[1]:.1f})"
        yield (
            f"{words}; Fisher's exact test p {p_words(mode['p_value'])}, "
            f"{p_words(mode['p_adjusted'])} corrected over {tests} modes (Benjamini-Hochberg)."
        )
    for reason in dict.fromkeys(mode.get("undefined", {}).values()):
        yield _MISSING.get(reason, reason)


def _class(mode: ModeJson, rules: RulesJson) -> str:
    because = {
        "more_in_failed": f"it shows more often in failed traces, corrected p < {rules['alpha']:g}",
        "seen_in_successes": (
            f"{rules['least']} successful traces or more show it, and the difference lies at "
            f"{rules['margin_pp']:g} points or less with its whole interval"
        ),
        "too_few_traces": f"fewer than {rules['least']} failed or successful traces judged on it",
        "not_told_apart": "these traces show neither that it decides runs nor that it does not",
    }[mode["severity_because"]]
    return f"Class: {mode['severity']}; {because}."


def beyond_words(found: Signatures, group: str) -> list[str]:
    """How intervals were made, and what the traces do not carry."""
    assert found.report is not None
    lines = [
        "",
        "Intervals are 95 %: of shares Wilson's, of differences Newcombe's, of ratios Katz's, of "
        "means by resampling traces.",
        *found.group(group)["cannot_say"],
        *found.report["cannot_say"],
    ]
    if found.veiled:
        lines.append(f"{veiled_words(found.veiled)}.")
    if not _has_outcomes(found.group(group)) and not found.veiled:
        lines.append(HOW_TO_GIVE)
    return [one_line(line, 500) if line else "" for line in lines]


def _has_outcomes(group: GroupJson) -> bool:
    return bool(group["failed"] or group["succeeded"])


def veiled_words(veiled: int) -> str:
    """That outcomes are hidden from a blind annotator."""
    return (
        f"You work blind: the outcome of {counted(veiled, 'trace')} is hidden from you and counts "
        "as unknown"
    )


def group_line(found: Signatures, group: str, *, bars: bool) -> str:
    """A group in one line: how many modes a failed trace shows, what bars are, how traces fail."""
    table = found.group(group)
    if not _has_outcomes(table):
        if found.veiled:
            return f"{veiled_words(found.veiled)}."
        return "No outcome is known: bars are over all traces. The text below tells how to give it."
    words = []
    mean = table["modes_per_failed_trace"]
    if mean["value"] is not None:
        ends = "" if mean["ci"] is None else f" ({mean['ci'][0]:.1f} to {mean['ci'][1]:.1f})"
        words.append(f"{mean['value']:.1f} modes per failed trace{ends}")
    # On a narrow screen the end goes; what bars are stands nowhere else.
    words += [f"bars: {LEGEND}"] if bars else []
    shapes = [f"{n} {name}" for name, n in table["shapes"].items() if n and name != "between"]
    words += [", ".join(shapes)] if shapes else []
    score = table["mean_score"]
    if score["value"] is not None:
        words.append(f"mean score {score['value']:.2f} (n {score['n']})")
    return " · ".join(words)


def title_words(found: Signatures, group: str) -> tuple[str, ...]:
    """Whose labels, which group of how many, and its outcomes."""
    table = found.group(group)
    groups, by = found.groups, found.choice.by
    name = "all traces" if by == "all" else f"{by} {one_line(group, 40)}"
    place = f" ({groups.index(group) + 1} of {len(groups)})" if len(groups) > 1 else ""
    outcomes = [f"{table[key]:,} {key}" for key in ("failed", "succeeded") if table[key]]
    outcomes += [f"{table['unknown']:,} unknown"] if table["unknown"] else []
    below = found.choice.failed_below
    return (
        f"{name}{place}",
        whose_counted(found),
        ", ".join(outcomes),
        *(() if below is None else (f"failed below {below:g}",)),
    )


def whose_counted(found: Signatures) -> str:
    """Whose labels are counted: gold that is one person's word bears their name, kept short so that
    the outcomes stay on a narrow screen."""
    mix = None if found.report is None else found.report["gold"]
    if mix is None or is_gold(mix) or not mix["sources"]["single"]:
        return whose_words(found.choice.labels)
    people = mix["annotators"]
    if len(people) == 1:
        return one_line(people[0], 30)
    return f"{len(people)} people, no gold"


def whose_words(labels: str) -> str:
    """Whose labels are counted."""
    if labels == "gold":
        return "gold"
    if labels.startswith(JUDGE_PREFIX):
        return f"judge {one_line(judge_name(labels), 30)}"
    return f"labels of {one_line(labels, 30)}"


def hidden_words(count: int) -> str:
    """That traces are left out, and how they can be counted."""
    it = "it" if count == 1 else "them"
    return f"{counted(count, 'trace')} left out that you may not look into yet · o counts {it}"


def nothing_words(found: Signatures) -> str:
    """Why there are no figures, and what to do."""
    if found.problem is not None:
        return f"{one_line(found.problem, 400)}\n\nEsc goes back."
    labels = found.choice.labels
    lines = []
    if found.hidden and found.choice.of_judge:
        lines.append(
            f"What {one_line(labels)} says of {counted(len(found.hidden), 'trace')} is hidden from "
            "you, as you work blind or a study keeps it back for now."
        )
    elif found.hidden:
        lines += [
            "What others said of the traces that count here is hidden from you.",
            "",
            f"{hidden_words(len(found.hidden))} as their adjudicator.",
        ]
    elif labels == "gold":
        lines += [
            "Nobody has finished a trace yet, so there is no gold.",
            "",
            "D finishes the trace that is open; mast-tui import brings labels from elsewhere.",
        ]
    else:
        lines.append(f"{one_line(labels)} has finished no trace under this taxonomy.")
    if len(found.sources) > 1:
        lines += ["", CHOOSE_LABELS]
    return "\n".join(lines)
