"""What else there is to know of a judge, in words: confidence, answers, places, its pull."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mast_tui.agreement.text_judge import against_words
from mast_tui.ui.agreement_cells import (
    NO_FIGURE,
    counted,
    figure_cell,
    figure_words,
    joined,
    share_cell,
)

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.judge.report import JudgeReport
    from mast_tui.figures.judge.suggestion_effect import PullJson

BAR: Final = 20
"""Cells of a bar that stands for all."""

REFUSED: Final[Mapping[str, str]] = {
    "no_unlabelled": "there is no trace that only the judge has judged",
    "no_positives": "the reference calls the mode present nowhere, so its TPR is not known",
    "no_negatives": "the reference calls the mode absent nowhere, so its TNR is not known",
    "no_better_than_chance": "TPR and TNR add up to 1 or less: its word says nothing of the truth",
}


def prevalence_words(report: JudgeReport, code: str, *, pending: bool, hidden: int) -> list[str]:
    """How often a mode really shows where only the judge has looked."""
    found = report["prevalence"].get(code)
    lines = []
    if found is not None and found["n_unlabelled"]:
        corrected = found["corrected"]
        says = (
            f"On {counted(found['n_unlabelled'], 'trace')} that nobody has labelled the judge "
            f"says present in {figure_cell(found['apparent'])}; "
        )
        reason = corrected.get("undefined")
        if reason is not None:
            lines.append(f"{says}that cannot be corrected, since {REFUSED[reason]}.")
        else:
            ends = corrected.get("ci")
            between = f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""
            between = between or (" …" if pending else "")
            if "ci_withheld" in corrected:
                between = f" (too few traces for an interval, n < {corrected['ci_needs']})"
            lines.append(
                f"{says}corrected for its errors it is {share_cell(corrected['value'])}{between}, "
                "as far as it errs there as it does here."
            )
    if hidden:
        lines.append(
            f"{counted(hidden, 'unlabelled trace')} left out: what judges say of them is hidden "
            "from you."
        )
    return lines


def calibration_words(report: JudgeReport) -> str:
    """Of what it was so sure about, how much is right: a bar for each tenth."""
    found = report["calibration"]
    if not found["n"]:
        return (
            "Nothing to tell: the judge gave no confidence with what it called present and the "
            "reference has spoken of."
        )
    error = found["expected_calibration_error"]
    lines = [
        f"{counted(found['n'], 'claim')} with a confidence: mean confidence "
        f"{share_cell(found['mean_confidence'])}, "
        f"{figure_words('right', found['right'], pending=False)}; they are "
        f"{figure_cell(error)} apart on average, part by part.",
        f"confidence      n  right  {'0':<{BAR - 1}}1",
    ]
    for part in found["bins"]:
        if part["n"]:
            lines.append(
                f"{part['low']:.1f} to {part['high']:.1f} {part['n']:>6}  "
                f"{figure_cell(part['right']):>5}  "
                f"{_bar(part['right']['value'], part['mean_confidence'])}"
            )
    lines.append("█ the share that is right, │ the mean confidence.")
    if found["without_confidence"]:
        lines.append(f"{counted(found['without_confidence'], 'claim')} without a confidence.")
    return "\n".join(lines)


def answers_words(report: JudgeReport) -> str:
    """What people answered to its suggestions, by its confidence and by person."""
    found = report["answers"]
    if not found["n"]:
        return "Nobody has answered a suggestion of this judge in the traces that you may know of."
    lines = [
        f"{counted(found['n'], 'answer')}: {found['accept']} accepted, {found['edit']} edited, "
        f"{found['reject']} rejected; {figure_words('accepted', found['accepted'], pending=False)}"
        f", {figure_words('taken with or without edits', found['taken'], pending=False)}.",
    ]
    if any(part["n"] for part in found["bins"]):
        lines.append(f"confidence      n  taken  {'0':<{BAR - 1}}1")
    lines += [
        f"{part['low']:.1f} to {part['high']:.1f} {part['n']:>6}  {figure_cell(part['taken']):>5}"
        f"  {_bar(part['taken']['value'], None)}"
        for part in found["bins"]
        if part["n"]
    ]
    if len(found["annotators"]) > 1:
        lines += [
            f"  {name}: {figure_words('taken', one['taken'], pending=False)} of {one['n']}"
            for name, one in found["annotators"].items()
        ]
    return "\n".join(lines)


def localisation_words(report: JudgeReport, pending: bool) -> str:
    """Whether a judge that names the right mode names the right place."""
    found = report["localisation"]
    if pending:
        return "The places are being read …"
    lines = []
    if found["n"]:
        right = figure_words("in a right place", found["right_place"], pending=False)
        lines.append(
            f"{counted(found['n'], 'label')} of the judge on modes that "
            f"{against_words(report)} calls present: {right}. "
            f"Of the {counted(found['places'], 'place')} of {against_words(report)} "
            f"{figure_words('found', found['places_found'], pending=False)}."
        )
    else:
        lines.append(
            f"No label of the judge can be held against a place of {against_words(report)}."
        )
    if found["without_order"]:
        lines.append(
            f"{found['without_order']} count as wrong that might have met: the files of their "
            "traces are not here."
        )
    if found["whole_trace"]:
        lines.append(f"{counted(found['whole_trace'], 'label')} on a whole trace, not counted.")
    if found["no_places"]:
        lines.append(
            f"{counted(found['no_places'], 'label')} where {against_words(report)} says present "
            "without a place, not counted."
        )
    return "\n".join(lines)


def withheld_words(report: JudgeReport, pending: bool) -> str:
    """How people's labels differ with and without its suggestions on screen."""
    found = report["withheld"]
    if found is None:
        return (
            "No study here keeps suggestions back on a share of the traces, so nothing tells how "
            "far they move people. mast-tui study sets that up."
        )
    passes = found["passes"]
    lines = [
        f"{joined(found['annotators']) or 'Nobody'}: {counted(passes['shown'], 'pass', 'passes')} "
        f"with suggestions ({found['on_screen']} had some on screen), {passes['withheld']} "
        "without, by chance.",
        f"{'':<22}{'with':>7}{'without':>9}  difference",
    ]
    lines += _pull(found, pending)
    if found["not_judged"]:
        lines.append(
            f"{counted(found['not_judged'], 'pass', 'passes')} left out, not judged by it."
        )
    if found["examples"]:
        lines.append(f"{counted(found['examples'], 'pass', 'passes')} left out, in its prompt.")
    return "\n".join(lines)


def _pull(pull: PullJson, pending: bool) -> list[str]:
    rows = (
        ("says present", pull["present_rate"]),
        ("labels a pass", pull["labels_per_pass"]),
        ("agrees with the judge", pull["agreement_with_judge"]),
        ("κ with the judge", pull["kappa_with_judge"]),
    )
    return [
        f"{name:<22}{figure_cell(one['shown']):>7}{figure_cell(one['withheld']):>9}  "
        f"{_difference(one['difference'], pending)}"
        for name, one in rows
    ]


def _difference(figure: CoefficientJson, pending: bool) -> str:
    if figure["value"] is None:
        return NO_FIGURE
    return figure_words("", figure, pending=pending)


def _bar(share: float | None, mark: float | None) -> str:
    """A share as a bar of text, with a mark where another one ends."""
    cells = ["█"] * round((share or 0.0) * BAR)
    cells += ["░"] * (BAR - len(cells))
    if mark is not None:
        cells[min(BAR - 1, int(mark * BAR))] = "│"
    return "".join(cells)
