"""The style files of the screens, and the sizes from which their layout changes.

Paths are absolute, because Textual would search beside the class.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent

ADJUDICATE: Final = _FOLDER / "adjudicate" / "adjudicate.tcss"
ANNOTATE: Final = _FOLDER / "annotate" / "annotate.tcss"
BASE_SCREEN: Final = _FOLDER / "base_screen.tcss"
DIALOGS: Final = _FOLDER / "dialogs" / "dialogs.tcss"
FIRST_SPANS: Final = _FOLDER / "trace_view" / "first_spans.tcss"
GUIDELINES: Final = _FOLDER / "study" / "guidelines.tcss"
LIBRARY: Final = _FOLDER / "library" / "library.tcss"
OPEN_CODES: Final = _FOLDER / "open_codes.tcss"
REPORTS: Final = _FOLDER / "reports" / "reports.tcss"
RUNS: Final = _FOLDER / "judge_runs" / "runs.tcss"
SIDE_BY_SIDE: Final = _FOLDER / "side_by_side.tcss"
STUDY: Final = _FOLDER / "study" / "study.tcss"

WIDE: Final = 100
"""The width from which the taxonomy is beside the timeline."""

WIDEST: Final = 180
"""The width from which the taxonomy has space for the longest names of modes."""

HIGH: Final = 20
"""The height from which a trace has space for more than its rows and some text."""
