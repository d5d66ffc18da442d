"""The assignment of traces to annotators depends only on the study, and is fair."""

from __future__ import annotations

from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations, starmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.study import (
    Assignment,
    Membership,
    Release,
    Study,
    annotators_of,
    assigned,
    changes_to_figures,
    overlap_traces,
    random_sample,
    retest_traces,
    retests_due,
    with_release,
    withheld_traces,
)
from mast_tui.study.model import InvalidStudy
from mast_tui.study.plan import RETEST_GAP

SHARES = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 0.5, 0.9, 1.0])
NAMES = ("alice", "bob", "čeněk", "dora", "eve")


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """Return a study with a few batches of traces, some of them empty."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    sizes = draw(st.lists(st.integers(0, 25), max_size=4))
    batches = tuple(
        tuple(f"run-{batch}-{number}" for number in range(size)) for batch, size in enumerate(sizes)
    )
    blind = draw(st.booleans())
    return Study(
        "MAST@1",
        names,
        batches=batches,
        per_trace=draw(st.integers(1, len(names))),
        overlap=draw(SHARES),
        seed=draw(st.integers(0, 5)),
        blind=blind,
        withheld=0.0 if blind else draw(SHARES),
        retests=draw(SHARES),
    )


def simple(count: int = 40, *further_sizes: int, **values: object) -> Study:
    """Return a study of alice and bob with batches of the given sizes and other settings."""
    sizes = (count, *further_sizes)
    batches = tuple(tuple(f"t{batch}-{i}" for i in range(size)) for batch, size in enumerate(sizes))
    study = Study("MAST@1", ("alice", "bob"), batches=batches, seed=3)
    return replace(study, **values)


def to_nearest(share: float, count: int) -> int:
    return int((Decimal(str(share)) * count).quantize(Decimal(1), rounding=ROUND_HALF_UP))


@settings(deadline=None, max_examples=25)
@given(studies())
def test_each_trace_has_its_number_of_annotators(study: Study) -> None:
    shared = set(overlap_traces(study))
    for trace_id in study.traces:
        annotators = annotators_of(study, trace_id)
        assert len(annotators) == (study.per_trace if trace_id in shared else 1)
        assert len(set(annotators)) == len(annotators)
        assert all(trace_id in assigned(study, name) for name in annotators)
    for name in study.annotators:
        ids = assigned(study, name)
        assert len(set(ids)) == len(ids)
        assert {x for x in study.traces if name in annotators_of(study, x)} == set(ids)
    if study.per_trace > 1:
        assert len(shared) == to_nearest(study.overlap, len(study.traces))


@settings(deadline=None, max_examples=25)
@given(studies())
def test_each_annotator_has_the_same_share_of_each_batch(study: Study) -> None:
    shared = set(overlap_traces(study))
    for batch in study.batches:
        by_one = [x for x in batch if x not in shared]
        by_several = [x for x in batch if x in shared]
        for trace_ids in (by_one, by_several):
            loads = Counter(dict.fromkeys(study.annotators, 0))
            for trace_id in trace_ids:
                loads.update(annotators_of(study, trace_id))
            assert max(loads.values()) - min(loads.values()) <= 1


@settings(deadline=None, max_examples=25)
@given(studies(), st.integers(1, 20))
def test_a_further_batch_does_not_change_earlier_ones(study: Study, more: int) -> None:
    grown = replace(study, batches=(*study.batches, tuple(f"new-{i}" for i in range(more))))
    old_ids = set(study.traces)
    assert [x for x in overlap_traces(grown) if x in old_ids] == list(overlap_traces(study))
    for name in study.annotators:
        ids = assigned(study, name)
        assert assigned(grown, name)[: len(ids)] == ids
        assert withheld_traces(grown, name).intersection(ids) == withheld_traces(study, name)
        retests = retest_traces(study, name)
        assert retest_traces(grown, name)[: len(retests)] == retests


@settings(deadline=None, max_examples=25)
@given(studies())
def test_shares_are_exact_to_rounding(study: Study) -> None:
    for name in study.annotators:
        ids = assigned(study, name)
        withheld = [x for x in ids if x in withheld_traces(study, name)]
        assert len(withheld) == to_nearest(study.withheld, len(ids))
        retests = retest_traces(study, name)
        assert len(set(retests)) == len(retests) == to_nearest(study.retests, len(ids))
        assert set(retests) <= set(ids)


@settings(deadline=None, max_examples=20)
@given(studies(), st.permutations(NAMES))
def test_the_order_of_names_makes_no_difference(study: Study, order: tuple[str, ...]) -> None:
    other = replace(study, annotators=tuple(n for n in order if n in study.annotators))
    assert all(annotators_of(other, x) == annotators_of(study, x) for x in study.traces)
    assert all(assigned(other, n) == assigned(study, n) for n in study.annotators)
    assert changes_to_figures(study, other) == ()


def test_each_annotator_has_another_order() -> None:
    study = simple()
    alice, bob = (assigned(study, name) for name in ("alice", "bob"))
    assert set(alice) == set(bob) == set(study.traces)
    assert len({alice, bob, study.traces, assigned(replace(study, seed=4), "alice")}) == 4
    # Traces added one by one are shared too.
    study = simple(1, *[1] * 39, overlap=0.3)
    assert len(overlap_traces(study)) == 12
    assert abs(len(assigned(study, "alice")) - len(assigned(study, "bob"))) <= 2


def test_pairs_meet_about_equally_often() -> None:
    names = ("a", "b", "c", "d", "e")
    study = simple(200, annotators=names, per_trace=2)
    met = Counter(annotators_of(study, x) for x in study.traces)
    assert set(met) == set(combinations(names, 2))
    assert max(met.values()) - min(met.values()) <= 2


def test_a_renamed_trace_keeps_its_annotators() -> None:
    study = simple(overlap=0.5, retests=0.25)
    renamed = replace(study, batches=(tuple(f"{x}~2" for x in study.traces),))
    for name in study.annotators:
        assert assigned(renamed, name) == tuple(f"{x}~2" for x in assigned(study, name))
        assert retest_traces(renamed, name) == tuple(f"{x}~2" for x in retest_traces(study, name))


def test_withheld_suggestions_are_spread_over_the_queue() -> None:
    study = simple(100, blind=False, withheld=0.2)
    ids = assigned(study, "alice")
    for start in range(0, 100, 5):
        assert sum(x in withheld_traces(study, "alice") for x in ids[start : start + 5]) == 1
    other = [x for x in ids if x in withheld_traces(study, "bob")]
    assert other != [x for x in ids if x in withheld_traces(study, "alice")]


def test_others_are_assigned_nothing_and_see_no_withheld_suggestion() -> None:
    study = simple(blind=False, withheld=0.5, retests=0.5)
    assert assigned(study, "mallory") == retest_traces(study, "mallory") == ()
    assert withheld_traces(replace(study, adjudicators=("mallory",)), "mallory") == frozenset()
    assert annotators_of(study, "elsewhere") == ()
    hidden = withheld_traces(study, "alice") | withheld_traces(study, "bob")
    assert withheld_traces(study, "mallory") == hidden != frozenset()


def test_retests_are_due_after_other_traces() -> None:
    study = simple(40, retests=0.5)
    ids = assigned(study, "alice")
    retests = retest_traces(study, "alice")
    assert retests_due(study, "alice", ids[:RETEST_GAP]) == ()
    for done in range(RETEST_GAP, 40):
        due = retests_due(study, "alice", ids[:done])
        assert due == tuple(x for x in ids[: done - RETEST_GAP] if x in retests)
    assert retests_due(study, "alice", ids) == retests
    assert retests_due(study, "alice", ids, retested=retests[:3]) == retests[3:]
    ended = replace(study, memberships=(Membership("alice", 0, 1),))
    assert retests_due(ended, "alice", ids) == ()
    # One other trace is enough if none is left.
    study = simple(3, retests=0.3)
    (retest,) = retest_traces(study, "alice")
    other_traces = [x for x in assigned(study, "alice") if x != retest]
    assert retests_due(study, "alice", [retest, other_traces[0]]) == ()
    assert retests_due(study, "alice", [retest, *other_traces]) == (retest,)
    assert retests_due(study, "alice", [*other_traces, retest]) == ()


@given(st.sets(st.text(max_size=5), max_size=20), st.integers(0, 9), st.integers(0, 25))
def test_a_sample_has_different_traces_and_grows_with_its_size(
    ids: set[str], seed: int, n: int
) -> None:
    sample = random_sample(ids, seed, n)
    assert len(set(sample)) == len(sample) == min(n, len(ids))
    assert set(sample) <= ids
    assert random_sample(sorted(ids), seed, n + 1)[: len(sample)] == sample


def test_each_seed_draws_another_sample() -> None:
    ids = [f"t{i}" for i in range(8)]
    assert random_sample(ids, 0, 3) != random_sample(ids, 1, 3)
    assert len({random_sample(ids, seed, 1) for seed in range(60)}) == 8


def test_changes_to_what_figures_depend_on_are_named() -> None:
    study = simple(overlap=0.5, blind=False)
    allowed = replace(
        study, adjudicators=("carol",), retests=0.2, names_hidden=False, judge_first=True,
        boundaries=True, reasons=True, batches=(*study.batches, ("late",)),
    )  # fmt: skip
    assert changes_to_figures(study, allowed) == ()
    for other, message in (
        (replace(study, annotators=("alice", "bob", "carol")), "annotators"),
        (replace(study, per_trace=1), "the number"),
        (replace(study, overlap=0.4), "overlap"),
        (replace(study, seed=9), "seed"),
        (replace(study, blind=True), "blind"),
        (replace(study, withheld=0.1), "without suggestions"),
        (replace(study, batches=(study.traces[1:],)), "traces"),
    ):
        (change,) = changes_to_figures(study, other)
        assert message in change
    released = simple(8, releases=(Release("alice", ("t0-1",)),))
    assert changes_to_figures(released, replace(released, releases=()))
    before, late = simple(4), simple(4, 4)
    fixed = replace(late, assignments=(Assignment("t1-0", ("bob",)),))
    assert changes_to_figures(before, fixed) == ()
    moved = replace(late, assignments=(Assignment("t0-0", ("bob",)),))
    assert changes_to_figures(moved, late) == ("the assignments",)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Study, Study, frozenset[str], str]:
    """Draw an annotator who leaves a study.

    Returns:
        The study before and after, the finished traces of the annotator, and the name.
    """
    before = draw(studies().filter(lambda study: len(study.annotators) > 1 and study.batches))
    name = draw(st.sampled_from(before.annotators))
    ids = assigned(before, name)
    finished = frozenset(ids[: draw(st.integers(0, len(ids)))])
    left = tuple(trace_id for trace_id in ids if trace_id not in finished)
    ended = (Membership(name, 0, len(before.batches)),)
    return before, replace(with_release(before, name, left), memberships=ended), finished, name


@given(changed())
def test_finished_traces_stay_when_an_annotator_leaves(
    case: tuple[Study, Study, frozenset[str], str],
) -> None:
    before, after, finished, name = case
    assert changes_to_figures(before, after) == ()
    assert set(assigned(after, name)) == finished
    for other in before.annotators:
        if other == name:
            continue
        previous = assigned(before, other)
        assert assigned(after, other)[: len(previous)] == previous
        assert withheld_traces(before, other) <= withheld_traces(after, other)
        assert {*retest_traces(before, other)} <= {*retest_traces(after, other)}
    everyone = set(before.annotators)
    for trace_id in before.traces:
        previous_annotators = set(annotators_of(before, trace_id))
        annotators = annotators_of(after, trace_id)
        is_released = name in previous_annotators and trace_id not in finished
        has_successor = bool(everyone - previous_annotators) or not is_released
        assert len(annotators) == len(previous_annotators) - (not has_successor)
        assert all(trace_id in assigned(after, annotator) for annotator in annotators)
    new = Membership("new", len(after.batches))  # gets no trace that was given back before
    joined = replace(after, annotators=(*after.annotators, "new"), memberships=(new,))
    assert all(
        annotators_of(joined, trace_id) == annotators_of(after, trace_id)
        for trace_id in before.traces
    )


@given(studies().filter(lambda study: "dora" not in study.annotators))
def test_an_annotator_who_joins_is_assigned_later_batches(before: Study) -> None:
    joined = replace(
        before,
        annotators=(*before.annotators, "dora"),
        memberships=(Membership("dora", len(before.batches)),),
    )
    for name in before.annotators:
        assert assigned(joined, name) == assigned(before, name)
    assert assigned(joined, "dora") == ()
    assert changes_to_figures(before, joined) == () or not before.batches
    more = tuple(f"new-{number}" for number in range(60))
    later = replace(joined, batches=(*joined.batches, more))
    assert assigned(later, "dora")
    for name in before.annotators:
        previous = assigned(before, name)
        assert assigned(later, name)[: len(previous)] == previous


def test_released_traces_go_to_the_annotators_with_fewest() -> None:
    study = simple(12, annotators=("alice", "bob", "eve"), per_trace=1)
    joined = replace(
        study,
        annotators=("alice", "bob", "eve", "dora"),
        memberships=(Membership("dora", 1),),
        releases=(Release("alice", assigned(study, "alice")),),
    )
    counts = {name: len(assigned(joined, name)) for name in joined.annotators}
    assert counts == {"alice": 0, "bob": 4, "eve": 4, "dora": 4}


@settings(deadline=None, max_examples=25)
@given(studies(), st.data())
def test_assignments_by_name_go_before_the_plan(study: Study, data: st.DataObject) -> None:
    if not study.traces:
        return
    some = data.draw(st.lists(st.sampled_from(study.traces), unique=True, max_size=10))
    names = st.sets(st.sampled_from(study.annotators), min_size=1)
    fixed = {trace_id: tuple(sorted(data.draw(names))) for trace_id in some}
    after = replace(study, assignments=tuple(starmap(Assignment, fixed.items())))
    for trace_id in study.traces:
        annotators = annotators_of(after, trace_id)
        assert annotators == fixed.get(trace_id, annotators)
        assert (trace_id in overlap_traces(after)) == (len(annotators) > 1)
        assert all(trace_id in assigned(after, name) for name in annotators)


def test_annotators_are_assigned_traces_by_weight() -> None:
    for weight in (0.5, 2, 3):
        study = simple(60, overlap=0.0, memberships=(Membership("alice", 0, None, weight),))
        alice, bob = (len(assigned(study, name)) for name in ("alice", "bob"))
        assert alice + bob == 60
        assert abs(alice / bob - weight) < 0.1
        assert "the annotators' weights" in changes_to_figures(simple(60, overlap=0.0), study)
    memberships = (Membership("bob", 0, 1), Membership("bob", 1, None, 2.0))
    study = simple(30, 30, overlap=0.0, memberships=memberships)
    assert (study.weight("bob", 0), study.weight("bob", 1), study.weight("alice", 1)) == (1, 2, 1)
    bob_ids = assigned(study, "bob")
    counts = [sum(trace_id.startswith(f"t{batch}-") for trace_id in bob_ids) for batch in (0, 1)]
    assert counts == [15, 20]


def test_invalid_assignments_memberships_and_releases_are_refused() -> None:
    for values, message in (
        ({"assignments": (Assignment("other", ("bob",)),)}, "is not in the study"),
        ({"assignments": (Assignment("t0-0", ("eve",)),)}, "must keep the name: .*eve"),
        ({"assignments": (Assignment("t0-0", ()),)}, "has no annotator"),
        ({"memberships": (Membership("bob", 0, None, 0.0),)}, "weight must be greater than 0"),
        ({"releases": (Release("zoe", ()),)}, "must keep the name: .*zoe"),
    ):
        with pytest.raises(InvalidStudy, match=message):
            simple(4, **values)
