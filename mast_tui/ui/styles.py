"""Where the styles of the screens lie, and from which size on they are laid out in another way.

Whole paths: Textual looks for others beside the class.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent

ADJUDICATE: Final = _HERE / "adjudicate" / "adjudicate.tcss"
ANNOTATE: Final = _HERE / "annotate" / "annotate.tcss"
BASE_SCREEN: Final = _HERE / "base_screen.tcss"
DIALOGS: Final = _HERE / "dialogs" / "dialogs.tcss"
FIRST_SPANS: Final = _HERE / "trace_view" / "first_spans.tcss"
GUIDELINES: Final = _HERE / "study" / "guidelines.tcss"
LIBRARY: Final = _HERE / "library" / "library.tcss"
OPEN_CODES: Final = _HERE / "open_codes.tcss"
REPORTS: Final = _HERE / "reports" / "reports.tcss"
RUNS: Final = _HERE / "judge_runs" / "runs.tcss"
SIDE_BY_SIDE: Final = _HERE / "side_by_side.tcss"
STUDY: Final = _HERE / "study" / "study.tcss"

WIDE: Final = 100
"""Columns from which on the taxonomy stands beside the timeline."""

WIDEST: Final = 180
"""Columns from which on the taxonomy has room for the longest names of modes."""

HIGH: Final = 20
"""Lines from which on a trace has room for more than its rows and some text."""
