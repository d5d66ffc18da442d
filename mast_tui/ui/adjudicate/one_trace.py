"""The adjudicate screen as it is opened from one trace behind a figure."""

from __future__ import annotations

from mast_tui.ui.adjudicate.cases import Cases
from mast_tui.ui.adjudicate.screen import AdjudicateScreen


class AdjudicateOneScreen(AdjudicateScreen):
    """The queue of one mode, with the cursor on one trace; what was agreed is listed where the
    sides agree on it."""

    def __init__(self, mode: str, trace: str, *, agreed: bool) -> None:
        """List what concerns a mode.

        Args:
            mode: Its slug.
            trace: The id of the trace to begin with.
            agreed: Whether the sides agree on it.
        """
        super().__init__(mode=mode)
        self._trace = trace
        self.agreed = agreed

    def take_in(self, cases: Cases) -> None:
        """List what was read, with the cursor on the trace that was asked for."""
        first = self.cases is None
        super().take_in(cases)
        if not first:
            return
        if self._place is None and not self.agreed:
            # Settled otherwise since: it stands among what was agreed.
            self.agreed = True
            self.show_rows()
        place = self._place
        if place is not None:
            self.main_list.move_to(self.main_list.first_in_trace(place))

    @property
    def _place(self) -> int | None:
        """The row of the trace, None where it is not listed."""
        rows = enumerate(self.main_list.rows)
        return next((place for place, row in rows if row.trace_id == self._trace), None)
