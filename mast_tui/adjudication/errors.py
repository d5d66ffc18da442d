"""What can go wrong in adjudication, in words for people."""

from __future__ import annotations


class AdjudicationError(Exception):
    """Something cannot be adjudicated; the message says what and what to do."""
