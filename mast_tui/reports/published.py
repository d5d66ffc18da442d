"""Published figures beside ours: gains from fixes, with all readings of them."""

from __future__ import annotations

from typing import Final

from mast_tui.reports import model

_GAINS: Final = (
    "By summaries of the paper the study behind MAST changed ChatDev and ran it again on its "
    "ProgramDev tasks, with the same model. Clearer roles, of which the higher one has the last "
    "word, raised task success by 9.4 points; a step that verifies the objective of the task "
    "raised it by 15.6 points, from 25.0 to 40.6 %.",
    "Posts on the ITBench study and a later article read it otherwise: a gain of about 15.6 % by "
    "prompts, and of up to 53 % by changes of structure. By the summaries 15.6 are points, not "
    "percent, and belong to the change of structure. For the 53 % the post cites an earlier post "
    "on MAST, which was not checked.",
    "Most runs still failed. The study takes from it that single fixes of prompts or structure are "
    "no cure, and that reliability asks for structural changes such as verification.",
)
_SOURCES: Final = (
    (
        "Cemri et al., Why Do Multi-Agent LLM Systems Fail? (2025)",
        "https://arxiv.org/abs/2503.13657",
    ),
)


def published_gains() -> model.Text:
    """Return what the literature measured of fixes against the modes of MAST."""
    return model.Text("measured", "What helped where it was measured", _GAINS, _SOURCES)
