"""Small traces and taxonomies in memory."""

from __future__ import annotations

from pathlib import Path

from mast_tui.taxonomy.loader import from_dict
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus
from tests.traces.synthetic_trace import SyntheticTrace


class SmallTrace(SyntheticTrace):
    """A trace in memory whose spans have these texts and the keys ``k0``, ``k1``, …"""

    def __init__(self, *texts: str) -> None:
        super().__init__("small", Path("small.jsonl"))
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def span(self, index: int, /) -> Span:
        text = self._texts[index]
        return Span(
            index=index,
            key=f"k{index}",
            kind=SpanKind.MESSAGE,
            role=Role.AGENT,
            agent="agent",
            name=None,
            parent=None,
            start=None,
            end=None,
            status=SpanStatus.OK,
            place=f"line {index + 1}",
            preview=text[:200],
            preview_is_complete=len(text) <= 200,
        )

    def text(self, index: int, /) -> str:
        return self._texts[index]

    def index_of(self, key: str, /) -> int | None:
        number = int(key.removeprefix("k")) if key.removeprefix("k").isdigit() else -1
        return number if 0 <= number < len(self._texts) else None


def taxonomy_of(*codes: str) -> Taxonomy:
    """Return a taxonomy with a mode for each of these codes."""
    return from_dict(
        {
            "id": "own",
            "version": "1",
            "categories": [{"id": "all"}],
            "modes": [
                {"slug": f"mode-{i}", "code": code, "name": f"Mode {code}", "category": "all"}
                for i, code in enumerate(codes)
            ],
        }
    )
