"""A table of which only the rows on screen are made, with titles that follow its columns."""

from __future__ import annotations

from textual.message import Message

from mast_tui.ui.widgets.virtual_lines import VirtualLines


class TableLines(VirtualLines):
    """Rows in columns. The titles stand in a line of their own above, which ``Fitted`` is for."""

    class Fitted(Message):
        """The columns have other widths now."""

        def __init__(self, table: TableLines) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> TableLines:
            return self.table

    def fit(self, width: int) -> None:
        """Give every column its cells of ``width``."""
        raise NotImplementedError

    def heading(self) -> str:
        """The titles over the columns."""
        raise NotImplementedError

    def rows_changed(self) -> None:
        """Fit the columns anew."""
        width = self.scrollable_content_region.width
        self.fit(width)
        if width > 0:
            self.post_message(self.Fitted(self))
        super().rows_changed()
