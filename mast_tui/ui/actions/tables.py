"""The record of an action, and a table of the actions of each screen."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple


class Where(StrEnum):
    """The screens on which an action can be taken."""

    EVERYWHERE = "everywhere"
    LIBRARY = "library"
    ANNOTATE = "annotate"
    ADJUDICATE = "adjudicate"
    AGREEMENT = "agreement"
    AGREEMENT_TRACES = "agreement_traces"
    RUNS = "runs"
    RUN = "run"
    COMPARISON = "comparison"
    TEACHING = "teaching"
    GUIDELINES = "guidelines"
    SIGNATURES = "signatures"
    SIGNATURE_TRACES = "signature_traces"
    STUDY = "study"
    OPEN_CODES = "open_codes"
    SIDE_BY_SIDE = "side_by_side"


class KeyAction(NamedTuple):
    """An action of a screen, and its keys.

    Attributes:
        where: The screen.
        name: The name of the action in the configuration file.
        key_names: The default keys, with spaces between them.
        title: The title in the footer.
        help: The effect, for help and palette.
        own_command: The Textual action to run; empty for the action of the same name.
        hint: The order in the footer, where high numbers are dropped first; 0 for no hint.
        priority: Whether the keys work while the user types.
        section: The heading in the help; empty for the title of the screen.
        while_editing: Whether the keys work while a label or suggestion is edited.
    """

    where: Where
    name: str
    key_names: str
    title: str
    help: str
    own_command: str = ""
    hint: int = 0
    priority: bool = False
    section: str = ""
    while_editing: bool = False

    @property
    def id(self) -> str:
        """The id of the action in the configuration file and the palette."""
        return f"{self.where}.{self.name}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The default keys."""
        return tuple(self.key_names.split())

    @property
    def command(self) -> str:
        """The Textual action to run."""
        return self.own_command or self.name


def moves(where: Where) -> tuple[KeyAction, ...]:
    """Return the actions that move over a list."""
    move = partial(KeyAction, where, section="Move")
    return (
        move("up", "up k", "up", "One line up", "move(-1)"),
        move("down", "down j", "down", "One line down", "move(1)"),
        move("top", "g home", "first", "To the first line", "move_to_start"),
        move("bottom", "G end", "last", "To the last line", "move_to_end"),
        move("page_up", "pageup", "page up", "One page up", "move_page(-1)"),
        move("page_down", "pagedown", "page down", "One page down", "move_page(1)"),
        move("half_up", "ctrl+u", "half page up", "Half a page up", "move_half(-1)"),
        move("half_down", "ctrl+d", "half page down", "Half a page down", "move_half(1)"),
    )


def scrolls(
    where: Where,
    subject: str,
    *,
    up: str = "b",
    section: str = "",
    while_editing: bool = False,
) -> tuple[KeyAction, KeyAction]:
    """Return the two actions that scroll a text beside a list.

    Args:
        where: The screen of the actions.
        subject: The name of the text in the help.
        up: The key that scrolls up.
        section: The heading of the actions in the help.
        while_editing: Whether their keys work while a label or suggestion is edited.
    """
    scroll = partial(KeyAction, where, section=section, while_editing=while_editing)
    return (
        scroll("text_down", "d", "text ↓", f"Scroll {subject} down", "text(1)"),
        scroll("text_up", up, "text ↑", f"Scroll {subject} up", "text(-1)"),
    )


_everywhere = partial(KeyAction, Where.EVERYWHERE)


EVERYWHERE: Final = (
    _everywhere("library", "L", "library", "Open the library of traces", "app.show('library')"),
    _everywhere(
        "adjudicate",
        "A",
        "adjudicate",
        "Decide the conflicts between annotators",
        "app.show('adjudicate')",
    ),
    _everywhere(
        "agreement", "K", "agreement", "See the agreement per mode", "app.show('agreement')"
    ),
    _everywhere(
        "signatures", "S", "signatures", "See how runs fail (signatures)", "app.show('signatures')"
    ),
    _everywhere("runs", "R", "judge runs", "See the runs of judges", "app.show('runs')"),
    _everywhere("study", "Y", "study", "Set up a study, or see its progress", "app.show('study')"),
    _everywhere(
        "open_codes",
        "+",
        "open codes",
        "Group notes without a mode (open codes), and make modes of them",
        "app.show('open_codes')",
    ),
    _everywhere("back", "escape", "back", "Leave what is open, or go back", hint=93),
    _everywhere("close", "q", "close", "Close what is open; else, in the library, ask to quit"),
    _everywhere(
        "help",
        "? f1",
        "help",
        "All keys of this screen",
        "app.keys_help",
        hint=90,
        while_editing=True,
    ),
    _everywhere(
        "palette",
        ": ctrl+p",
        "go to",
        "Find an action, or a span (in the library: a trace)",
        "app.palette",
        while_editing=True,
    ),
    _everywhere(
        "theme",
        "f9",
        "theme",
        "Choose a theme; the one under the cursor is shown at once",
        "app.theme",
    ),
    _everywhere(
        "another_annotator",
        "&",
        "another annotator",
        "Label as another annotator",
        "app.another_annotator",
    ),
    _everywhere(
        "mouse",
        "f6",
        "mouse",
        "Let the mouse select and copy text, as in a shell; again: undo this",
        "app.mouse",
    ),
    _everywhere(
        "export",
        "V",
        "export",
        "Export labels; in the library or a trace, also pages of runs to hand over",
        "app.export",
    ),
    _everywhere("undo", "u", "undo", "Undo the last change to the open trace"),
    _everywhere("redo", "U ctrl+r", "redo", "Redo the change that was undone"),
    _everywhere("leave", "Q", "quit", "Quit; everything is saved already", "app.quit", hint=95),
    _everywhere("quit", "ctrl+q", "quit", "Quit, also while typing", "app.quit", priority=True),
    _everywhere(
        "suspend",
        "ctrl+z",
        "suspend",
        "Suspend, also while typing; fg in the shell returns",
        "app.suspend_process",
        priority=True,
    ),
)

_library = partial(KeyAction, Where.LIBRARY)

LIBRARY: Final = (
    _library("open", "enter", "open", "Open the trace under the cursor", hint=10),
    _library("filter", "/", "filter", "Show only traces that match", hint=20),
    _library(
        "contents",
        "F",
        "find text",
        "Find text in all traces",
        hint=25,
    ),
    _library(
        "other_search",
        "tab",
        "filter or text search",
        "Change between filter and text search",
        "contents",
    ),
    _library("sort", "o", "sort", "Sort by progress, name, task …", hint=30),
    _library(
        "queue",
        "f",
        "queue",
        "Choose the queue of traces, such as those not finished",
        hint=35,
    ),
    _library(
        "compare",
        "=",
        "compare",
        "Show the run under the cursor beside another, such as a successful one of the same task",
        hint=45,
    ),
    _library("judge", "J", "run judge", "Run a judge on the listed traces, or cancel it", hint=40),
    *scrolls(Where.LIBRARY, "the task of the trace"),
    *moves(Where.LIBRARY),
)

_annotate = partial(KeyAction, Where.ANNOTATE)
_move = partial(_annotate, section="Move", while_editing=True)
_label = partial(_annotate, section="Label")
_mark = partial(_label, while_editing=True)
_suggest = partial(_annotate, section="Suggestions")
_find = partial(_annotate, section="Find", while_editing=True)
_read = partial(_annotate, section="Read")
_finish = partial(_annotate, section="Finish")

ANNOTATE: Final = (
    *(
        _label(
            f"digit_{d}",
            str(d),
            "label",
            "Two digits label the span; the same two remove the label",
            f"digit('{d}')",
            hint=10 if d == 1 else 0,
        )
        for d in range(10)
    ),
    _mark(
        "find_mode",
        "l",
        "modes",
        "Find a mode by name, definition or code",
        "part('labelling.find_mode')",
        hint=24,
    ),
    _mark("range", "v", "range", "Mark a range of spans, then label it", hint=40),
    _mark(
        "extend_down",
        "shift+down",
        "range ↓",
        "Begin a range, or extend it to the next span",
        "extend(1)",
    ),
    _mark(
        "extend_up",
        "shift+up",
        "range ↑",
        "Begin a range, or extend it to the previous span",
        "extend(-1)",
    ),
    _mark(
        "other_end",
        "o",
        "other end",
        "Move the other end of the range",
        "part('marking.go_to_other_end')",
    ),
    _mark(
        "quote",
        'w "',
        "quote",
        "Mark words inside the span, then label them",
        "part('marking.begin_quote')",
        hint=42,
    ),
    _mark(
        "whole", "t", "whole trace", "Label the whole trace", "part('marking.toggle_whole_trace')"
    ),
    _suggest(
        "next_suggestion",
        "] .",
        "suggestion",
        "Next suggestion, at its evidence",
        "part('suggestions.go_to_next', 1)",
        hint=15,
    ),
    _suggest(
        "previous_suggestion",
        "[ ,",
        "previous suggestion",
        "Previous suggestion, at its evidence",
        "part('suggestions.go_to_next', -1)",
    ),
    _suggest(
        "accept",
        "a",
        "accept",
        "Accept the suggestion and go to the next",
        "part('suggestions.answer', True)",
        hint=20,
    ),
    _suggest(
        "reject",
        "x",
        "reject",
        "Reject the suggestion and go to the next",
        "part('suggestions.answer', False)",
        hint=21,
    ),
    _suggest(
        "answer_many",
        "X",
        "answer many",
        "Reject, accept or hide all suggestions of a rule, a mode or a judge, in one step",
        "part('suggestions.answer_many')",
    ),
    _suggest(
        "edit",
        "e",
        "edit",
        "Change the range or mode of the suggestion, or of your label here",
        hint=22,
    ),
    _label(
        "absent",
        "-",
        "absent",
        "Then two digits: set that mode absent in this trace",
        "part('labelling.begin_verdict', 'absent')",
        hint=50,
    ),
    _label(
        "unsure",
        "_",
        "unsure",
        "Then two digits: set that mode unsure in this trace",
        "part('labelling.begin_verdict', 'unsure')",
    ),
    _label(
        "note",
        "m",
        "note",
        "Write a note on the label, or on the span",
        "part('labelling.act_on_label', 'note')",
        hint=26,
    ),
    _label(
        "severity",
        "f",
        "severity",
        "Set the severity of the label under the cursor: fatal, benign or none",
        "part('labelling.act_on_label', 'severity')",
    ),
    _label(
        "confidence",
        "c",
        "confidence",
        "Set how sure you are of the label under the cursor",
        "part('labelling.act_on_label', 'confidence')",
    ),
    _label(
        "remove",
        "backspace",
        "remove",
        "Remove the label under the cursor",
        "part('labelling.act_on_label', 'remove')",
    ),
    _label(
        "my_labels",
        "M",
        "my labels",
        "List your labels on this trace, to go to them or change them",
        hint=57,
    ),
    *moves(Where.ANNOTATE),
    _find("search", "/", "search", "Find text in all spans", "part('search.open')", hint=30),
    _find("search_next", "n", "next match", "Next match", "part('search.go_to_next', 1)"),
    _find(
        "search_previous", "N", "previous match", "Previous match", "part('search.go_to_next', -1)"
    ),
    _find(
        "search_regex",
        "ctrl+t",
        "regular expression",
        "Search with a regular expression; again: with plain text",
        "part('search.toggle_regex')",
    ),
    _find(
        "filter",
        "F",
        "show only…",
        "Show only errors, matches, labelled steps, one kind …",
        "part('filter.choose')",
        hint=67,
    ),
    _move(
        "go_back",
        "h ctrl+o",
        "back",
        "Go back to where you were before a jump, such as to a match or a suggestion",
        "trail(-1)",
    ),
    _move("go_forward", "I", "forward", "Go forward again after going back", "trail(1)"),
    _move("next_error", "E", "next error", "Next error: a step that failed", "error(1)"),
    _move("previous_error", "B ctrl+e", "previous error", "Previous error", "error(-1)"),
    _move(
        "look_here",
        "*",
        "look here",
        "Next likely place of the decisive step (┊), from mast-tui exam --coverage --keep",
    ),
    _read(
        "fold",
        "space",
        "fold",
        "Fold or unfold repeated steps, sub-steps or a category; in full text: next page",
        while_editing=True,
    ),
    _read(
        "compare",
        "=",
        "compare",
        "Show what differs from the earlier step that this one repeats",
        "beside('repeat')",
        while_editing=True,
    ),
    _read(
        "answer_key",
        "i",
        "answer key",
        "Show expected actions, reference answer, rewards, the scorer's reasons, patches",
        "beside('answer key')",
    ),
    _read(
        "artefacts",
        "s",
        "files, results",
        "Show a file as it is at this step, with its changes, or the patch, tests and scores",
        "beside('artefacts')",
    ),
    _read(
        "usage",
        "$",
        "time, tokens",
        "Sum the time, the tokens and the cost by agent and by tool",
        "beside('usage')",
    ),
    _read(
        "copy",
        "y",
        "copy",
        "Copy the span's text, or the quote",
        "part('copying.copy')",
        while_editing=True,
    ),
    _read(
        "copy_what",
        "C",
        "copy…",
        "Copy the text, its place in the file, or the whole trace",
        "part('copying.choose')",
    ),
    _move(
        "pane",
        "tab",
        "other pane",
        "Go to the next pane, or to the next label while a key asks which label",
        hint=70,
    ),
    _move("drawer", "T", "taxonomy", "Show or hide the taxonomy on a narrow screen", hint=72),
    *scrolls(Where.ANNOTATE, "the span's text", section="Read", while_editing=True),
    _read(
        "read",
        "z enter",
        "read",
        "Show the text in the whole window; again: go back, and show any pictures",
        hint=38,
    ),
    _move("next_span", ") ;", "next span", "Next span", "span(1)"),
    _move("previous_span", "( '", "previous span", "Previous span", "span(-1)"),
    _read(
        "next_split",
        "Z",
        "more text",
        "Make the text pane higher; after the highest, low again",
        "part('panes.next_split')",
    ),
    _read(
        "split_up",
        "ctrl+up",
        "border up",
        "Move the border above the text up",
        "part('panes.move_split', 1)",
    ),
    _read(
        "split_down",
        "ctrl+down",
        "border down",
        "Move the border above the text down",
        "part('panes.move_split', -1)",
    ),
    _read(
        "time_bar",
        "H",
        "time bar",
        "Show or hide the time of each step",
        "part('panes.toggle_bar')",
    ),
    _read("raw", "p", "raw text", "Switch between raw and formatted text", while_editing=True),
    _read("wrap", "W", "wrap", "Wrap long lines of the text, or not", while_editing=True),
    _read(
        "follow",
        "f5 O",
        "read on",
        "Read what is new in the trace's file, or all if it was replaced",
        "part('following.check_now')",
    ),
    _annotate(
        "next_trace",
        "} >",
        "next trace",
        "Next trace in the queue",
        "trace(1)",
        hint=75,
        section="Move",
    ),
    _annotate(
        "previous_trace",
        "{ <",
        "previous trace",
        "Previous trace in the queue",
        "trace(-1)",
        section="Move",
    ),
    _finish(
        "finish",
        "D",
        "finish",
        "Finish, so that your labels count; asks first if spans are unread",
        "part('finish.end_pass')",
        hint=28,
    ),
    _finish(
        "reveal",
        "r",
        "reveal",
        "After finishing: show others' labels and, if blind, suggestions and outcome",
        "part('finish.reveal')",
    ),
    _suggest("judge", "J", "run judge", "Run a judge on this trace, or cancel it"),
    _label("guidelines", "P", "guidelines", "Open the guidelines of the mode, with decided cases"),
    _mark(
        "word_right",
        "right",
        "next word",
        "Next word while you mark a quote; else scroll long lines",
        "word(1)",
    ),
    _mark(
        "word_left",
        "left",
        "previous word",
        "Previous word while you mark a quote; else scroll long lines",
        "word(-1)",
    ),
)

_adjudicate = partial(KeyAction, Where.ADJUDICATE)

ADJUDICATE: Final = (
    *(
        _adjudicate(
            f"side_{d}",
            str(d),
            "take a side",
            "Take that annotator's side",
            f"side({d})",
            hint=10 if d == 1 else 0,
        )
        for d in range(1, 10)
    ),
    _adjudicate(
        "both",
        "b",
        "both",
        "Keep all places that the sides marked; on ≠ this decides present",
        hint=20,
    ),
    _adjudicate(
        "nobody",
        "0",
        "absent",
        "On ≠: decide absent. On ≈: drop the disputed places; the mode stays present",
        hint=30,
    ),
    _adjudicate("unsure", "_", "unsure", "Decide unsure", hint=35),
    _adjudicate(
        "boundary",
        "e",
        "boundary",
        "Move one end of the range; again: the other end",
        hint=40,
    ),
    _adjudicate(
        "other_mode", "l", "other mode", "Choose another mode, at the same places", hint=45
    ),
    _adjudicate(
        "enter",
        "enter",
        "evidence",
        "Go to the evidence, or decide for the boundary that you moved",
        hint=52,
    ),
    _adjudicate(
        "next_conflict", "] .", "next conflict", "Next open conflict", "conflict(1)", hint=50
    ),
    _adjudicate(
        "previous_conflict", "[ ,", "previous conflict", "Previous open conflict", "conflict(-1)"
    ),
    _adjudicate("next_trace", "} >", "next trace", "Next trace with conflicts", "trace(1)"),
    _adjudicate(
        "previous_trace", "{ <", "previous trace", "Previous trace with conflicts", "trace(-1)"
    ),
    _adjudicate(
        "agreed", "v", "agreed items", "Show or hide agreed items: modes without conflict", hint=55
    ),
    _adjudicate(
        "overrule",
        "x",
        "overrule",
        "Overrule an agreed mode: present becomes absent, or the reverse",
    ),
    _adjudicate(
        "confirm",
        "c",
        "confirm",
        "On a row with ! (an answer is new or has changed): keep the decision",
    ),
    _adjudicate(
        "reason",
        "m",
        "reason",
        "Write why you decided this row; on an open row, why you made the last decision",
        hint=57,
    ),
    _adjudicate("names", "h", "names", "Hide the sides' names, or show them", hint=60),
    _adjudicate("judge", "J", "judge's verdict", "Show the judge's verdict, after the decision"),
    _adjudicate(
        "guidelines",
        "P p",
        "guidelines",
        "Open the guidelines of the mode, with decided cases",
        hint=58,
    ),
    *scrolls(Where.ADJUDICATE, "the evidence", up="s"),
    _adjudicate("pane", "tab", "other pane", "Go to the other pane"),
    *moves(Where.ADJUDICATE),
)

_agreement = partial(KeyAction, Where.AGREEMENT)

AGREEMENT: Final = (
    _agreement(
        "open",
        "enter",
        "traces counted",
        "List the traces that the figure counts, disagreements first",
        hint=5,
    ),
    _agreement("page", "tab", "next page", "The next page of figures", "page(1)", hint=10),
    _agreement("modes", "1", "modes", "Agreement per mode", "show_page('modes')"),
    _agreement(
        "categories", "2", "categories", "Agreement per category", "show_page('categories')"
    ),
    _agreement("pairs", "3", "pairs", "Agreement of every two annotators", "show_page('pairs')"),
    _agreement("spans", "4", "places", "Agreement on places", "show_page('spans')"),
    _agreement("judge", "5", "judge", "Quality of a judge", "show_page('judge')"),
    _agreement(
        "left",
        "left h",
        "column left",
        "Choose the cell to the left",
        "across(-1)",
    ),
    _agreement(
        "right",
        "right l",
        "column right",
        "Choose the cell to the right",
        "across(1)",
    ),
    _agreement("next_judge", "] .", "next judge", "Another judge", "next_judge(1)"),
    _agreement("previous_judge", "[ ,", "previous judge", "The previous judge", "next_judge(-1)"),
    _agreement(
        "against", "c", "against", "Compare the judge with gold, or with the next annotator"
    ),
    _agreement(
        "seen",
        "s",
        "judge was seen",
        "Count, or leave out, verdicts given with suggestions on screen",
    ),
    _agreement("adjudicate", "a", "adjudicate", "Decide the conflicts about the mode", hint=15),
    _agreement(
        "passes",
        "p",
        "first or last finish",
        "If annotators finished a trace again: count the labels of the first or of the last finish",
        hint=20,
    ),
    _agreement(
        "look",
        "o",
        "look as adjudicator",
        "See others' labels on traces that you have not finished; this is recorded",
        hint=30,
    ),
    _agreement("anew", "f5 O", "count again", "Compute the figures again with the newest labels"),
    *scrolls(Where.AGREEMENT, "the detail of the row"),
    *moves(Where.AGREEMENT),
)

_agreement_traces = partial(KeyAction, Where.AGREEMENT_TRACES)

AGREEMENT_TRACES: Final = (
    _agreement_traces(
        "open",
        "enter",
        "open",
        "Adjudicate the mode, or open the trace where the sides differ",
        hint=5,
    ),
    _agreement_traces(
        "differing",
        "v",
        "only where they differ",
        "List only where the sides differ, or all",
        hint=10,
    ),
    *moves(Where.AGREEMENT_TRACES),
)

_runs = partial(KeyAction, Where.RUNS)

RUNS: Final = (
    _runs(
        "open", "enter", "its traces", "See the traces of the run, those that failed first", hint=5
    ),
    _runs("judge", "J", "run judge", "Run a judge on the library's traces, or cancel it", hint=10),
    _runs("mark", "v", "mark", "Mark the run, to compare it with another", hint=15),
    _runs("compare", "=", "compare", "Compare the marked run with this one", hint=20),
    _runs("gold", "c", "with gold", "Compare the run with the gold", hint=25),
    *scrolls(Where.RUNS, "the detail of the run"),
    *moves(Where.RUNS),
)

_run = partial(KeyAction, Where.RUN)

RUN: Final = (
    _run("open", "enter", "open", "Open the trace at its next suggestion", hint=5),
    _run(
        "answers",
        "a",
        "answers",
        "Read what the model answered about the trace, word for word",
        hint=10,
    ),
    *scrolls(Where.RUN, "the detail of the trace"),
    *moves(Where.RUN),
)

_comparison = partial(KeyAction, Where.COMPARISON)

COMPARISON: Final = (
    _comparison(
        "open", "enter", "open", "See the traces of the mode, or open one at its evidence", hint=5
    ),
    _comparison("pane", "tab h l", "other pane", "Go to the other pane", hint=10),
    _comparison(
        "seen", "o", "judge was seen", "Count also gold that was decided with a judge on screen"
    ),
    _comparison(
        "wrong", "x", "wrong", "Mark the judge as wrong on this trace, with the reason", hint=15
    ),
    _comparison("guideline", "m", "guideline", "Write a guideline for the mode", hint=20),
    _comparison("teach", "t", "teach", "See the next version of the judge and its cost", hint=25),
    _comparison(
        "default", "v", "make default", "Make this judge the default; undo goes back", hint=30
    ),
    *moves(Where.COMPARISON),
)

_teaching = partial(KeyAction, Where.TEACHING)

TEACHING: Final = (
    _teaching("choose", "space x", "choose", "Show this place to the judge, or not", hint=5),
    _teaching("run", "enter", "run", "Run the new version", "open", hint=10),
    *scrolls(Where.TEACHING, "the change of the prompt"),
    *moves(Where.TEACHING),
)

_signatures = partial(KeyAction, Where.SIGNATURES)

SIGNATURES: Final = (
    _signatures(
        "open", "enter", "traces counted", "List the traces that the bar or cell counts", hint=5
    ),
    _signatures("page", "tab", "next page", "The next page of figures", "page(1)", hint=10),
    _signatures(
        "modes",
        "1",
        "modes",
        "Frequency of each mode in failed and successful traces",
        "show_page('modes')",
    ),
    _signatures(
        "onset",
        "2",
        "onset",
        "Position of failures in the run, and their order",
        "show_page('onset')",
    ),
    _signatures("together", "3", "together", "Modes that occur together", "show_page('together')"),
    _signatures("traces", "4", "traces", "Modes of each trace", "show_page('traces')"),
    _signatures("helps", "5", "what helps", "Advice against each mode", "show_page('helps')"),
    _signatures(
        "experiment",
        "x",
        "experiment",
        "Groups as arms over the same tasks, the first one as the baseline",
        "show_page('experiment')",
    ),
    _signatures("left", "left h", "bar left", "The bar or column to the left", "across(-1)"),
    _signatures("right", "right l", "bar right", "The bar or column to the right", "across(1)"),
    _signatures(
        "next_group",
        "] .",
        "next group",
        "The next model, system or benchmark",
        "next_group(1)",
        hint=15,
    ),
    _signatures("previous_group", "[ ,", "previous group", "The previous group", "next_group(-1)"),
    _signatures("choose_group", "/", "group…", "Choose a group by its name", hint=25),
    _signatures(
        "by", "v", "group by", "Group by model, system, benchmark, version, reader, or not", hint=20
    ),
    _signatures(
        "labels", "w", "whose labels", "Gold, or one annotator's or judge's labels", hint=30
    ),
    _signatures(
        "outcome", "f", "failed below", "Derive the outcome from the score, or not", hint=40
    ),
    _signatures(
        "every",
        "a",
        "failed or all",
        "On the pages onset and together: count failed traces, or all",
        hint=35,
    ),
    _signatures(
        "look",
        "o",
        "look as adjudicator",
        "See others' labels on traces that you have not finished; this is recorded",
        hint=50,
    ),
    _signatures("anew", "f5 O", "count again", "Compute the figures again with the newest labels"),
    *scrolls(Where.SIGNATURES, "the detail of the row"),
    *moves(Where.SIGNATURES),
)

_signature_traces = partial(KeyAction, Where.SIGNATURE_TRACES)

SIGNATURE_TRACES: Final = (
    _signature_traces("open", "enter", "open", "Open the trace at the mode", hint=5),
    *moves(Where.SIGNATURE_TRACES),
)

_guidelines = partial(KeyAction, Where.GUIDELINES)

GUIDELINES: Final = (
    _guidelines("open", "enter", "open case", "Go to the decided case under the cursor", hint=10),
    _guidelines("entry", "tab", "next entry", "Next guideline or case", hint=20),
    _guidelines("write", "m", "write", "Write a guideline for the mode", hint=30),
    _guidelines("edit", "e", "edit", "Edit the guideline under the cursor", hint=40),
    _guidelines("take_back", "x", "remove", "Remove the guideline under the cursor", hint=50),
    _guidelines("next_mode", "} >", "next mode", "The page of the next mode", "mode(1)", hint=60),
    _guidelines(
        "previous_mode", "{ <", "previous mode", "The page of the previous mode", "mode(-1)"
    ),
    *moves(Where.GUIDELINES),
)

_study = partial(KeyAction, Where.STUDY)

STUDY: Final = (
    _study("set_up", "e", "set up", "Set the study up, or change it", hint=10),
    _study(
        "add", "a", "add traces", "Add traces of the library that the study does not have", hint=20
    ),
    _study("join", "n", "join", "Let a person join as an annotator"),
    _study(
        "release",
        "r",
        "give back",
        "Give the unfinished traces of the annotator under the cursor to the others",
        "give_back",
    ),
    _study("leave_study", "x", "leave", "Let the annotator under the cursor leave the study"),
    *scrolls(Where.STUDY, "the protocol"),
    *moves(Where.STUDY),
)

_open_codes = partial(KeyAction, Where.OPEN_CODES)

OPEN_CODES: Final = (
    _open_codes(
        "open",
        "enter",
        "open",
        "Open the trace at the place; for a group, at its first place",
        hint=5,
    ),
    _open_codes(
        "mark",
        "v space",
        "mark",
        "Mark the place or the whole group, or remove the mark",
        hint=10,
    ),
    _open_codes(
        "new_mode",
        "n",
        "make a mode",
        "Make a mode of the marked places, or of the group under the cursor",
        hint=15,
    ),
    _open_codes(
        "tag",
        "t",
        "tag",
        "Add or remove a tag of the marked places, or of those under the cursor",
        hint=17,
    ),
    _open_codes(
        "search",
        "/",
        "search",
        "Show only texts with the typed words or #tag; an empty line shows all",
        hint=20,
    ),
    _open_codes(
        "group_by_model",
        "J",
        "ask the model",
        "Let the model of config.toml group texts without a tag, or group by words again",
        hint=22,
    ),
    _open_codes("next_group", "tab } >", "next group", "Go to the next group", "group(1)", hint=25),
    _open_codes("previous_group", "{ <", "previous group", "Go to the previous group", "group(-1)"),
    *scrolls(Where.OPEN_CODES, "the text"),
    *moves(Where.OPEN_CODES),
)

_side_by_side = partial(KeyAction, Where.SIDE_BY_SIDE)

SIDE_BY_SIDE: Final = (
    _side_by_side(
        "fork", "f", "where they diverge", "Go to the step at which the runs diverge", hint=10
    ),
    _side_by_side(
        "next",
        "] .",
        "next difference",
        "Go to the next step at which the agents differ",
        "difference(1)",
        hint=20,
    ),
    _side_by_side(
        "previous",
        "[ ,",
        "previous difference",
        "Go to the previous step at which the agents differ",
        "difference(-1)",
    ),
    _side_by_side(
        "open_a", "enter", "open A", "Open the run on the left at this step", "open('a')", hint=30
    ),
    _side_by_side(
        "open_b", "o", "open B", "Open the run on the right at this step", "open('b')", hint=40
    ),
    *scrolls(Where.SIDE_BY_SIDE, "the difference"),
    *moves(Where.SIDE_BY_SIDE),
)

ACTIONS: Final[tuple[KeyAction, ...]] = (
    *EVERYWHERE,
    *LIBRARY,
    *ANNOTATE,
    *ADJUDICATE,
    *AGREEMENT,
    *AGREEMENT_TRACES,
    *RUNS,
    *RUN,
    *COMPARISON,
    *TEACHING,
    *SIGNATURES,
    *SIGNATURE_TRACES,
    *GUIDELINES,
    *STUDY,
    *OPEN_CODES,
    *SIDE_BY_SIDE,
)
"""Every action, in the order in which help and docs/keys.md show them."""

SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "everywhere.undo": "revert",
        "everywhere.adjudicate": "resolve gold",
        "everywhere.export": "save gold datasheet",
        "everywhere.theme": "dark light colours colors",
        "everywhere.leave": "exit",
        "everywhere.quit": "exit",
        "everywhere.help": "keys",
        "library.filter": "find search",
        "library.contents": "search",
        "annotate.remove": "delete",
        "annotate.search": "find",
        "annotate.filter": "filter",
    }
)
"""Other words by which the palette finds actions."""
