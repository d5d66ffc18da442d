"""Setting a study up by a form: texts of a study, and a study of texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.errors import MastError
from mast_tui.study import OpenModes, Study
from mast_tui.ui.study.setup import FIELDS, share_text, study_of, texts_of

SHARES = st.floats(0, 1, allow_subnormal=False)

STUDIES = st.builds(
    Study,
    taxonomy=st.just("mast@1"),
    annotators=st.just(("alice", "bob", "Étienne d'A.")),
    adjudicators=st.sampled_from([(), ("carol",), ("carol", "dan")]),
    batches=st.just((("t1", "t2"), ("t3",))),
    per_trace=st.integers(1, 3),
    overlap=SHARES,
    seed=st.integers(-(10**6), 10**12),
    blind=st.just(False),
    withheld=SHARES,
    retests=SHARES,
    open_modes=st.sampled_from(OpenModes),
    names_hidden=st.booleans(),
    judge_first=st.booleans(),
    boundaries=st.booleans(),
    reasons=st.booleans(),
    redact=st.booleans(),
)


@given(STUDIES)
def test_a_form_that_is_left_as_it_is_changes_nothing(study: Study) -> None:
    texts = texts_of(study, ())
    assert set(texts) == {field.name for field in FIELDS}
    assert study_of(texts, taxonomy=study.taxonomy, previous=study) == study


@given(st.integers(0, 100))
def test_a_whole_percentage_is_its_share(percent: int) -> None:
    texts = {**texts_of(None, ["a", "b"]), "overlap": f"{percent} %"}
    study = study_of(texts, taxonomy="mast@1", previous=None)
    assert study.overlap == percent / 100
    assert share_text(study.overlap) == f"{percent} %"


def test_what_it_begins_with_suits_two_people() -> None:
    study = study_of(
        texts_of(None, ["alice", "bob"]), taxonomy="mast@1", previous=None, traces=["t1", "t2"]
    )
    assert study == Study("mast@1", ("alice", "bob"), batches=(("t1", "t2"),))


def test_only_the_fields_that_differ_are_changed() -> None:
    before = Study("mast@1", ("alice", "bob"), batches=(("t1",),), reasons=True, boundaries=True)
    texts = {**texts_of(before, ()), "seed": "7", "sight": "assisted", "withheld": "12.5"}
    after = study_of(texts, taxonomy="mast@1", previous=before)
    assert after == replace(before, seed=7, blind=False, withheld=0.125)


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("annotators", " , ", "annotators: a study needs at least one"),
        ("annotators", "judge:x, b", "annotators: "),
        ("annotators", "a", "2 annotators a trace need as many"),
        ("annotators", "a=two", "“a=two” is no weight"),
        ("annotators", "a, a", "a is listed twice"),
        ("per_trace", "two", "per trace: “two” is no whole number"),
        ("overlap", "0.5", "overlap: write 0.5 as a percentage"),
        ("overlap", "1", "overlap: write 1 as a percentage"),
        ("overlap", "120 %", "overlap: 120 % is more than all"),
        ("retests", "some", "repeat: “some” is no share"),
        ("withheld", "20 %", "no share is without"),
        ("seed", "", "seed: “” is no whole number"),
    ],
)
def test_what_cannot_be_is_refused_in_words(field: str, text: str, words: str) -> None:
    texts = {**texts_of(None, ["a", "b"]), field: text}
    with pytest.raises(MastError, match=re.escape(words)):
        study_of(texts, taxonomy="mast@1", previous=None)
