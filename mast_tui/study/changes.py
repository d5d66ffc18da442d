"""Which parts of a protocol must stay as they are once somebody has finished a trace."""

from __future__ import annotations

from mast_tui.study.model import Study


def changes_to_figures(before: Study, after: Study) -> tuple[str, ...]:
    """What of a protocol is changed that figures rest on, in words; nothing where all may change.

    Taking in traces as a further lot, who is there from the next lot on, what is given back,
    adjudicators, retests and how adjudication goes may change. The order in which annotators are
    named says nothing.
    """
    found = []
    lots = range(len(before.batches)) or range(1)
    if any(set(before.members(lot)) != set(after.members(lot)) for lot in lots):
        found.append("the annotators")
    elif any(
        before.weight(name, lot) != after.weight(name, lot)
        for lot in lots
        for name in before.members(lot)
    ):
        found.append("the annotators' weights")
    for field, words in (
        ("per_trace", "how many label a trace"),
        ("overlap", "the overlap"),
        ("seed", "the seed"),
        ("blind", "blind or suggestions shown"),
        ("withheld", "the share without suggestions"),
        ("open_modes", "what becomes of open modes"),
    ):
        if getattr(before, field) != getattr(after, field):
            found.append(words)
    if after.batches[: len(before.batches)] != before.batches:
        found.append("the traces taken in")
    fixed, there = len(before.assignments), frozenset(before.traces)
    if after.assignments[:fixed] != before.assignments or any(
        one.trace_id in there for one in after.assignments[fixed:]
    ):
        found.append("who labels which trace")
    if after.releases[: len(before.releases)] != before.releases:
        found.append("the traces given back")
    return tuple(found)
