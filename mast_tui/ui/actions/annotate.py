"""What keys do where a trace is labelled."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_annotate = partial(action, Where.ANNOTATE)
_move = partial(_annotate, section="Move")
_label = partial(_annotate, section="Label")
_suggest = partial(_annotate, section="Suggestions")
_find = partial(_annotate, section="Find")
_read = partial(_annotate, section="Read")
_finish = partial(_annotate, section="Finish")

ANNOTATE = (
    *moves(Where.ANNOTATE),
    *(
        _label(
            f"digit_{d}",
            str(d),
            title="label",
            help="Two digits label what is under the cursor",
            command=f"digit('{d}')",
            hint=10 if d == 1 else 0,
        )
        for d in range(10)
    ),
    _label(
        "find_mode", "l", title="mode…", help="Find a mode by name, definition or code", hint=45
    ),
    _label("range", "v", title="range", help="Mark a range of spans, then label it", hint=40),
    _label(
        "extend_down",
        "shift+down",
        title="range ↓",
        help="Stretch the range by the next span, or begin one with it",
        command="extend(1)",
    ),
    _label(
        "extend_up",
        "shift+up",
        title="range ↑",
        help="Stretch the range by the span before, or begin one with it",
        command="extend(-1)",
    ),
    _label(
        "other_end",
        "o",
        title="other end",
        help="Go to the other end of the range that is being marked, to move that one",
    ),
    _label(
        "quote", 'w "', title="quote", help="Mark words inside the span, then label them", hint=42
    ),
    _label("whole", "t", title="whole trace", help="Label the whole trace"),
    _suggest(
        "next_suggestion",
        "] .",
        title="suggestion",
        help="Next suggestion, at its evidence",
        command="suggestion(1)",
        hint=15,
    ),
    _suggest(
        "previous_suggestion",
        "[ ,",
        title="previous suggestion",
        help="Previous suggestion, at its evidence",
        command="suggestion(-1)",
    ),
    _suggest(
        "accept", "a", title="accept", help="Accept the suggestion and go on to the next", hint=20
    ),
    _suggest(
        "reject", "x", title="reject", help="Reject the suggestion and go on to the next", hint=21
    ),
    _suggest(
        "answer_many",
        "X",
        title="answer many",
        help="Reject, accept or hide all suggestions of a rule, a mode or a judge, in one step",
    ),
    _suggest(
        "edit",
        "e",
        title="edit",
        help="Give the suggestion, or your label here, another mode or place",
        hint=22,
    ),
    _label(
        "absent",
        "-",
        title="absent",
        help="Two digits: that mode does not show in this trace",
        command="verdict('absent')",
        hint=50,
    ),
    _label(
        "unsure",
        "_",
        title="unsure",
        help="Two digits: unsure about that mode",
        command="verdict('unsure')",
    ),
    _label(
        "note",
        "m",
        title="note",
        help="Write a note on the label, or on the span",
        command="label('note')",
        hint=55,
    ),
    _label(
        "severity",
        "f",
        title="severity",
        help="Fatal, benign or none, for the label under the cursor",
        command="label('severity')",
    ),
    _label(
        "confidence",
        "c",
        title="confidence",
        help="How sure you are of the label under the cursor",
        command="label('confidence')",
    ),
    _label(
        "remove",
        "backspace",
        title="remove",
        help="Remove the label under the cursor",
        command="label('remove')",
    ),
    _label(
        "my_labels",
        "M",
        title="my labels",
        help="List what you have said of this trace; Enter goes there, keys for labels work on it",
        hint=57,
    ),
    _find("search", "/", title="search", help="Find text in all spans", hint=65),
    _find("search_next", "n", title="next match", help="Next match", command="match(1)"),
    _find(
        "search_previous", "N", title="previous match", help="Previous match", command="match(-1)"
    ),
    _find(
        "search_regex",
        "ctrl+t",
        title="regular expression",
        help="Find a regular expression, or plain text again; /…/ is one as well",
    ),
    _find(
        "filter",
        "F",
        title="show only…",
        help="Show only errors, matches, labelled steps, one kind …",
        hint=67,
    ),
    _move(
        "go_back",
        "h ctrl+o",
        title="back",
        help="Back to where you were before a jump: to a match, a suggestion, an error, a number",
        command="trail(-1)",
    ),
    _move(
        "go_forward", "I", title="forth", help="Forth again, after going back", command="trail(1)"
    ),
    _move("next_error", "E", title="next error", help="Next step that failed", command="error(1)"),
    _move(
        "previous_error",
        "B ctrl+e",
        title="previous error",
        help="Previous step that failed",
        command="error(-1)",
    ),
    _read(
        "fold",
        "space",
        title="fold",
        help="Fold or unfold equal steps, a sub-agent's, those under a step, or modes",
    ),
    _read("compare", "=", title="compare", help="What differs from the step that this one repeats"),
    _read(
        "answer_key",
        "i",
        title="answer key",
        help="Expected actions, reference answer, rewards, the scorer's words, patches",
    ),
    _read("copy", "y", title="copy", help="Copy the span's text, or the quote"),
    _read(
        "copy_what",
        "C",
        title="copy…",
        help="Copy the text, its place in the file, or the whole trace",
    ),
    _move(
        "pane",
        "tab",
        title="other pane",
        help="Go to the other pane, or to the next label here",
        hint=70,
    ),
    _move(
        "drawer",
        "T",
        title="taxonomy",
        help="Show or hide the taxonomy where it is a drawer",
        hint=72,
    ),
    *scrolls(Where.ANNOTATE, "the span's text", section="Read"),
    _read(
        "read",
        "z enter",
        title="read",
        help="The text of the span over the whole window, or back; all keys go on to work",
        hint=44,
    ),
    _move("next_span", ") ;", title="next span", help="Next span", command="span(1)"),
    _move("previous_span", "( '", title="previous span", help="Previous span", command="span(-1)"),
    _read(
        "next_split",
        "Z",
        title="more text",
        help="More of the height for the text; after most of it, little",
    ),
    _read(
        "split_up",
        "ctrl+up",
        title="border up",
        help="Move the border above the text up",
        command="split(1)",
    ),
    _read(
        "split_down",
        "ctrl+down",
        title="border down",
        help="Move the border above the text down",
        command="split(-1)",
    ),
    _read(
        "time_bar",
        "H",
        title="time bar",
        help="Show when each step was, or leave the columns to its text",
    ),
    _read("raw", "p", title="raw text", help="Show texts as they are, or set out and in colour"),
    _read("wrap", "W", title="wrap", help="Wrap long lines of the text, or let them run on"),
    _read(
        "follow",
        "f5 O",
        title="read on",
        help="Read what has come to the file, or all of it where it was replaced or cut",
    ),
    _move(
        "next_trace",
        "} >",
        title="next trace",
        help="Next trace in the queue",
        command="trace(1)",
        hint=75,
    ),
    _move(
        "previous_trace",
        "{ <",
        title="previous trace",
        help="Previous trace in the queue",
        command="trace(-1)",
    ),
    _finish(
        "finish",
        "D",
        title="finish",
        help="Finish the trace: your labels are frozen as this pass",
        hint=46,
    ),
    _finish(
        "reveal",
        "r",
        title="reveal",
        help="After finishing: see others' labels and what was hidden",
    ),
    _suggest("judge", "J", title="run judge", help="Run a judge on this trace, or cancel it"),
    _label("guidelines", "P", title="page", help="What was agreed about the mode, to read"),
    _label(
        "word_right",
        "right",
        title="next word",
        help="Next word, while a quote is being marked; or scroll lines that run on",
        command="word(1)",
    ),
    _label(
        "word_left",
        "left",
        title="previous word",
        help="Previous word, while a quote is being marked; or scroll lines that run on",
        command="word(-1)",
    ),
)
