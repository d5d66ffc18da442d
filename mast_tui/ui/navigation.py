"""The main screens beside the one that is open, and what can be reached from all of them."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import SystemCommand
from textual.screen import Screen

from mast_tui.ui.actions.registry import Where, actions_for
from mast_tui.ui.services.judging import Judging


class Rooms(Judging):
    """Opens screens by their keys; each is imported when it is first shown."""

    @property
    def keys_set(self) -> dict[str, tuple[str, ...]]:
        """Keys that the person has set."""
        return dict(self.configuration.keys)

    def show_room(self, screen: Screen[None]) -> None:
        """Show one of the main screens; another that is open gives way, an open trace stays."""
        from mast_tui.ui.screens.base_screen import Room

        while isinstance(self.screen, Room):
            self.pop_screen()
        self._leave_trace()
        self.push_screen(screen)

    def _leave_trace(self) -> None:
        from mast_tui.ui.annotate.screen import AnnotateScreen

        if isinstance(self.screen, AnnotateScreen):
            self.screen.leave_for_a_while()

    def action_library(self) -> None:
        """The library of traces."""
        from mast_tui.ui.library.screen import LibraryScreen

        while len(self.screen_stack) > 1:
            if isinstance(self.screen, LibraryScreen):
                self.screen.refresh_rows()
                return
            self._leave_trace()
            self.pop_screen()
        self.push_screen(LibraryScreen())

    def action_adjudicate(self) -> None:
        """The queue of disagreements."""
        from mast_tui.ui.adjudicate.screen import AdjudicateScreen

        self.show_room(AdjudicateScreen())

    def action_agreement(self) -> None:
        """The agreement per mode."""
        from mast_tui.ui.reports.screen import AgreementScreen

        self.show_room(AgreementScreen())

    def action_signatures(self) -> None:
        """How and why runs fail."""
        from mast_tui.ui.reports.screen import SignaturesScreen

        self.show_room(SignaturesScreen())

    def action_runs(self) -> None:
        """What the judges have run on."""
        from mast_tui.ui.judge_runs.runs import RunsScreen

        self.show_room(RunsScreen())

    def action_study(self) -> None:
        """What was set up, and how far everybody is."""
        from mast_tui.ui.study.screen import StudyScreen

        self.show_room(StudyScreen())

    def action_guidelines(self) -> None:
        """What was agreed about the mode under the cursor of the open trace's taxonomy, to read."""
        from mast_tui.ui.annotate.screen import AnnotateScreen
        from mast_tui.ui.study.guidelines import GuidelinesScreen

        if isinstance(self.screen, AnnotateScreen):
            mode = self.screen.modes.mode or self.taxonomy.modes[0]
            self._leave_trace()
            self.push_screen(GuidelinesScreen(mode.slug))

    def action_keys_help(self) -> None:
        """All keys of the screen that is open."""
        from mast_tui.ui.dialogs.help import HelpScreen

        where = getattr(self.screen, "where", Where.EVERYWHERE)
        self.push_screen(HelpScreen(where, self.keys_set))

    def action_goto(self) -> None:
        """Go to a number, a key or an action by name."""
        from mast_tui.ui.dialogs.goto import go_somewhere

        go_somewhere(self)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every action of the open screen and of the whole app."""
        where = getattr(screen, "where", Where.EVERYWHERE)
        for action in (*actions_for(where), *actions_for(Where.EVERYWHERE)):
            if not action.name.startswith(("digit_", "side_")):
                yield SystemCommand(
                    action.help, action.id, lambda command=action.command: self.run_named(command)
                )

    async def run_named(self, command: str) -> None:
        """Run an action of the registry as its key would."""
        await self.screen.run_action(command)
