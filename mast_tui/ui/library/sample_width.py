"""How sure the prevalence of a study's modes is by now, for the line over its queue."""

from __future__ import annotations

from mast_tui.adjudication import words_by_trace
from mast_tui.figures.judge.input import judge_input_from_workspace
from mast_tui.figures.judge.report import judge_report
from mast_tui.gold import no_order
from mast_tui.reports.judge import widest_words
from mast_tui.session import visible_traces_for_agreement
from mast_tui.study import Study
from mast_tui.ui.services.open_workspace import OpenWorkspace


def width_told(opened: OpenWorkspace, study: Study | None) -> str:
    """Say of the mode whose prevalence is least sure how sure it is, and what it takes.

    Nothing is said to whom what judges say is hidden. Slow: for workers.

    Args:
        opened: The workspace.
        study: Its study, with the draws by which traces came into it.
    """
    drawn = [] if study is None else [draw for draw in study.draws if draw.chances]
    if not drawn or opened.judges_hidden:
        return ""
    workspace, taxonomy = opened.workspace, opened.taxonomy
    gold = {
        trace: said.gold(taxonomy, no_order)
        for trace, said in words_by_trace(workspace, taxonomy).items()
    }
    given = judge_input_from_workspace(
        workspace,
        taxonomy,
        drawn[-1].judge,
        gold=gold,
        traces=visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref),
    )
    return widest_words(judge_report(given, rounds=0))
