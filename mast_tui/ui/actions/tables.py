"""The actions of each screen: the record of an action, and a table for each screen."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
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
    GUIDELINES = "guidelines"
    SIGNATURES = "signatures"
    SIGNATURE_TRACES = "signature_traces"
    STUDY = "study"
    OPEN_CODES = "open_codes"
    SIDE_BY_SIDE = "side_by_side"


class KeyAction(NamedTuple):
    """One thing that a person can do, and the keys for it.

    ``command`` is the Textual action that it runs; ``title`` fits the footer; ``hint`` orders the
    footer (0 keeps it out; low numbers stay longest when the screen is narrow).
    """

    where: Where
    name: str
    keys: tuple[str, ...]
    title: str
    help: str
    command: str
    hint: int = 0
    priority: bool = False
    section: str = ""

    @property
    def id(self) -> str:
        """The name by which a configuration file and the palette know the action."""
        return f"{self.where}.{self.name}"


def action(  # noqa: PLR0913 - a row of the table of actions
    where: Where,
    name: str,
    keys: str,
    title: str,
    help: str,
    command: str = "",
    *,
    hint: int = 0,
    priority: bool = False,
    section: str = "",
) -> KeyAction:
    """Write an action down.

    Args:
        where: On which screen it can be taken.
        name: What it is called in a file of settings.
        keys: Its keys, with spaces between them.
        title: What it is called in the footer.
        help: What it does, for help and palette.
        command: The Textual action that it runs, where that is not called as it is.
        hint: Its place in the footer; 0 keeps it out.
        priority: Whether its keys do the same while somebody types.
        section: Under which heading of the screen's help it stands; the screen's own without one.
    """
    taken = tuple(keys.split())
    return KeyAction(where, name, taken, title, help, command or name, hint, priority, section)


def moves(where: Where) -> tuple[KeyAction, ...]:
    """The actions that move over a list."""
    here = partial(action, where, section="Move")
    return (
        here("up", "up k", "up", "One line up", "move(-1)"),
        here("down", "down j", "down", "One line down", "move(1)"),
        here("top", "g home", "first", "To the first line", "move_to_start"),
        here("bottom", "G end", "last", "To the last line", "move_to_end"),
        here("page_up", "pageup", "page up", "One page up", "move_page(-1)"),
        here("page_down", "pagedown", "page down", "One page down", "move_page(1)"),
        here("half_up", "ctrl+u", "half page up", "Half a page up", "move_half(-1)"),
        here("half_down", "ctrl+d", "half page down", "Half a page down", "move_half(1)"),
    )


def scrolls(
    where: Where, what: str, *, up: str = "b", section: str = ""
) -> tuple[KeyAction, KeyAction]:
    """The two actions that scroll a text beside a list.

    Args:
        where: On which screen they can be taken.
        what: What the text is called in help.
        up: The key that scrolls up, where ``b`` does something else.
        section: Under which heading they stand.
    """
    here = partial(action, where, section=section)
    return (
        here("text_down", "d", "text ↓", f"Scroll {what} down", "text(1)"),
        here("text_up", up, "text ↑", f"Scroll {what} up", "text(-1)"),
    )


_everywhere = partial(action, Where.EVERYWHERE)


EVERYWHERE: Final = (
    _everywhere("library", "L", "library", "Open the library of traces", "app.show('library')"),
    _everywhere(
        "adjudicate", "A", "adjudicate", "Settle where annotators differ", "app.show('adjudicate')"
    ),
    _everywhere(
        "agreement", "K", "agreement", "See the agreement per mode", "app.show('agreement')"
    ),
    _everywhere(
        "signatures", "S", "signatures", "See how and why runs fail", "app.show('signatures')"
    ),
    _everywhere("runs", "R", "judge runs", "See what the judges have run on", "app.show('runs')"),
    _everywhere("study", "Y", "study", "Set a study up, or see how far it is", "app.show('study')"),
    _everywhere(
        "open_codes",
        "+",
        "open codes",
        "Gather notes and 'none of these' of all traces, and make modes of them",
        "app.show('open_codes')",
    ),
    _everywhere("back", "escape", "back", "Leave what is open, or go back"),
    _everywhere("close", "q", "close", "Close what is open; in the library ask whether to quit"),
    _everywhere("help", "? f1", "help", "All keys of this screen", "app.keys_help", hint=90),
    _everywhere(
        "palette",
        ": ctrl+p",
        "go to",
        "Every action by name; or go to a number or a key",
        "app.palette",
    ),
    _everywhere(
        "theme",
        "f9",
        "theme",
        "Choose a theme: each is shown as you look, and kept when taken",
        "app.theme",
    ),
    _everywhere(
        "export",
        "V",
        "export",
        "Export labels to a file: gold, one person's or all, in any format",
        "app.export",
    ),
    _everywhere("undo", "u", "undo", "Take back the last change on this trace"),
    _everywhere("redo", "U ctrl+r", "redo", "Do again what was taken back"),
    _everywhere("leave", "Q", "quit", "Quit; everything is saved already", "app.quit", hint=95),
    _everywhere("quit", "ctrl+q", "quit", "Quit, also while typing", "app.quit", priority=True),
    _everywhere(
        "suspend",
        "ctrl+z",
        "suspend",
        "Suspend, also while typing; fg in the shell comes back",
        "app.suspend_process",
        priority=True,
    ),
)

_library = partial(action, Where.LIBRARY)

LIBRARY: Final = (
    *moves(Where.LIBRARY),
    _library("open", "enter", "open", "Open the trace under the cursor", hint=10),
    _library("filter", "/", "filter", "Show only traces that match", hint=20),
    _library(
        "contents",
        "F tab",
        "contents",
        "Find text in all traces; on the line of either search, go to the other search",
        hint=25,
    ),
    _library("sort", "o", "sort", "Sort by the next column", hint=30),
    _library(
        "queue", "f", "queue", "Choose which traces to go through, such as mine to do", hint=35
    ),
    _library(
        "compare",
        "=",
        "compare",
        "Put the run under the cursor beside another, such as one of the same task that succeeded",
        hint=45,
    ),
    _library("judge", "J", "run judge", "Run a judge on the listed traces, or cancel it", hint=40),
)

_annotate = partial(action, Where.ANNOTATE)
_move = partial(_annotate, section="Move")
_label = partial(_annotate, section="Label")
_suggest = partial(_annotate, section="Suggestions")
_find = partial(_annotate, section="Find")
_read = partial(_annotate, section="Read")
_finish = partial(_annotate, section="Finish")

ANNOTATE: Final = (
    *moves(Where.ANNOTATE),
    *(
        _label(
            f"digit_{d}",
            str(d),
            "label",
            "Two digits label what is under the cursor",
            f"digit('{d}')",
            hint=10 if d == 1 else 0,
        )
        for d in range(10)
    ),
    _label("find_mode", "l", "mode…", "Find a mode by name, definition or code", hint=45),
    _label("range", "v", "range", "Mark a range of spans, then label it", hint=40),
    _label(
        "extend_down",
        "shift+down",
        "range ↓",
        "Stretch the range by the next span, or begin one with it",
        "extend(1)",
    ),
    _label(
        "extend_up",
        "shift+up",
        "range ↑",
        "Stretch the range by the span before, or begin one with it",
        "extend(-1)",
    ),
    _label(
        "other_end",
        "o",
        "other end",
        "Go to the other end of the range that is being marked, to move that one",
    ),
    _label("quote", 'w "', "quote", "Mark words inside the span, then label them", hint=42),
    _label("whole", "t", "whole trace", "Label the whole trace"),
    _suggest(
        "next_suggestion",
        "] .",
        "suggestion",
        "Next suggestion, at its evidence",
        "suggestion(1)",
        hint=15,
    ),
    _suggest(
        "previous_suggestion",
        "[ ,",
        "previous suggestion",
        "Previous suggestion, at its evidence",
        "suggestion(-1)",
    ),
    _suggest("accept", "a", "accept", "Accept the suggestion and go on to the next", hint=20),
    _suggest("reject", "x", "reject", "Reject the suggestion and go on to the next", hint=21),
    _suggest(
        "answer_many",
        "X",
        "answer many",
        "Reject, accept or hide all suggestions of a rule, a mode or a judge, in one step",
    ),
    _suggest(
        "edit",
        "e",
        "edit",
        "Give the suggestion, or your label here, another mode or place",
        hint=22,
    ),
    _label(
        "absent",
        "-",
        "absent",
        "Two digits: that mode does not show in this trace",
        "verdict('absent')",
        hint=50,
    ),
    _label("unsure", "_", "unsure", "Two digits: unsure about that mode", "verdict('unsure')"),
    _label(
        "note", "m", "note", "Write a note on the label, or on the span", "label('note')", hint=55
    ),
    _label(
        "severity",
        "f",
        "severity",
        "Fatal, benign or none, for the label under the cursor",
        "label('severity')",
    ),
    _label(
        "confidence",
        "c",
        "confidence",
        "How sure you are of the label under the cursor",
        "label('confidence')",
    ),
    _label("remove", "backspace", "remove", "Remove the label under the cursor", "label('remove')"),
    _label(
        "my_labels",
        "M",
        "my labels",
        "List what you have said of this trace; keys for labels work on it",
        hint=57,
    ),
    _find("search", "/", "search", "Find text in all spans", hint=65),
    _find("search_next", "n", "next match", "Next match", "match(1)"),
    _find("search_previous", "N", "previous match", "Previous match", "match(-1)"),
    _find(
        "search_regex",
        "ctrl+t",
        "regular expression",
        "Find a regular expression, or plain text again; /…/ is one as well",
    ),
    _find(
        "filter",
        "F",
        "show only…",
        "Show only errors, matches, labelled steps, one kind …",
        hint=67,
    ),
    _move(
        "go_back",
        "h ctrl+o",
        "back",
        "Back to where you were before a jump: to a match, a suggestion, an error, a number",
        "trail(-1)",
    ),
    _move("go_forward", "I", "forth", "Forth again, after going back", "trail(1)"),
    _move("next_error", "E", "next error", "Next step that failed", "error(1)"),
    _move("previous_error", "B ctrl+e", "previous error", "Previous step that failed", "error(-1)"),
    _read(
        "fold",
        "space",
        "fold",
        "Fold or unfold equal steps, a sub-agent's, those under a step, or modes",
    ),
    _read("compare", "=", "compare", "What differs from the step that this one repeats"),
    _read(
        "answer_key",
        "i",
        "answer key",
        "Expected actions, reference answer, rewards, the scorer's words, patches",
    ),
    _read("copy", "y", "copy", "Copy the span's text, or the quote"),
    _read("copy_what", "C", "copy…", "Copy the text, its place in the file, or the whole trace"),
    _move("pane", "tab", "other pane", "Go to the other pane, or to the next label here", hint=70),
    _move("drawer", "T", "taxonomy", "Show or hide the taxonomy where it is a drawer", hint=72),
    *scrolls(Where.ANNOTATE, "the span's text", section="Read"),
    _read(
        "read",
        "z enter",
        "read",
        "The text of the span over the whole window, or back; all keys go on to work",
        hint=44,
    ),
    _move("next_span", ") ;", "next span", "Next span", "span(1)"),
    _move("previous_span", "( '", "previous span", "Previous span", "span(-1)"),
    _read(
        "next_split", "Z", "more text", "More of the height for the text; after most of it, little"
    ),
    _read("split_up", "ctrl+up", "border up", "Move the border above the text up", "split(1)"),
    _read(
        "split_down", "ctrl+down", "border down", "Move the border above the text down", "split(-1)"
    ),
    _read("time_bar", "H", "time bar", "Show when each step was, or leave the columns to its text"),
    _read("raw", "p", "raw text", "Show texts as they are, or set out and in colour"),
    _read("wrap", "W", "wrap", "Wrap long lines of the text, or let them run on"),
    _read(
        "follow",
        "f5 O",
        "read on",
        "Read what has come to the file, or all of it where it was replaced or cut",
    ),
    _move("next_trace", "} >", "next trace", "Next trace in the queue", "trace(1)", hint=75),
    _move("previous_trace", "{ <", "previous trace", "Previous trace in the queue", "trace(-1)"),
    _finish(
        "finish", "D", "finish", "Finish the trace: your labels are frozen as this pass", hint=46
    ),
    _finish("reveal", "r", "reveal", "After finishing: see others' labels and what was hidden"),
    _suggest("judge", "J", "run judge", "Run a judge on this trace, or cancel it"),
    _label("guidelines", "P", "page", "What was agreed about the mode, to read"),
    _label(
        "word_right",
        "right",
        "next word",
        "Next word, while a quote is being marked; or scroll lines that run on",
        "word(1)",
    ),
    _label(
        "word_left",
        "left",
        "previous word",
        "Previous word, while a quote is being marked; or scroll lines that run on",
        "word(-1)",
    ),
)

_adjudicate = partial(action, Where.ADJUDICATE)

ADJUDICATE: Final = (
    *moves(Where.ADJUDICATE),
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
    _adjudicate("both", "b", "both", "Keep all that the sides marked", hint=20),
    _adjudicate(
        "nobody",
        "0",
        "absent",
        "The mode is absent, or no disputed place is taken; among the sides, that place",
        hint=30,
    ),
    _adjudicate("unsure", "_", "unsure", "Leave it as unsure", hint=35),
    _adjudicate(
        "boundary",
        "e",
        "boundary",
        "Move the boundary: move one end, press it again for the other end, then decide",
        hint=40,
    ),
    _adjudicate("other_mode", "l", "other mode", "It is another mode, at the same places", hint=45),
    _adjudicate(
        "enter",
        "enter",
        "evidence",
        "Go to the evidence, decide for the boundary, or take a side beyond the ninth",
        hint=52,
    ),
    _adjudicate("next_conflict", "] .", "next conflict", "Next conflict", "conflict(1)", hint=50),
    _adjudicate(
        "previous_conflict", "[ ,", "previous conflict", "Previous conflict", "conflict(-1)"
    ),
    _adjudicate("next_trace", "} >", "next trace", "Next trace with conflicts", "trace(1)"),
    _adjudicate(
        "previous_trace", "{ <", "previous trace", "Previous trace with conflicts", "trace(-1)"
    ),
    _adjudicate("agreed", "v", "agreed items", "Look through what was agreed", hint=55),
    _adjudicate(
        "overrule",
        "x",
        "overrule",
        "Overrule what was agreed: absent for present, else present in the whole trace",
    ),
    _adjudicate("confirm", "c", "confirm", "Confirm a decision after which a side has changed"),
    _adjudicate("reason", "m", "reason", "Say why it was decided so", hint=57),
    _adjudicate("names", "h", "names", "Hide the sides' names, or show them", hint=60),
    _adjudicate("judge", "J", "judge's word", "The judge's word, once it is decided"),
    _adjudicate("guidelines", "p", "page", "What was agreed about the mode, with cases", hint=58),
    *scrolls(Where.ADJUDICATE, "the evidence", up="s"),
    _adjudicate("pane", "tab", "other pane", "Go to the other pane"),
)

_agreement = partial(action, Where.AGREEMENT)

AGREEMENT: Final = (
    *moves(Where.AGREEMENT),
    _agreement(
        "open",
        "enter",
        "traces behind",
        "The traces behind the figure, disagreements first",
        hint=5,
    ),
    _agreement("page", "tab", "next page", "The next page of figures", "page(1)", hint=10),
    _agreement("modes", "1", "modes", "Agreement per mode", "show_page('modes')"),
    _agreement(
        "categories", "2", "categories", "Agreement per category", "show_page('categories')"
    ),
    _agreement("pairs", "3", "pairs", "Every two annotators, as a matrix", "show_page('pairs')"),
    _agreement("spans", "4", "spans", "Agreement on places", "show_page('spans')"),
    _agreement("judge", "5", "judge", "How good a judge is", "show_page('judge')"),
    _agreement(
        "left",
        "left h",
        "column left",
        "The cell to the left, where cells have traces",
        "across(-1)",
    ),
    _agreement(
        "right",
        "right l",
        "column right",
        "The cell to the right, where cells have traces",
        "across(1)",
    ),
    _agreement("next_judge", "] .", "next judge", "Another judge", "next_judge(1)"),
    _agreement("previous_judge", "[ ,", "previous judge", "The judge before", "next_judge(-1)"),
    _agreement("against", "c", "against", "Hold the judge against gold, or the next person"),
    _agreement(
        "seen", "s", "judge was seen", "Count also verdicts that came with a judge on screen"
    ),
    _agreement("adjudicate", "a", "adjudicate", "Settle the disagreements on the mode", hint=15),
    _agreement("passes", "p", "first or last pass", "Count first or last passes", hint=20),
    _agreement(
        "look",
        "o",
        "look as adjudicator",
        "Count traces that you have not finished; recorded",
        hint=30,
    ),
    _agreement("anew", "f5 O", "count anew", "Count what others have said since"),
    *scrolls(Where.AGREEMENT, "what the figures rest on"),
)

_agreement_traces = partial(action, Where.AGREEMENT_TRACES)

AGREEMENT_TRACES: Final = (
    *moves(Where.AGREEMENT_TRACES),
    _agreement_traces(
        "open", "enter", "open", "Open the trace at the place, where the sides differ", hint=5
    ),
    _agreement_traces(
        "differing", "v", "only unlike", "List only where the sides differ, or all", hint=10
    ),
)

_runs = partial(action, Where.RUNS)

RUNS: Final = (
    *moves(Where.RUNS),
    _runs(
        "open", "enter", "its traces", "See the traces of the run, those that failed first", hint=5
    ),
    _runs("judge", "J", "run judge", "Run a judge on the library's traces, or cancel it", hint=10),
    _runs("mark", "v", "mark", "Mark the run, to compare it with another", hint=15),
    _runs("compare", "=", "compare", "Compare the marked run with this one", hint=20),
    _runs("gold", "c", "with gold", "Compare the run with the gold", hint=25),
    *scrolls(Where.RUNS, "what is told of the run"),
)

_run = partial(action, Where.RUN)

RUN: Final = (
    *moves(Where.RUN),
    _run("open", "enter", "open", "Open the trace at its next suggestion", hint=5),
    _run(
        "answers",
        "a",
        "answers",
        "Read what the model answered about the trace, word for word",
        hint=10,
    ),
    *scrolls(Where.RUN, "what is told of the trace"),
)

_comparison = partial(action, Where.COMPARISON)

COMPARISON: Final = (
    *moves(Where.COMPARISON),
    _comparison(
        "open", "enter", "open", "See the traces of the mode, or open one at its evidence", hint=5
    ),
    _comparison("pane", "tab h l", "other pane", "Go to the other pane", hint=10),
    _comparison(
        "seen", "o", "judge was seen", "Count also gold that was settled with a judge on screen"
    ),
)

_signatures = partial(action, Where.SIGNATURES)

SIGNATURES: Final = (
    *moves(Where.SIGNATURES),
    _signatures("open", "enter", "traces behind", "The traces behind the bar or cell", hint=5),
    _signatures("page", "tab", "next page", "The next page of figures", "page(1)", hint=10),
    _signatures(
        "modes",
        "1",
        "modes",
        "How often each mode shows in failed and successful traces",
        "show_page('modes')",
    ),
    _signatures(
        "onset",
        "2",
        "onset",
        "Where in the run failures set on, and in which order",
        "show_page('onset')",
    ),
    _signatures("together", "3", "together", "Which modes show together", "show_page('together')"),
    _signatures("traces", "4", "traces", "How each trace fails", "show_page('traces')"),
    _signatures("helps", "5", "what helps", "What helps against each mode", "show_page('helps')"),
    _signatures(
        "experiment",
        "x",
        "experiment",
        "The groups as arms over the same tasks, the first one as the baseline",
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
    _signatures("previous_group", "[ ,", "previous group", "The group before", "next_group(-1)"),
    _signatures("choose_group", "/", "group…", "Choose a group by its name", hint=25),
    _signatures(
        "by", "v", "group by", "Group by model, system, benchmark, version, reader, or not", hint=20
    ),
    _signatures("labels", "w", "whose labels", "Gold, or one person's or judge's labels", hint=30),
    _signatures(
        "outcome", "f", "failed below", "Let the outcome follow from the score, or not", hint=40
    ),
    _signatures(
        "every", "a", "failed or all", "Count failed traces, or all: onset and together", hint=35
    ),
    _signatures(
        "look",
        "o",
        "look as adjudicator",
        "Count traces that you have not finished; recorded",
        hint=50,
    ),
    _signatures("anew", "f5 O", "count anew", "Count what others have said since"),
    *scrolls(Where.SIGNATURES, "what the figures rest on"),
)

_signature_traces = partial(action, Where.SIGNATURE_TRACES)

SIGNATURE_TRACES: Final = (
    *moves(Where.SIGNATURE_TRACES),
    _signature_traces("open", "enter", "open", "Open the trace where the mode stands", hint=5),
)

_guidelines = partial(action, Where.GUIDELINES)

GUIDELINES: Final = (
    *moves(Where.GUIDELINES),
    _guidelines("open", "enter", "open case", "Go to the decided case under the cursor", hint=10),
    _guidelines("entry", "tab", "next entry", "Next guideline or case", hint=20),
    _guidelines("write", "m", "write", "Write down what was agreed about the mode", hint=30),
    _guidelines("edit", "e", "edit", "Put the guideline under the cursor otherwise", hint=40),
    _guidelines("take_back", "x", "take back", "Take the guideline under the cursor back", hint=50),
    _guidelines("next_mode", "} >", "next mode", "The page of the next mode", "mode(1)", hint=60),
    _guidelines(
        "previous_mode", "{ <", "previous mode", "The page of the previous mode", "mode(-1)"
    ),
)

_study = partial(action, Where.STUDY)

STUDY: Final = (
    *moves(Where.STUDY),
    _study("set_up", "e", "set up", "Set the study up, or change it", hint=10),
    _study("add", "a", "take in traces", "Take in what of the library is not in it yet", hint=20),
    _study("join", "n", "join", "Let somebody join as an annotator"),
    _study(
        "release",
        "r",
        "give back",
        "Give what the annotator under the cursor has not finished to the others",
        "give_back",
    ),
    _study("leave_study", "x", "leave", "Let the annotator under the cursor leave the study"),
    *scrolls(Where.STUDY, "what was set up"),
)

_open_codes = partial(action, Where.OPEN_CODES)

OPEN_CODES: Final = (
    *moves(Where.OPEN_CODES),
    _open_codes(
        "open", "enter", "open", "Open the trace at the place; on a group at its first one", hint=5
    ),
    _open_codes(
        "mark",
        "v space",
        "mark",
        "Mark the place, or all of the group; again, take the mark off",
        hint=10,
    ),
    _open_codes(
        "new_mode",
        "n",
        "make a mode",
        "Make a mode of what is marked, or else of the group under the cursor",
        hint=15,
    ),
    _open_codes(
        "tag",
        "t",
        "tag",
        "Give what is marked, or else what is under the cursor, a tag, or take it off",
        hint=17,
    ),
    _open_codes(
        "search",
        "/",
        "search",
        "Show only what holds some words or a #tag; nothing shows all again",
        hint=20,
    ),
    _open_codes(
        "group_by_model",
        "J",
        "ask the model",
        "Have the model of config.toml group what no tag does, or go by words again",
        hint=22,
    ),
    _open_codes("next_group", "tab } >", "next group", "Go to the next group", "group(1)", hint=25),
    _open_codes("previous_group", "{ <", "previous group", "Go to the previous group", "group(-1)"),
    *scrolls(Where.OPEN_CODES, "the text"),
)

_side_by_side = partial(action, Where.SIDE_BY_SIDE)

SIDE_BY_SIDE: Final = (
    *moves(Where.SIDE_BY_SIDE),
    _side_by_side("fork", "f", "where they part", "To where the two runs part", hint=10),
    _side_by_side(
        "next",
        "] .",
        "next difference",
        "To the next place where the agents do something else",
        "difference(1)",
        hint=20,
    ),
    _side_by_side(
        "previous",
        "[ ,",
        "previous difference",
        "To the place before where the agents do something else",
        "difference(-1)",
    ),
    _side_by_side(
        "open_a", "enter", "open A", "Open the run on the left at this step", "open('a')", hint=30
    ),
    _side_by_side(
        "open_b", "o", "open B", "Open the run on the right at this step", "open('b')", hint=40
    ),
    *scrolls(Where.SIDE_BY_SIDE, "what differs"),
)
