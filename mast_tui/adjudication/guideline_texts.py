"""The pages of all modes as plain values for gold, and as Markdown to read."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from mast_tui.adjudication.guidelines import Case, ModePage, mode_page, page_within
from mast_tui.adjudication.queue import outcome_words
from mast_tui.gold import Guideline
from mast_tui.labels import Target
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace.store import Workspace

_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>#|"})


def guidelines_document(
    workspace: Workspace, taxonomy: Taxonomy, *, traces: Container[str] | None = None
) -> Mapping[str, Any]:
    """What was agreed about each mode, as plain JSON values by the mode's code.

    Modes about which nothing was written or decided are left out, as are cases on and occasions of
    other traces than ``traces``; None hides nothing. Each mode has ``mode`` (the slug), ``name``,
    ``guidelines`` (``text``, ``by``, ``at`` and, where there was an occasion, ``trace`` and
    ``item``) and ``cases`` (``trace``, ``item``, ``value``, ``targets``, ``reason``, ``by``,
    ``at``, ``judge_seen``).
    """
    return {
        page.mode.code: {
            "mode": page.mode.slug,
            "name": page.mode.name,
            "guidelines": [_guideline_values(one) for one in page.guidelines],
            "cases": [_case_values(case) for case in page.cases],
        }
        for page in _pages(workspace, taxonomy, traces)
    }


def guidelines_markdown(workspace: Workspace, taxonomy: Taxonomy) -> str:
    """The same as a page of Markdown; foreign words in it are never markup."""
    lines = [f"# What was agreed: {_plain(taxonomy.name)}", ""]
    for page in _pages(workspace, taxonomy, None):
        lines += [f"## {_plain(page.mode.code)} {_plain(page.mode.name)}", ""]
        if page.mode.definition:
            lines += [_plain(page.mode.definition), ""]
        lines += [f"- {_guideline_line(one)}" for one in page.guidelines]
        lines += [""] if page.guidelines else []
        if page.cases:
            lines += ["Decided cases:", "", *(f"- {_case_line(case)}" for case in page.cases), ""]
    if len(lines) == 2:
        lines += ["Nothing was written down or decided yet.", ""]
    return "\n".join(lines)


def _pages(
    workspace: Workspace, taxonomy: Taxonomy, traces: Container[str] | None
) -> Iterator[ModePage]:
    for mode in taxonomy.modes:
        page = mode_page(workspace, taxonomy, mode.slug)
        if traces is not None:
            page = page_within(page, traces)
        if page.guidelines or page.cases:
            yield page


def _guideline_values(guideline: Guideline) -> dict[str, Any]:
    values = {"text": guideline.text, "by": guideline.written_by, "at": guideline.written_at}
    if guideline.trace_id is not None:
        values["trace"] = guideline.trace_id
    if guideline.item is not None:
        values["item"] = guideline.item
    return values


def _case_values(case: Case) -> dict[str, Any]:
    decision = case.decision
    return {
        "trace": case.trace_id,
        "item": decision.item,
        "value": decision.value.value,
        "targets": [_target_values(target) for target in decision.targets],
        "reason": decision.reason,
        "by": decision.decided_by,
        "at": decision.decided_at,
        "judge_seen": decision.judge_seen,
    }


def _target_values(target: Target) -> dict[str, Any]:
    values = {
        "span_first": target.first,
        "span_last": target.last,
        "quote": target.quote,
        "char_start": target.char_start,
        "char_end": target.char_end,
    }
    return {name: value for name, value in values.items() if value is not None}


def _guideline_line(guideline: Guideline) -> str:
    words = f"{_plain(guideline.text)} ({_plain(guideline.written_by)}, {guideline.written_at[:10]}"
    return f"{words}; {_plain(guideline.trace_id)})" if guideline.trace_id else f"{words})"


def _case_line(case: Case) -> str:
    decision = case.decision
    value = outcome_words(decision.value, is_verdict=decision.is_verdict)
    words = f"{_plain(case.trace_id)}: {value}"
    places = [_plain(_place_words(target)) for target in decision.targets[:3]]
    if places:
        words += f" at {', '.join(places)}{' …' if len(decision.targets) > 3 else ''}"
    return f"{words}. {_plain(decision.reason)}" if decision.reason else words


def _place_words(target: Target) -> str:
    if target.first is None or target.last is None:
        return "the whole trace"
    where = target.first if target.first == target.last else f"{target.first} to {target.last}"
    return f"“{target.quote}” in {where}" if target.quote else where


def _plain(text: str | None) -> str:
    """One line that Markdown takes as it is."""
    return one_line(text or "").translate(_MARKS)
