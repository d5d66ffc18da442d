"""What keys do where a trace is labelled."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves

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
            name=f"digit_{d}",
            keys=str(d),
            title="label",
            help="Two digits label what is under the cursor",
            command=f"digit('{d}')",
            hint=10 if d == 1 else 0,
        )
        for d in range(10)
    ),
    _label(
        name="find_mode",
        keys="l",
        title="mode…",
        help="Find a mode by name, definition or code",
        hint=45,
    ),
    _label(
        name="range", keys="v", title="range", help="Mark a range of spans, then label it", hint=40
    ),
    _label(
        name="extend_down",
        keys="shift+down",
        title="range ↓",
        help="Stretch the range by the next span, or begin one with it",
        command="extend(1)",
    ),
    _label(
        name="extend_up",
        keys="shift+up",
        title="range ↑",
        help="Stretch the range by the span before, or begin one with it",
        command="extend(-1)",
    ),
    _label(
        name="other_end",
        keys="o",
        title="other end",
        help="Go to the other end of the range that is being marked, to move that one",
    ),
    _label(
        name="quote",
        keys='w "',
        title="quote",
        help="Mark words inside the span, then label them",
        hint=42,
    ),
    _label(name="whole", keys="t", title="whole trace", help="Label the whole trace"),
    _suggest(
        name="next_suggestion",
        keys="] .",
        title="suggestion",
        help="Next suggestion, at its evidence",
        command="suggestion(1)",
        hint=15,
    ),
    _suggest(
        name="previous_suggestion",
        keys="[ ,",
        title="previous suggestion",
        help="Previous suggestion, at its evidence",
        command="suggestion(-1)",
    ),
    _suggest(
        name="accept",
        keys="a",
        title="accept",
        help="Accept the suggestion and go on to the next",
        hint=20,
    ),
    _suggest(
        name="reject",
        keys="x",
        title="reject",
        help="Reject the suggestion and go on to the next",
        hint=21,
    ),
    _suggest(
        name="answer_many",
        keys="X",
        title="answer many",
        help="Reject, accept or hide all suggestions of a rule, a mode or a judge, in one step",
    ),
    _suggest(
        name="edit",
        keys="e",
        title="edit",
        help="Give the suggestion, or your label here, another mode or place",
        hint=22,
    ),
    _label(
        name="absent",
        keys="-",
        title="absent",
        help="Two digits: that mode does not show in this trace",
        command="verdict('absent')",
        hint=50,
    ),
    _label(
        name="unsure",
        keys="_",
        title="unsure",
        help="Two digits: unsure about that mode",
        command="verdict('unsure')",
    ),
    _label(
        name="note",
        keys="m",
        title="note",
        help="Write a note on the label, or on the span",
        hint=55,
    ),
    _label(
        name="severity",
        keys="f",
        title="severity",
        help="Fatal, benign or none, for the label under the cursor",
    ),
    _label(
        name="confidence",
        keys="c",
        title="confidence",
        help="How sure you are of the label under the cursor",
    ),
    _label(
        name="remove", keys="backspace", title="remove", help="Remove the label under the cursor"
    ),
    _label(
        name="my_labels",
        keys="M",
        title="my labels",
        help="List what you have said of this trace; Enter goes there, keys for labels work on it",
        hint=57,
    ),
    _find(name="search", keys="/", title="search", help="Find text in all spans", hint=65),
    _find(name="search_next", keys="n", title="next match", help="Next match", command="match(1)"),
    _find(
        name="search_previous",
        keys="N",
        title="previous match",
        help="Previous match",
        command="match(-1)",
    ),
    _find(
        name="search_regex",
        keys="ctrl+t",
        title="regular expression",
        help="Find a regular expression, or plain text again; /…/ is one as well",
    ),
    _find(
        name="filter",
        keys="F",
        title="show only…",
        help="Show only errors, matches, labelled steps, one kind …",
        hint=67,
    ),
    _move(
        name="go_back",
        keys="h ctrl+o",
        title="back",
        help="Back to where you were before a jump: to a match, a suggestion, an error, a number",
        command="trail(-1)",
    ),
    _move(
        name="go_forward",
        keys="I",
        title="forth",
        help="Forth again, after going back",
        command="trail(1)",
    ),
    _move(
        name="next_error",
        keys="E",
        title="next error",
        help="Next step that failed",
        command="error(1)",
    ),
    _move(
        name="previous_error",
        keys="B ctrl+e",
        title="previous error",
        help="Previous step that failed",
        command="error(-1)",
    ),
    _read(
        name="fold",
        keys="space",
        title="fold",
        help="Fold or unfold equal steps, or a sub-agent's, or what belongs under a step",
    ),
    _read(
        name="compare",
        keys="=",
        title="compare",
        help="What differs from the step that this one repeats",
    ),
    _read(
        name="answer_key",
        keys="i",
        title="answer key",
        help="Expected actions, reference answer, rewards, the scorer's words, patches",
    ),
    _read(name="copy", keys="y", title="copy", help="Copy the span's text, or the quote"),
    _read(
        name="copy_what",
        keys="C",
        title="copy…",
        help="Copy the text, its place in the file, or the whole trace",
    ),
    _move(
        name="pane",
        keys="tab",
        title="other pane",
        help="Go to the other pane, or to the next label here",
        hint=70,
    ),
    _move(
        name="drawer",
        keys="T",
        title="taxonomy",
        help="Show or hide the taxonomy where it is a drawer",
        hint=72,
    ),
    _read(
        name="text_down",
        keys="d",
        title="text ↓",
        help="Scroll the span's text down",
        command="text(1)",
    ),
    _read(
        name="text_up",
        keys="b",
        title="text ↑",
        help="Scroll the span's text up",
        command="text(-1)",
    ),
    _read(
        name="read",
        keys="z enter",
        title="read",
        help="The text of the span over the whole window, or back; all keys go on to work",
        hint=44,
    ),
    _move(name="next_span", keys=") ;", title="next span", help="Next span", command="span(1)"),
    _move(
        name="previous_span",
        keys="( '",
        title="previous span",
        help="Previous span",
        command="span(-1)",
    ),
    _read(
        name="next_split",
        keys="Z",
        title="more text",
        help="More of the height for the text; after most of it, little",
    ),
    _read(
        name="split_up",
        keys="ctrl+up",
        title="border up",
        help="Move the border above the text up",
        command="split(1)",
    ),
    _read(
        name="split_down",
        keys="ctrl+down",
        title="border down",
        help="Move the border above the text down",
        command="split(-1)",
    ),
    _read(
        name="time_bar",
        keys="H",
        title="time bar",
        help="Show when each step was, or leave the columns to its text",
    ),
    _read(
        name="raw",
        keys="p",
        title="raw text",
        help="Show texts as they are, or set out and in colour",
    ),
    _read(
        name="wrap", keys="W", title="wrap", help="Wrap long lines of the text, or let them run on"
    ),
    _read(
        name="follow",
        keys="f5 O",
        title="read on",
        help="Read what has come to the file, or all of it where it was replaced or cut",
    ),
    _move(
        name="next_trace",
        keys="} >",
        title="next trace",
        help="Next trace in the queue",
        command="trace(1)",
        hint=75,
    ),
    _move(
        name="previous_trace",
        keys="{ <",
        title="previous trace",
        help="Previous trace in the queue",
        command="trace(-1)",
    ),
    _finish(
        name="finish",
        keys="D",
        title="finish",
        help="Finish the trace: your labels are frozen as this pass",
        hint=46,
    ),
    _finish(
        name="reveal",
        keys="r",
        title="reveal",
        help="After finishing: see others' labels and what was hidden",
    ),
    _suggest(
        name="judge", keys="J", title="run judge", help="Run a judge on this trace, or cancel it"
    ),
    _label(
        name="guidelines", keys="P", title="page", help="What was agreed about the mode, to read"
    ),
    _label(
        name="word_right",
        keys="right",
        title="next word",
        help="Next word, while a quote is being marked; or scroll lines that run on",
        command="word(1)",
    ),
    _label(
        name="word_left",
        keys="left",
        title="previous word",
        help="Previous word, while a quote is being marked; or scroll lines that run on",
        command="word(-1)",
    ),
)
