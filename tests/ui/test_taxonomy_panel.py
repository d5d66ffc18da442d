"""The taxonomy beside the trace: rows of groups and modes, and folds."""

from __future__ import annotations

from mast_tui.ui.widgets.taxonomy_panel import ModeState, TaxonomyPanel
from tests.taxonomy.test_levels import desk
from tests.ui.stage import WidgetApp

WIDTH = 34


def rows(panel: TaxonomyPanel) -> list[str]:
    return [panel.render_row(row, WIDTH).text.rstrip() for row in range(panel.row_count)]


async def test_the_taxonomy_has_rows_and_folds() -> None:
    app = WidgetApp(TaxonomyPanel())
    async with app.run_test() as pilot:
        panel = app.query_one(TaxonomyPanel)
        panel.show_taxonomy(desk())
        opened = [
            " Tools › Choice of tool",
            "▌ 01 AC-1 Wrong tool",
            "  02 AC-7 No tool",
            "  Arguments",
            "  03 A.1.2 Wrong value",
            " Talk",
            "  04 Rude",
        ]
        assert rows(panel) == opened

        panel.show_states({"no_tool": ModeState(labels=2, pending=1)})
        panel.toggle_fold()
        assert rows(panel)[:3] == [
            "▌▸ Tools › Choice of tool ×2 ●2 ◌1"[:WIDTH],
            "  Arguments",
            "  03 A.1.2 Wrong value",
        ]
        assert panel.mode is None

        panel.move_by(1)
        assert panel.mode is not None
        assert panel.mode.slug == "wrong_value"
        panel.move_by(-1)
        assert panel.mode is None

        panel.go_to("no_tool")
        assert panel.mode is not None
        assert panel.mode.slug == "no_tool"
        panel.show_states({})
        panel.go_to("wrong_tool")
        assert rows(panel) == opened
        panel = app.query_one(TaxonomyPanel)
        panel.show_taxonomy(desk())
        assert panel.render_row(0, 20).text == " T… › Choice of tool"
        await pilot.click(TaxonomyPanel, offset=(3, 5))
        assert rows(panel)[5:] == [" ▸ Talk                         ×1"]
        await pilot.click(TaxonomyPanel, offset=(3, 5))
        await pilot.click(TaxonomyPanel, offset=(3, 5))
        assert panel.row_count == 6
