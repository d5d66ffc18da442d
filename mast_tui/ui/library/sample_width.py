"""The precision of the prevalence of a study's modes, for the title of the library."""

from __future__ import annotations

from mast_tui.adjudication import read_work_by_trace
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.input import GoldReference, judge_input_from_workspace
from mast_tui.figures.judge.report import judge_report
from mast_tui.gold import no_order
from mast_tui.reports.judge import widest_words
from mast_tui.session import visible_traces_for_agreement
from mast_tui.study import Study
from mast_tui.ui.services.open_workspace import OpenWorkspace


def sample_width_text(opened: OpenWorkspace, study: Study | None) -> str:
    """Return the interval of the mode with the least certain prevalence, and how to narrow it.

    The text is empty if judges' answers are hidden, or no traces were drawn by chance. This is
    slow, so call it in a worker.

    Args:
        opened: The open workspace.
        study: Its study, or None.
    """
    draws = [] if study is None else [draw for draw in study.draws if draw.chances]
    if not draws or opened.judges_hidden:
        return ""
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    gold = {
        trace_id: work.gold(taxonomy, no_order)
        for trace_id, work in read_work_by_trace(workspace, taxonomy).items()
    }
    judge_input = judge_input_from_workspace(
        workspace,
        taxonomy,
        draws[-1].judge,
        GoldReference(gold),
        traces=visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref),
    )
    return widest_words(judge_report(judge_input, Resampling(0)))
