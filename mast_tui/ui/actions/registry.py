"""The one registry of what keys do: bindings, footer, help, palette and README come from here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from textual.binding import Binding, BindingType

from mast_tui.ui.actions.action import MOVE, Action, Where, rows
from mast_tui.ui.actions.reports import (
    AGREEMENT,
    AGREEMENT_TRACES,
    SIGNATURE_TRACES,
    SIGNATURES,
)
from mast_tui.ui.actions.study import STUDY

__all__ = [
    "ACTIONS",
    "Action",
    "Keymap",
    "Where",
    "actions_for",
    "bindings_for",
    "find_action",
    "keys_of",
    "share_a_screen",
    "shown",
    "textual_keymap",
]

Keymap = Mapping[str, tuple[str, ...]]
"""Keys that a person has set, by action id."""


_EVERYWHERE = (
    *rows(
        Where.EVERYWHERE,
        ("library", "L", "library", "Open the library of traces", "app.library", 0),
        ("adjudicate", "A", "adjudicate", "Settle where annotators differ", "app.adjudicate", 0),
        ("agreement", "K", "agreement", "See the agreement per mode", "app.agreement", 0),
        ("signatures", "S", "signatures", "See how and why runs fail", "app.signatures", 0),
        ("runs", "R", "judge runs", "See what the judges have run on", "app.runs", 0),
        ("study", "Y", "study", "Set a study up, or see how far it is", "app.study", 0),
        ("back", "escape", "back", "Leave what is open, or go back", "back", 0),
        ("help", "? f1", "help", "All keys of this screen", "app.keys_help", 90),
        ("palette", "ctrl+p", "palette", "Every action by name", "app.command_palette", 0),
        ("goto", ":", "go to", "Go to a number, a key or an action", "app.goto", 0),
        ("undo", "u", "undo", "Take back the last change on this trace", "undo", 0),
        ("redo", "U ctrl+r", "redo", "Do again what was taken back", "redo", 0),
        ("leave", "Q", "quit", "Quit; everything is saved already", "app.quit", 95),
    ),
    Action(
        Where.EVERYWHERE,
        "quit",
        ("ctrl+q",),
        "quit",
        "Quit, also while typing",
        "app.quit",
        priority=True,
    ),
    Action(
        Where.EVERYWHERE,
        "suspend",
        ("ctrl+z",),
        "suspend",
        "Suspend, also while typing; fg in the shell comes back",
        "app.suspend_process",
        priority=True,
    ),
)

_LIBRARY = rows(
    Where.LIBRARY,
    *MOVE,
    ("open", "enter", "open", "Open the trace under the cursor", "open", 10),
    ("filter", "/", "filter", "Show only traces that match", "filter", 20),
    ("sort", "o", "sort", "Sort by the next column", "sort", 30),
    ("queue", "f", "queue", "Choose which traces to go through, such as mine to do", "queue", 35),
    ("judge", "J", "run judge", "Run a judge on the listed traces, or cancel it", "judge", 40),
)

_ANNOTATE = rows(
    Where.ANNOTATE,
    *MOVE,
    *(
        (
            f"digit_{d}",
            str(d),
            "label",
            "Two digits label what is under the cursor",
            f"digit('{d}')",
            10 if d == 1 else 0,
        )
        for d in range(10)
    ),
    ("find_mode", "l", "mode…", "Find a mode by name, definition or code", "find_mode", 45),
    ("range", "v", "range", "Mark a range of spans, then label it", "range", 40),
    ("quote", 'w "', "quote", "Mark words inside the span, then label them", "quote", 42),
    ("whole", "t", "whole trace", "Label the whole trace", "whole", 0),
    (
        "next_suggestion",
        "] .",
        "suggestion",
        "Next suggestion, at its evidence",
        "suggestion(1)",
        15,
    ),
    (
        "previous_suggestion",
        "[ ,",
        "previous suggestion",
        "Previous suggestion, at its evidence",
        "suggestion(-1)",
        0,
    ),
    ("accept", "a", "accept", "Accept the suggestion and go on to the next", "accept", 20),
    ("reject", "x", "reject", "Reject the suggestion and go on to the next", "reject", 21),
    ("edit", "e", "edit", "Accept the suggestion with another mode or place", "edit", 22),
    (
        "absent",
        "-",
        "absent",
        "Two digits: that mode does not show in this trace",
        "verdict('absent')",
        50,
    ),
    ("unsure", "_", "unsure", "Two digits: unsure about that mode", "verdict('unsure')", 0),
    ("note", "m", "note", "Write a note on the label, or on the span", "note", 55),
    (
        "severity",
        "f",
        "severity",
        "Fatal, benign or none, for the label under the cursor",
        "severity",
        0,
    ),
    (
        "confidence",
        "c",
        "confidence",
        "How sure you are of the label under the cursor",
        "confidence",
        0,
    ),
    ("remove", "backspace", "remove", "Remove the label under the cursor", "remove", 0),
    ("search", "/", "search", "Find text in all spans", "search", 65),
    ("search_next", "n", "next match", "Next match", "match(1)", 0),
    ("search_previous", "N", "previous match", "Previous match", "match(-1)", 0),
    (
        "search_regex",
        "ctrl+t",
        "regular expression",
        "Find a regular expression, or plain text again; /…/ is one as well",
        "search_regex",
        0,
    ),
    (
        "filter",
        "F",
        "show only…",
        "Show only errors, matches, labelled steps, one kind …",
        "filter",
        67,
    ),
    ("next_error", "E", "next error", "Next step that failed", "error(1)", 0),
    ("previous_error", "B ctrl+e", "previous error", "Previous step that failed", "error(-1)", 0),
    (
        "fold",
        "space",
        "fold",
        "Fold or unfold equal steps, or a sub-agent's, or what belongs under a step",
        "fold",
        0,
    ),
    ("compare", "=", "compare", "What differs from the step that this one repeats", "compare", 0),
    ("copy", "y", "copy", "Copy the span's text to the clipboard", "copy", 0),
    ("pane", "tab", "other pane", "Go to the other pane, or to the next label here", "pane", 70),
    ("drawer", "T", "taxonomy", "Show or hide the taxonomy where it is a drawer", "drawer", 72),
    ("text_down", "d", "text ↓", "Scroll the span's text down", "text(1)", 0),
    ("text_up", "b", "text ↑", "Scroll the span's text up", "text(-1)", 0),
    ("raw", "p", "raw or set out", "Show JSON as it is, or set out in lines", "raw", 0),
    ("wrap", "W", "wrap", "Wrap long lines of the text, or let them run on", "wrap", 0),
    ("next_trace", "} >", "next trace", "Next trace in the queue", "trace(1)", 75),
    ("previous_trace", "{ <", "previous trace", "Previous trace in the queue", "trace(-1)", 0),
    (
        "finish",
        "D",
        "finish",
        "Finish the trace: your labels are frozen as this pass",
        "finish",
        46,
    ),
    (
        "reveal",
        "r",
        "reveal",
        "After finishing: see others' labels and what was hidden",
        "reveal",
        0,
    ),
    ("judge", "J", "run judge", "Run a judge on this trace, or cancel it", "judge", 0),
    ("guidelines", "P", "page", "What was agreed about the mode, to read", "guidelines", 0),
    (
        "word_right",
        "right",
        "next word",
        "Next word, while a quote is being marked; or scroll lines that run on",
        "word(1)",
        0,
    ),
    (
        "word_left",
        "left",
        "previous word",
        "Previous word, while a quote is being marked; or scroll lines that run on",
        "word(-1)",
        0,
    ),
)

_ADJUDICATE = rows(
    Where.ADJUDICATE,
    *MOVE,
    *(
        (
            f"side_{d}",
            str(d),
            "take a side",
            "Take that annotator's side",
            f"side({d})",
            10 if d == 1 else 0,
        )
        for d in range(1, 10)
    ),
    ("both", "b", "both", "Keep what both sides marked", "both", 20),
    ("nobody", "0", "absent", "Nobody is right: the mode is absent", "nobody", 30),
    ("unsure", "_", "unsure", "Leave it as unsure", "unsure", 35),
    (
        "boundary",
        "e",
        "boundary",
        "Move the boundary: move its end, e the other end, Enter decides",
        "boundary",
        40,
    ),
    ("other_mode", "l", "other mode", "It is another mode, at the same place", "other_mode", 45),
    ("enter", "enter", "evidence", "Go to the evidence, or decide for the boundary", "enter", 52),
    ("next_conflict", "] .", "next conflict", "Next conflict", "conflict(1)", 50),
    ("previous_conflict", "[ ,", "previous conflict", "Previous conflict", "conflict(-1)", 0),
    ("next_trace", "} >", "next trace", "Next trace with conflicts", "trace(1)", 0),
    ("previous_trace", "{ <", "previous trace", "Previous trace with conflicts", "trace(-1)", 0),
    ("agreed", "v", "agreed items", "Look through what was agreed", "agreed", 55),
    (
        "overrule",
        "x",
        "overrule",
        "Overrule what was agreed: absent for present, else present in the whole trace",
        "overrule",
        0,
    ),
    ("confirm", "c", "confirm", "Confirm a decision after which a side has changed", "confirm", 0),
    ("reason", "m", "reason", "Say why it was decided so", "reason", 57),
    ("names", "h", "names", "Hide the sides' names, or show them", "names", 60),
    ("judge", "J", "judge's word", "The judge's word, once it is decided", "judge", 0),
    ("guidelines", "p", "page", "What was agreed about the mode, with cases", "guidelines", 58),
    ("text_down", "d", "text ↓", "Scroll the evidence down", "text(1)", 0),
    ("text_up", "s", "text ↑", "Scroll the evidence up", "text(-1)", 0),
    ("pane", "tab", "other pane", "Go to the other pane", "pane", 0),
)

_RUNS = rows(
    Where.RUNS,
    *MOVE,
    (
        "open",
        "enter",
        "its traces",
        "See the traces of the run, those that failed first",
        "open",
        5,
    ),
    (
        "judge",
        "J",
        "run judge",
        "Run a judge on the library's traces, or cancel it",
        "judge",
        10,
    ),
    ("mark", "v", "mark", "Mark the run, to compare it with another", "mark", 15),
    ("compare", "=", "compare", "Compare the marked run with this one", "compare", 20),
    ("gold", "c", "with gold", "Compare the run with the gold", "gold", 25),
    ("text_down", "d", "text ↓", "Scroll what is told of the run down", "text(1)", 0),
    ("text_up", "b", "text ↑", "Scroll what is told of the run up", "text(-1)", 0),
)

_RUN = rows(
    Where.RUN,
    *MOVE,
    ("open", "enter", "open", "Open the trace at its next suggestion", "open", 5),
)

_COMPARISON = rows(
    Where.COMPARISON,
    *MOVE,
    ("open", "enter", "open", "See the traces of the mode, or open one at its evidence", "open", 5),
    ("pane", "tab", "other pane", "Go to the other pane", "pane", 10),
    (
        "seen",
        "o",
        "judge was seen",
        "Count also gold that was settled with a judge on screen",
        "seen",
        0,
    ),
)

_GUIDELINES = rows(
    Where.GUIDELINES,
    *MOVE,
    ("open", "enter", "open case", "Go to the decided case under the cursor", "open", 10),
    ("entry", "tab", "next entry", "Next guideline or case", "entry", 20),
    ("write", "m", "write", "Write down what was agreed about the mode", "write", 30),
    ("edit", "e", "edit", "Put the guideline under the cursor otherwise", "edit", 40),
    ("take_back", "x", "take back", "Take the guideline under the cursor back", "take_back", 50),
    ("next_mode", "} >", "next mode", "The page of the next mode", "mode(1)", 60),
    ("previous_mode", "{ <", "previous mode", "The page of the previous mode", "mode(-1)", 0),
)

ACTIONS: Final[tuple[Action, ...]] = (
    _EVERYWHERE
    + _LIBRARY
    + _ANNOTATE
    + _ADJUDICATE
    + AGREEMENT
    + AGREEMENT_TRACES
    + _RUNS
    + _RUN
    + _COMPARISON
    + SIGNATURES
    + SIGNATURE_TRACES
    + _GUIDELINES
    + STUDY
)
"""Every action, in the order in which help and README show them."""

_SHOWN: Final = {
    "up": "↑", "down": "↓", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End",
    "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab", "backspace": "⌫",
    "f1": "F1", "left": "←", "right": "→",
}  # fmt: skip


def shown(key: str) -> str:
    """How a key is written for people."""
    if key.startswith("ctrl+"):
        return f"^{key[5:]}"
    return _SHOWN.get(key, key)


def actions_for(where: Where) -> tuple[Action, ...]:
    """The actions of one screen, without those that work everywhere."""
    return tuple(action for action in ACTIONS if action.where is where)


def keys_of(action: Action, keymap: Keymap) -> tuple[str, ...]:
    """The keys that run the action, with those that a person has set in place of our own."""
    return keymap.get(action.id, action.keys)


def _joined(keys: Iterable[str]) -> str:
    """Keys as Textual takes them: separated by commas, so that a comma goes by its name."""
    return ",".join("comma" if key == "," else key for key in keys)


def bindings_for(*places: Where) -> list[BindingType]:
    """Textual bindings for the actions of these places; a keymap may change their keys later."""
    return [
        Binding(
            _joined(action.keys),
            action.command,
            action.title,
            show=False,
            tooltip=action.help,
            priority=action.priority,
            id=action.id,
        )
        for action in ACTIONS
        if action.where in places
    ]


def textual_keymap(keymap: Keymap) -> dict[str, str]:
    """A person's keys for ``App.set_keymap``, which knows characters by their names only."""
    return {
        name: ",".join(made.key for made in Binding.make_bindings([Binding(_joined(keys), "")]))
        for name, keys in keymap.items()
    }


def share_a_screen(one: str, other: str) -> bool:
    """Whether two different actions can be taken on one screen, given their ids."""
    places = {one.partition(".")[0], other.partition(".")[0]}
    return one != other and (len(places) == 1 or Where.EVERYWHERE in places)


def find_action(command_id: str) -> Action | None:
    """The action with this id, or None."""
    return next((action for action in ACTIONS if action.id == command_id), None)
