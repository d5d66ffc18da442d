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
        title="traces behind",
        help="The traces behind the figure, disagreements first",
        hint=5,
    ),
    _agreement(
        "page",
        "tab",
        title="next page",
        help="The next page of figures",
        command="page(1)",
        hint=10,
    ),
    _agreement(
        "modes", "1", title="modes", help="Agreement per mode", command="show_page('modes')"
    ),
    _agreement(
        "categories",
        "2",
        title="categories",
        help="Agreement per category",
        command="show_page('categories')",
    ),
    _agreement(
        "pairs",
        "3",
        title="pairs",
        help="Every two annotators, as a matrix",
        command="show_page('pairs')",
    ),
    _agreement(
        "spans", "4", title="spans", help="Agreement on places", command="show_page('spans')"
    ),
    _agreement(
        "judge", "5", title="judge", help="How good a judge is", command="show_page('judge')"
    ),
    _agreement(
        "left",
        "left h",
        title="column left",
        help="The cell to the left, where cells have traces",
        command="across(-1)",
    ),
    _agreement(
        "right",
        "right l",
        title="column right",
        help="The cell to the right, where cells have traces",
        command="across(1)",
    ),
    _agreement(
        "next_judge", "] .", title="next judge", help="Another judge", command="choose('judge', 1)"
    ),
    _agreement(
        "previous_judge",
        "[ ,",
        title="previous judge",
        help="The judge before",
        command="choose('judge', -1)",
    ),
    _agreement(
        "against",
        "c",
        title="against",
        help="Hold the judge against gold, or the next person",
        command="choose('against')",
    ),
    _agreement(
        "seen",
        "s",
        title="judge was seen",
        help="Count also verdicts that came with a judge on screen",
        command="choose('seen')",
    ),
    _agreement(
        "adjudicate",
        "a",
        title="adjudicate",
        help="Settle the disagreements on the mode",
        command="choose('adjudicate')",
        hint=15,
    ),
    _agreement(
        "passes",
        "p",
        title="first or last pass",
        help="Count first or last passes",
        command="choose('passes')",
        hint=20,
    ),
    _agreement(
        "look",
        "o",
        title="look as adjudicator",
        help="Count traces that you have not finished; recorded",
        command="choose('look')",
        hint=30,
    ),
    _agreement("anew", "f5 O", title="count anew", help="Count what others have said since"),
    *scrolls(Where.AGREEMENT, "what the figures rest on"),
)

_agreement_traces = partial(action, Where.AGREEMENT_TRACES)

AGREEMENT_TRACES = (
    *moves(Where.AGREEMENT_TRACES),
    _agreement_traces(
        "open",
        "enter",
        title="open",
        help="Open the trace at the place, where the sides differ",
        hint=5,
    ),
    _agreement_traces(
        "differing",
        "v",
        title="only unlike",
        help="List only where the sides differ, or all",
        hint=10,
    ),
)

_signatures = partial(action, Where.SIGNATURES)

SIGNATURES = (
    *moves(Where.SIGNATURES),
    _signatures(
        "open", "enter", title="traces behind", help="The traces behind the bar or cell", hint=5
    ),
    _signatures(
        "page",
        "tab",
        title="next page",
        help="The next page of figures",
        command="page(1)",
        hint=10,
    ),
    _signatures(
        "modes",
        "1",
        title="modes",
        help="How often each mode shows in failed and successful traces",
        command="show_page('modes')",
    ),
    _signatures(
        "onset",
        "2",
        title="onset",
        help="Where in the run failures set on, and in which order",
        command="show_page('onset')",
    ),
    _signatures(
        "together",
        "3",
        title="together",
        help="Which modes show together",
        command="show_page('together')",
    ),
    _signatures(
        "traces", "4", title="traces", help="How each trace fails", command="show_page('traces')"
    ),
    _signatures(
        "helps",
        "5",
        title="what helps",
        help="What helps against each mode",
        command="show_page('helps')",
    ),
    _signatures(
        "left",
        "left h",
        title="bar left",
        help="The bar or column to the left",
        command="across(-1)",
    ),
    _signatures(
        "right",
        "right l",
        title="bar right",
        help="The bar or column to the right",
        command="across(1)",
    ),
    _signatures(
        "next_group",
        "] .",
        title="next group",
        help="The next model, system or benchmark",
        command="choose('group', 1)",
        hint=15,
    ),
    _signatures(
        "previous_group",
        "[ ,",
        title="previous group",
        help="The group before",
        command="choose('group', -1)",
    ),
    _signatures(
        "choose_group",
        "/",
        title="group…",
        help="Choose a group by its name",
        command="choose('group_by_name')",
        hint=25,
    ),
    _signatures(
        "by",
        "v",
        title="group by",
        help="Group by model, system, benchmark, reader, or not at all",
        command="choose('by')",
        hint=20,
    ),
    _signatures(
        "labels",
        "w",
        title="whose labels",
        help="Gold, or one person's or judge's labels",
        command="choose('labels')",
        hint=30,
    ),
    _signatures(
        "outcome",
        "f",
        title="failed below",
        help="Let the outcome follow from the score, or not",
        command="choose('outcome')",
        hint=40,
    ),
    _signatures(
        "every",
        "a",
        title="failed or all",
        help="Count failed traces, or all: onset and together",
        command="choose('every')",
        hint=35,
    ),
    _signatures(
        "look",
        "o",
        title="look as adjudicator",
        help="Count traces that you have not finished; recorded",
        command="choose('look')",
        hint=50,
    ),
    _signatures("anew", "f5 O", title="count anew", help="Count what others have said since"),
    *scrolls(Where.SIGNATURES, "what the figures rest on"),
)

_signature_traces = partial(action, Where.SIGNATURE_TRACES)

SIGNATURE_TRACES = (
    *moves(Where.SIGNATURE_TRACES),
    _signature_traces(
        "open", "enter", title="open", help="Open the trace where the mode stands", hint=5
    ),
)
