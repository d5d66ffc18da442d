"""Styles and lines that are worked out once and not for every line that is drawn."""

from __future__ import annotations

from typing import Self

from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class KnownLooks(Widget):
    """A widget that keeps its styles until they change, and its lines until they are to be drawn
    again.

    Textual forgets the styles of components whenever any line is to be drawn again, works out a
    widget's own style, through all that it stands in, each time that it is asked for, and goes
    over every line of every widget for each line of the screen that has changed.
    """

    _own_style: Style | None = None
    _part_styles: dict[str, Style] | None = None
    _lines_drawn: tuple[Region, list[Strip]] | None = None

    def notify_style_update(self) -> None:
        """Other rules hold from now on."""
        self._forget_styles()
        super().notify_style_update()

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """As ever; where all is drawn anew the styles are asked for anew, too."""
        if not regions:
            self._forget_styles()
        if layout:
            # Textual counts up what it keeps box sizes by only with the first of several requests:
            # where a screen is laid out between two of them, the size of the first would stay.
            self._box_model_cache.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _forget_styles(self) -> None:
        self._own_style = self._part_styles = None

    @property
    def rich_style(self) -> Style:
        """The style of the widget itself."""
        if self._own_style is None:
            self._own_style = super().rich_style
        return self._own_style

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        """The style of a component; with ``partial`` only what it adds to the widget's own."""
        if not partial or len(names) != 1:
            return super().get_component_rich_style(*names, partial=partial, default=default)
        if self._part_styles is None:
            self._part_styles = {}
        style = self._part_styles.get(names[0])
        if style is None:
            style = super().get_component_rich_style(names[0], partial=True, default=default)
            self._part_styles[names[0]] = style
        return style

    def render_lines(self, crop: Region) -> list[Strip]:
        """The widget's lines with all that stands around them; only those that have changed are
        made."""
        changed = [y for y in crop.line_range if self._styles_cache.is_dirty(y)]
        if self._lines_drawn is None or self._lines_drawn[0] != crop:
            self._lines_drawn = (crop, super().render_lines(crop))
        elif changed:
            first, end = changed[0], changed[-1] + 1
            part = Region(crop.x, first, crop.width, end - first)
            self._lines_drawn[1][first - crop.y : end - crop.y] = super().render_lines(part)
        return self._lines_drawn[1]

    def _set_dirty(self, *regions: Region) -> None:
        # Textual's one place for what is to be drawn; without regions that is everything, and the
        # lines that it marks are too few by those of the border.
        if not regions:
            self._lines_drawn = None
        super()._set_dirty(*regions)
