"""From which size of the terminal on screens are laid out in another way."""

from __future__ import annotations

from typing import Final

WIDE: Final = 100
"""Columns from which on the taxonomy stands beside the timeline."""
