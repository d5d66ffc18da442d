"""What can go wrong in adjudication, in words for people."""

from __future__ import annotations

from mast_tui.errors import MastError


class AdjudicationError(MastError):
    """Something cannot be adjudicated; the message says what and what to do."""
