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
