"""Published figures beside those of a report: claims of the ITBench posts, and effects of fixes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from mast_tui.figures.record import Figure
from mast_tui.figures.signatures.report import (
    SignatureReport,
    are_claims_about,
    claims_document,
)
from mast_tui.reports import model
from mast_tui.reports.model import Note, Row, Table, columns, figure_cell
from mast_tui.reports.sentences import why_no_interval

Verdict = Literal["reproduced", "contradicted", "not computable"]

_GAINS: Final = (
    "According to summaries of the paper, the MAST authors changed ChatDev and reran it on its "
    "ProgramDev tasks with the same model. Clearer roles, in which the higher role has the last "
    "word, raised task success by 9.4 points. A step that verifies the objective of the task "
    "raised it by 15.6 points, from 25.0 to 40.6 %.",
    "Posts on the ITBench study and a later article give other figures: about 15.6 % from prompts, "
    "and up to 53 % from structural changes. In the summaries, 15.6 is in points and comes from a "
    "structural change. The 53 % come from an earlier post on MAST, which was not checked.",
    "Most runs still failed. The authors conclude that single fixes of prompts or structure are "
    "not enough, and that reliability needs structural changes such as verification.",
)
_SOURCES: Final = (
    (
        "Cemri et al., Why Do Multi-Agent LLM Systems Fail? (2025)",
        "https://arxiv.org/abs/2503.13657",
    ),
)
_COLUMNS: Final = """
    model | model | text | | 100
    claim | claim | text | | 101
    share | here | share | share in this report | 90
    number | here, mean | number | mean in this report | 90
    verdict | verdict | text | | 95
    reason | reason | text | | 60
"""


def published_gains() -> model.Text:
    """Return the published effects of fixes against the modes of MAST."""
    return model.Text("measured", "Published effects of fixes", _GAINS, _SOURCES)


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure beside the figure of a report.

    Args:
        group: The group of the report to which it applies.
        text: The claim in words.
        published: Its value.
        figure: The figure of the report; None if there is none.
        verdict: The result of the comparison.
        reason: The reason for the verdict.
        is_share: Whether the value is a share.
    """

    group: str
    text: str
    published: float
    figure: Figure | None
    verdict: Verdict
    reason: str
    is_share: bool


def published_claims(report: SignatureReport) -> Iterator[Claim]:
    """Compare the claims of the ITBench posts on a model with the group of the same model.

    A claim is reproduced if the figure rounds to it or the figure's interval contains it,
    contradicted if the interval does not contain it, and otherwise not computable. The number of
    modes per trace can be compared only if all modes were judged.
    """
    inputs = report.inputs
    if not are_claims_about(inputs.taxonomy_ref) or "model" not in inputs.fields:
        return
    code_by_slug = {mode.slug: mode.code for mode in inputs.modes}
    for claim in claims_document()["claims"]:
        for group in report.groups:
            if _letters_only(claim["model"]) not in _letters_only(group):
                continue
            if "mode" in claim:
                figures = report.figures.table(
                    "mode", group=report.key(group), mode=code_by_slug[claim["mode"]]
                )
                is_rate = claim["figure"] != "difference"
                computed = figures.get("rate", "all") if is_rate else figures.get("difference")
            else:
                # The posts call the mean score recall.
                name = "mean_score" if claim["figure"] == "recall" else claim["figure"]
                computed = report.group(group).get(name)
            verdict, reason = _verdict_on_claim(computed, claim["value"], claim["digits"])
            is_share = claim["figure"] != "modes_per_failed_trace"
            judged_count = report.group(group).count("modes_judged")
            if judged_count < len(inputs.modes) and not is_share:
                verdict = "not computable"
                reason = f"{judged_count} of {len(inputs.modes)} modes judged"
            yield Claim(group, claim["text"], claim["value"], computed, verdict, reason, is_share)


def _letters_only(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _verdict_on_claim(figure: Figure | None, published: float, digits: int) -> tuple[Verdict, str]:
    """Return the verdict on a published value with ``digits`` decimals, and the reason for it."""
    if figure is None or figure.value is None:
        return "not computable", "no run has the figure" if figure is None else figure.reason
    half_digit = 0.5 * 10.0**-digits
    if abs(figure.value - published) <= half_digit + 1e-9:  # 1e-9 for rounding errors
        return "reproduced", "rounds to it"
    if figure.interval is None:
        why = why_no_interval(figure) if figure.withheld else "no intervals were computed"
        return "not computable", why
    low, high = figure.interval
    if low - half_digit <= published <= high + half_digit:
        return "reproduced", "within the interval"
    return "contradicted", "outside the interval"


def claims_section(report: SignatureReport) -> model.ReportSection | None:
    """Return a section with published claims beside figures of the report; None without claims."""
    claims = list(published_claims(report))
    if not claims:
        return None
    rows = [
        Row(
            str(number),
            {
                "model": claim.group,
                "claim": claim.text,
                "share" if claim.is_share else "number": claim.figure and figure_cell(claim.figure),
                "verdict": claim.verdict,
                "reason": claim.reason.replace("_", " "),
            },
        )
        for number, claim in enumerate(claims)
    ]
    note = Note(
        f"Claims of {claims_document()['source']}. Recall is the mean score of the runs. The "
        "labels of that study were made by a model and are not public, so claims on modes are "
        "compared with the labels of this report.",
        "claims",
    )
    return model.ReportSection(
        "claims",
        "Published claims compared with these figures",
        (Table("claims", "Published claims", columns(_COLUMNS), (tuple(rows),), notes=(note,)),),
    )


def claims_json(report: SignatureReport) -> list[dict[str, Any]]:
    """Return the claims as ``report --json`` prints them.

    Args:
        report: The report.
    """
    return [
        {
            "group": claim.group,
            "claim": claim.text,
            "published": claim.published,
            "value": None if claim.figure is None else claim.figure.value,
            "ci": None
            if claim.figure is None or claim.figure.interval is None
            else list(claim.figure.interval),
            "verdict": claim.verdict,
            "reason": claim.reason,
            "source": claims_document()["source"],
        }
        for claim in published_claims(report)
    ]
