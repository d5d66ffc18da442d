"""What keys do where a trace is labelled."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

_annotate = partial(action, Where.ANNOTATE)

ANNOTATE = (
    *moves(Where.ANNOTATE),
    *(
        _annotate(
            f"digit_{d}",
            str(d),
            "label",
            "Two digits label what is under the cursor",
            command=f"digit('{d}')",
            hint=10 if d == 1 else 0,
        )
        for d in range(10)
    ),
    _annotate("find_mode", "l", "mode…", "Find a mode by name, definition or code", hint=45),
    _annotate("range", "v", "range", "Mark a range of spans, then label it", hint=40),
    _annotate("quote", 'w "', "quote", "Mark words inside the span, then label them", hint=42),
    _annotate("whole", "t", "whole trace", "Label the whole trace"),
    _annotate(
        "next_suggestion",
        "] .",
        "suggestion",
        "Next suggestion, at its evidence",
        command="suggestion(1)",
        hint=15,
    ),
    _annotate(
        "previous_suggestion",
        "[ ,",
        "previous suggestion",
        "Previous suggestion, at its evidence",
        command="suggestion(-1)",
    ),
    _annotate("accept", "a", "accept", "Accept the suggestion and go on to the next", hint=20),
    _annotate("reject", "x", "reject", "Reject the suggestion and go on to the next", hint=21),
    _annotate("edit", "e", "edit", "Accept the suggestion with another mode or place", hint=22),
    _annotate(
        "absent",
        "-",
        "absent",
        "Two digits: that mode does not show in this trace",
        command="verdict('absent')",
        hint=50,
    ),
    _annotate(
        "unsure", "_", "unsure", "Two digits: unsure about that mode", command="verdict('unsure')"
    ),
    _annotate("note", "m", "note", "Write a note on the label, or on the span", hint=55),
    _annotate("severity", "f", "severity", "Fatal, benign or none, for the label under the cursor"),
    _annotate("confidence", "c", "confidence", "How sure you are of the label under the cursor"),
    _annotate("remove", "backspace", "remove", "Remove the label under the cursor"),
    _annotate("search", "/", "search", "Find text in all spans", hint=65),
    _annotate("search_next", "n", "next match", "Next match", command="match(1)"),
    _annotate("search_previous", "N", "previous match", "Previous match", command="match(-1)"),
    _annotate(
        "search_regex",
        "ctrl+t",
        "regular expression",
        "Find a regular expression, or plain text again; /…/ is one as well",
    ),
    _annotate(
        "filter",
        "F",
        "show only…",
        "Show only errors, matches, labelled steps, one kind …",
        hint=67,
    ),
    _annotate("next_error", "E", "next error", "Next step that failed", command="error(1)"),
    _annotate(
        "previous_error",
        "B ctrl+e",
        "previous error",
        "Previous step that failed",
        command="error(-1)",
    ),
    _annotate(
        "fold",
        "space",
        "fold",
        "Fold or unfold equal steps, or a sub-agent's, or what belongs under a step",
    ),
    _annotate("compare", "=", "compare", "What differs from the step that this one repeats"),
    _annotate("copy", "y", "copy", "Copy the span's text to the clipboard"),
    _annotate(
        "pane", "tab", "other pane", "Go to the other pane, or to the next label here", hint=70
    ),
    _annotate("drawer", "T", "taxonomy", "Show or hide the taxonomy where it is a drawer", hint=72),
    _annotate("text_down", "d", "text ↓", "Scroll the span's text down", command="text(1)"),
    _annotate("text_up", "b", "text ↑", "Scroll the span's text up", command="text(-1)"),
    _annotate("raw", "p", "raw or set out", "Show JSON as it is, or set out in lines"),
    _annotate("wrap", "W", "wrap", "Wrap long lines of the text, or let them run on"),
    _annotate(
        "next_trace", "} >", "next trace", "Next trace in the queue", command="trace(1)", hint=75
    ),
    _annotate(
        "previous_trace",
        "{ <",
        "previous trace",
        "Previous trace in the queue",
        command="trace(-1)",
    ),
    _annotate(
        "finish", "D", "finish", "Finish the trace: your labels are frozen as this pass", hint=46
    ),
    _annotate("reveal", "r", "reveal", "After finishing: see others' labels and what was hidden"),
    _annotate("judge", "J", "run judge", "Run a judge on this trace, or cancel it"),
    _annotate("guidelines", "P", "page", "What was agreed about the mode, to read"),
    _annotate(
        "word_right",
        "right",
        "next word",
        "Next word, while a quote is being marked; or scroll lines that run on",
        command="word(1)",
    ),
    _annotate(
        "word_left",
        "left",
        "previous word",
        "Previous word, while a quote is being marked; or scroll lines that run on",
        command="word(-1)",
    ),
)
