"""The registry of actions: agreed keys, unique keys, and a method for each action."""

from __future__ import annotations

import inspect
from collections import Counter
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Final

import pytest
from textual.actions import parse
from textual.app import App
from textual.binding import Binding
from textual.keys import Keys
from textual.screen import Screen

from mast_tui.ui.actions.registry import (
    ACTIONS,
    KeyAction,
    Where,
    actions_for,
    bindings_for,
    find_action,
    key_text,
    keys_of,
    share_a_screen,
    textual_keymap,
)
from mast_tui.ui.actions.tables import SYNONYMS
from mast_tui.ui.app import MastApp
from mast_tui.ui.reports.agreement import AgreementScreen
from mast_tui.ui.reports.screen import ReportScreen
from mast_tui.ui.reports.signatures import SignaturesScreen
from tests.ui.stage import stage

SCREENS: Final = tuple(where for where in Where if where is not Where.EVERYWHERE)

AGREED: Final = {
    Where.EVERYWHERE: "L A K R escape ? f1 ctrl+p : Q ctrl+q u U ctrl+r",
    Where.LIBRARY: "enter / o",
    Where.ANNOTATE: (
        'up down j k g G pageup pagedown 0 1 2 3 4 5 6 7 8 9 l v w " t ] . [ , a x e - _ '
        "m f c backspace tab / n N space y } > { < D J"
    ),
    Where.ADJUDICATE: "1 2 3 4 5 6 7 8 9 b 0 _ e l",
}
"""Keys that people and scripts rely on."""

PLAIN_TWINS: Final = {
    "everywhere.suspend": "everywhere.palette",
    "everywhere.mouse": "everywhere.palette",
    "everywhere.theme": "everywhere.palette",
    "annotate.search_regex": "annotate.search",
    "annotate.extend_down": "annotate.range",
    "annotate.extend_up": "annotate.range",
    "annotate.split_up": "annotate.next_split",
    "annotate.split_down": "annotate.next_split",
}
"""Actions whose only key has a modifier, and the action with a plain key that does the same."""


def screen_class(where: Where) -> type[Screen[None]]:
    locations = {
        Where.TEACHING: "judge_runs.teaching",
        Where.OPEN_CODES: "open_codes",
        Where.SIDE_BY_SIDE: "side_by_side",
        Where.AGREEMENT: "reports.agreement",
        Where.SIGNATURES: "reports.signatures",
        Where.AGREEMENT_TRACES: "reports.agreement_traces",
        Where.SIGNATURE_TRACES: "reports.signature_traces",
        Where.RUNS: "judge_runs.runs",
        Where.RUN: "judge_runs.runs",
        Where.COMPARISON: "judge_runs.comparison",
        Where.GUIDELINES: "study.guidelines",
    }
    module = import_module(f"mast_tui.ui.{locations.get(where, f'{where}.screen')}")
    name = where.value.title().replace("_", "")
    screen: type[Screen[None]] = getattr(module, f"{name}Screen")
    return screen


def is_plain(key: str) -> bool:
    is_function_key = key[0] == "f" and key[1:].isdigit()
    return "+" not in key[:-1] and not is_function_key


def on_screen(where: Where) -> tuple[KeyAction, ...]:
    return actions_for(where) + actions_for(Where.EVERYWHERE)


def test_actions_have_unique_ids_titles_and_keys_that_terminals_send() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    assert all(find_action(action.id) is action for action in ACTIONS)
    assert find_action("annotate.no_such") is None
    assert all(map(find_action, SYNONYMS))
    names = {key.value for key in Keys}
    for action in ACTIONS:
        assert action.keys, action.id
        for key in action.keys:
            assert len(key) == 1 or key in names, f"{action.id}: {key}"
    for action in ACTIONS:
        assert action.title
        assert action.help[0].isupper()
        assert not action.help.endswith(".")
    assert [action.keys for action in ACTIONS if action.priority] == [("ctrl+q",), ("ctrl+z",)]
    for where in SCREENS:
        hints = [action.hint for action in on_screen(where) if action.hint]
        assert hints
        assert len(set(hints)) == len(hints), where


@pytest.mark.parametrize("where", SCREENS)
def test_each_screen_runs_its_actions_by_distinct_keys(where: Where) -> None:
    keys = Counter(key for action in on_screen(where) for key in action.keys)
    assert [key for key, count in keys.items() if count > 1] == []
    for action in on_screen(where):
        namespace, name, parameters = parse(action.command)
        owner: type[object] = MastApp if namespace == "app" else screen_class(where)
        method = getattr(owner, f"action_{name}", None)
        assert method is not None, f"{action.id}: {owner.__name__} has no action_{name}"
        inspect.signature(method).bind(None, *parameters)
    bound = {binding.id for binding in screen_class(where).BINDINGS if isinstance(binding, Binding)}
    assert {action.id for action in on_screen(where)} <= bound
    assert getattr(screen_class(where), "where", None) is where


async def test_commands_of_the_annotate_screen_name_methods_of_its_parts(small: Path) -> None:
    async with stage(small) as on:
        for action in actions_for(Where.ANNOTATE):
            _, name, parameters = parse(action.command)
            if name == "part":
                method, *arguments = parameters
                inspect.signature(attrgetter(str(method))(on.annotate)).bind(*arguments)


def test_agreed_keys_are_bound() -> None:
    for where, agreed in AGREED.items():
        assert set(agreed.split()) <= {key for action in actions_for(where) for key in action.keys}


def test_keys_with_modifiers_have_a_plain_alternative() -> None:
    by_command: dict[tuple[Where, str], list[str]] = {}
    for action in ACTIONS:
        by_command.setdefault((action.where, action.command), []).extend(action.keys)
    for action in ACTIONS:
        half = action.id.replace(".half_", ".page_")
        twin = find_action(PLAIN_TWINS.get(action.id, half))
        assert twin is not None
        keys = by_command[twin.where, twin.command]
        assert any(is_plain(key) for key in keys), action.id


def test_actions_share_a_screen() -> None:
    assert share_a_screen("annotate.note", "annotate.fold")
    assert share_a_screen("annotate.note", "everywhere.help")
    assert not share_a_screen("annotate.note", "library.sort")
    assert not share_a_screen("annotate.note", "annotate.note")


def test_set_keys_replace_the_defaults_and_are_shown_as_terminals_write_them() -> None:
    action = ACTIONS[0]
    assert (keys_of(action, {}), keys_of(action, {action.id: ("z",)})) == (action.keys, ("z",))

    assert (key_text("ctrl+q"), key_text("Q")) == ("^q", "Q")
    assert len({key_text(key) for a in actions_for(Where.ANNOTATE) for key in a.keys}) == len(
        {key for a in actions_for(Where.ANNOTATE) for key in a.keys}
    )


class RecordingApp(App[None]):
    """An app that records which actions were run."""

    BINDINGS = bindings_for(Where.ANNOTATE)

    def __init__(self) -> None:
        super().__init__()
        self.actions_run: list[object] = []

    def action_part(self, method: str, *arguments: object) -> None:
        self.actions_run += (method, *arguments)


async def test_set_keys_work_for_any_character() -> None:
    app = RecordingApp()
    async with app.run_test() as pilot:
        for key in ("ctrl+n", "&", ",", "m", "é", "f5"):
            app.actions_run.clear()
            keymap = {"annotate.note": (key,), "annotate.previous_suggestion": ("9",)}
            app.set_keymap(textual_keymap(keymap))
            await pilot.press({",": "comma", "&": "ampersand"}.get(key, key))
            await pilot.press("9")
            note = ["labelling.act_on_label", "note"]
            assert app.actions_run == [*note, "suggestions.go_to_next", -1], key


@pytest.mark.parametrize("screen", [AgreementScreen, SignaturesScreen])
def test_report_pages_have_one_key_each(screen: type[ReportScreen]) -> None:
    commands = [parse(action.command) for action in actions_for(screen.where)]
    assert {args[0] for _, name, args in commands if name == "show_page"} == set(screen.pages)
