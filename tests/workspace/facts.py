"""Random facts, for property tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st
from msgspec.structs import fields

from mast_tui.gold.model import Decision, Guideline, SideAnswer
from mast_tui.labels import (
    Evidence,
    Label,
    Match,
    Origin,
    PassKind,
    ReviewAnswer,
    Severity,
    Target,
    VerdictValue,
    label_origin,
)
from mast_tui.study import OpenModes, Study
from mast_tui.workspace.events.types import FACT_TYPES, Fact, PassFinished, ReviewGiven, SpanRange
from tests.workspace.build import MAST, MODES, TRACE

# Lone surrogates never get here: readers replace them.
texts = st.text(st.characters(codec="utf-8"), max_size=12)
keys = st.sampled_from(["k0", "k1", "k2", ""]) | texts
names = st.sampled_from(["a", "b", "c"])
modes = st.sampled_from(MODES[:3])


@st.composite
def quotes(draw: st.DrawFn) -> Target:
    """Draw a quote in one span, with or without offsets."""
    key = draw(keys)
    quote = draw(texts)
    start = draw(st.none() | st.integers(0, 50))
    end = None if start is None else start + len(quote)
    return Target(key, key, quote, start, end)


targets = st.just(Target()) | st.builds(Target, keys, keys) | quotes()
times = st.sampled_from(["2026-05-04T10:20:30Z", "2026-05-05T10:20:30Z", ""])
offsets = st.none() | st.integers(0, 99)
matches = st.none() | st.sampled_from(Match)
misnamed = st.none() | st.tuples(keys, keys)
evidence = st.builds(
    Evidence,
    key=keys,
    quote=texts,
    char_start=offsets,
    char_end=offsets,
    match=matches,
    misnamed_spans=misnamed,
    wording=st.none() | texts,
) | st.builds(Evidence, key=st.none(), quote=texts, misnamed_spans=misnamed)


def labels(annotator: str = "alice", pass_number: int = 1) -> st.SearchStrategy[Label]:
    """Return labels with few ids, so that they collide."""
    return st.builds(
        Label,
        id=names,
        annotator=st.just(annotator),
        trace_id=st.just(TRACE),
        taxonomy=st.just(MAST.ref),
        mode=modes,
        target=targets,
        note=texts,
        confidence=st.none() | st.floats(0, 1),
        severity=st.none() | st.sampled_from(Severity),
        origin=st.sampled_from(Origin).map(lambda origin: label_origin(annotator, origin)),
        suggestion=st.none() | names,
        saw_suggestions=st.booleans(),
        pass_number=st.just(pass_number),
        created_at=times,
        evidence=st.none() | evidence,
        decisive=st.none() | st.booleans(),
    )


reviews = st.none() | st.builds(
    ReviewGiven, st.sampled_from(ReviewAnswer), st.none() | names, texts
)
side_answers = st.builds(
    SideAnswer,
    names,
    st.none() | st.sampled_from(VerdictValue),
    st.lists(targets, max_size=2).map(tuple),
)
decisions = st.none() | st.builds(
    Decision,
    mode=modes,
    item=names,
    value=st.sampled_from(VerdictValue),
    targets=st.lists(targets, max_size=2).map(tuple),
    sides=st.lists(names, max_size=2).map(tuple),
    answers=st.lists(side_answers, max_size=2).map(tuple),
    decided_by=names,
    decided_at=times,
    judge_seen=st.booleans(),
    reason=texts,
)
shares = st.floats(0, 1)
studies = st.none() | st.builds(
    Study,
    taxonomy=st.just(MAST.ref),
    annotators=st.lists(names, min_size=2, max_size=3, unique=True).map(tuple),
    adjudicators=st.lists(names, max_size=2, unique=True).map(tuple),
    batches=st.just(()) | st.just(((TRACE,), ("another",))),
    per_trace=st.integers(1, 2),
    overlap=shares,
    seed=st.integers(0, 99),
    blind=st.just(False),
    withheld=shares,
    retests=shares,
    open_modes=st.sampled_from(OpenModes),
    **dict.fromkeys(
        ("names_hidden", "judge_first", "boundaries", "reasons", "redact"), st.booleans()
    ),
)
guidelines = st.none() | st.builds(
    Guideline,
    id=names,
    mode=modes,
    text=texts,
    written_by=names,
    written_at=times,
    trace_id=st.none() | st.just(TRACE),
    item=st.none() | names,
)
counts = st.none() | st.integers(0, 9)
BY_NAME: Final = {
    "mode": modes,
    "key": keys,
    "keys": st.lists(keys, max_size=3).map(tuple),
    "ranges": st.lists(st.builds(SpanRange, keys, keys), max_size=2).map(tuple),
    **dict.fromkeys(("id", "item", "suggestion"), names),
    "run": st.none() | names,
    "copy_of": st.none() | st.just(1),
    **dict.fromkeys(("read", "spans"), counts),
    "open_modes": st.sampled_from(["leave", "absent"]),
    **dict.fromkeys(("at", "judged_at"), st.none() | times),
}
BY_TYPE: Final[Mapping[Any, st.SearchStrategy[Any]]] = {
    str: texts,
    bool: st.booleans(),
    bool | None: st.none() | st.booleans(),
    tuple[str, ...]: st.lists(modes, max_size=3).map(tuple),
    PassKind: st.sampled_from(PassKind),
    VerdictValue | None: st.none() | st.sampled_from([VerdictValue.ABSENT, VerdictValue.UNSURE]),
    ReviewGiven | None: reviews,
    Decision | None: decisions,
    Study | None: studies,
    Guideline | None: guidelines,
}
"""The values of a field of a fact by its type; those by its name go before."""


def facts(annotator: str = "alice", pass_number: int = 1) -> st.SearchStrategy[Fact]:
    """Return facts of any kind on a trace."""
    by_type = {**BY_TYPE, Label: labels(annotator, pass_number)}

    def of_kind(kind: Any) -> st.SearchStrategy[Any]:
        return st.builds(
            kind,
            **{
                field.name: BY_NAME[field.name] if field.name in BY_NAME else by_type[field.type]
                for field in fields(kind)
            },
        )

    by_type[PassFinished] = of_kind(PassFinished)
    return st.sampled_from([*FACT_TYPES.values()]).flatmap(of_kind)
