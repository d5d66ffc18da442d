"""Styles that are worked out once and not for every line that is drawn."""

from __future__ import annotations

from typing import Self

from rich.style import Style
from textual.geometry import Region
from textual.widget import Widget


class KnownStyles(Widget):
    """A widget that keeps its styles until they change.

    Textual forgets those of components whenever any line is to be drawn again, and works out a
    widget's own style, through all that it stands in, each time that it is asked for.
    """

    _own_style: Style | None = None
    _part_styles: dict[str, Style] | None = None

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
