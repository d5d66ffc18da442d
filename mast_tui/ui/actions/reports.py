"""What keys do on the reports, and on the traces behind their figures."""

from __future__ import annotations

from functools import partial

from mast_tui.ui.actions.action import Where, action, moves, scrolls

_agreement = partial(action, Where.AGREEMENT)

AGREEMENT = (
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

AGREEMENT_TRACES = (
    *moves(Where.AGREEMENT_TRACES),
    _agreement_traces(
        "open", "enter", "open", "Open the trace at the place, where the sides differ", hint=5
    ),
    _agreement_traces(
        "differing", "v", "only unlike", "List only where the sides differ, or all", hint=10
    ),
)

_signatures = partial(action, Where.SIGNATURES)

SIGNATURES = (
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
        "by", "v", "group by", "Group by model, system, benchmark, reader, or not at all", hint=20
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

SIGNATURE_TRACES = (
    *moves(Where.SIGNATURE_TRACES),
    _signature_traces("open", "enter", "open", "Open the trace where the mode stands", hint=5),
)
