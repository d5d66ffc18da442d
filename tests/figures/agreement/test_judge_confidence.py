"""Calibration of confidences, answers to suggestions, and places of a judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_tui.figures.intervals import wilson
from mast_tui.labels import WHOLE_TRACE, Review, ReviewAnswer
from tests.figures.agreement.build_judge import (
    in_order,
    judge_document,
    judge_with,
    suggestion,
    votes,
)
from tests.gold.build import MODE, OTHER, quote, target


def test_calibration_compares_confidence_with_gold_in_bins() -> None:
    judge_input = judge_with(
        votes("11111"),
        votes("11001"),
        suggestions=(
            suggestion("t0", target(1), 0.92),
            suggestion("t1", target(1), 1.0),
            suggestion("t2", target(1), 0.98),
            suggestion("t3", target(1), 0.20),
            suggestion("t4", target(1)),
        ),
    )
    calibration = judge_document(judge_input, rounds=0)["calibration"]
    assert calibration["n"] == 4
    assert calibration["without_confidence"] == 1
    assert [bin_json["n"] for bin_json in calibration["bins"]] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 3]
    top = calibration["bins"][9]
    assert top["mean_confidence"] == pytest.approx((0.92 + 1.0 + 0.98) / 3)
    assert top["right"] == {"value": 2 / 3, "ci": list(wilson(2, 3) or ())}
    error = (3 * abs((0.92 + 1.0 + 0.98) / 3 - 2 / 3) + 0.20) / 4
    assert calibration["expected_calibration_error"]["value"] == pytest.approx(error)
    assert calibration["bins"][0]["mean_confidence"] is None
    assert calibration["bins"][0]["right"] == {"value": None, "undefined": "no_overlap"}
    assert calibration["modes"]["3.1"]["expected_calibration_error"]["value"] is None


def test_claims_have_the_surest_confidence_and_must_be_comparable() -> None:
    twice = (suggestion("t0", target(1), 0.3), suggestion("t0", target(4), 0.8))
    judge_input = judge_with(votes("1"), votes("1"), suggestions=twice)
    calibration = judge_document(judge_input, rounds=0)["calibration"]
    assert (calibration["n"], calibration["mean_confidence"]) == (1, 0.8)
    judge_input = judge_with(
        votes("1111"),
        votes("1?1"),
        seen=frozenset({("t0", MODE)}),
        examples=frozenset({"t2"}),
        suggestions=tuple(suggestion(f"t{i}", target(1), 0.9) for i in range(4)),
    )
    assert judge_document(judge_input, rounds=0)["calibration"]["n"] == 0


def test_answers_are_counted_by_confidence_mode_and_person() -> None:
    suggestions = (
        suggestion("t0", target(1), 0.95),
        suggestion("t0", target(4), 0.15),
        suggestion("t1", target(1), 0.95, OTHER),
        suggestion("t2", target(1)),
        suggestion("t3", target(1), 0.95),
    )
    ids = [item.id for item in suggestions]
    reviews = (
        Review("ann", ids[0], ReviewAnswer.REJECT, pass_number=1),
        Review("ann", ids[0], ReviewAnswer.ACCEPT, pass_number=2),
        Review("bob", ids[0], ReviewAnswer.EDIT),
        Review("ann", ids[1], ReviewAnswer.REJECT),
        Review("ann", ids[2], ReviewAnswer.ACCEPT),
        Review("ann", ids[3], ReviewAnswer.ACCEPT),
        Review("ann", ids[4], ReviewAnswer.ACCEPT),
        Review("ann", "somebody else's", ReviewAnswer.ACCEPT),
    )
    judge_input = judge_with(
        {}, {}, suggestions=suggestions, reviews=reviews, examples=frozenset({"t3"})
    )  # fmt: skip
    answers = judge_document(judge_input, rounds=0)["answers"]
    assert (answers["n"], answers["accept"], answers["edit"], answers["reject"]) == (5, 3, 1, 1)
    assert answers["accepted"]["value"] == 3 / 5
    assert answers["taken"]["value"] == 4 / 5
    assert answers["without_confidence"] == 1
    assert [bin_json["n"] for bin_json in answers["bins"]] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    assert answers["bins"][9]["accepted"]["ci"] == list(wilson(2, 3) or ())
    assert answers["modes"]["1.3"]["n"] == 4
    assert answers["modes"]["3.1"]["accepted"]["value"] == 1.0
    assert answers["annotators"]["bob"]["taken"]["value"] == 1.0
    assert answers["annotators"]["bob"]["accepted"]["value"] == 0.0


def test_place_is_right_if_it_overlaps_one_of_the_same_mode() -> None:
    judge_input = judge_with(
        votes("1110"),
        votes("1101"),
        places={("t0", MODE): (target(2, 5), quote(9, 0, "word")), ("t1", MODE): (target(1),)},
        suggestions=(
            suggestion("t0", target(4, 7)),
            suggestion("t0", quote(9, 2, "rd and")),
            suggestion("t0", target(8)),
            suggestion("t0", WHOLE_TRACE),
            suggestion("t1", target(2)),
            suggestion("t2", target(1)),
        ),
        order_of=in_order,
    )
    localisation = judge_document(judge_input, rounds=0)["localisation"]
    assert localisation["n"] == 4
    assert localisation["right_place"] == {"value": 0.5, "ci": list(wilson(2, 4) or ())}
    assert (localisation["places"], localisation["places_found"]["value"]) == (3, 2 / 3)
    assert localisation["whole_trace"] == 1
    assert localisation["without_order"] == 0
    assert localisation["modes"]["3.1"]["n"] == 0
    assert localisation["merged_places"] == 0
    reference = replace(judge_input.reference, merged={("t0", MODE): frozenset({target(2, 5)})})
    of_merged = judge_document(replace(judge_input, reference=reference), rounds=0)["localisation"]
    assert of_merged["merged_places"] == 1


def test_places_without_an_order_overlap_only_in_one_span() -> None:
    judge_input = judge_with(
        votes("1"),
        votes("1"),
        places={("t0", MODE): (target(2, 5),)},
        suggestions=(suggestion("t0", target(2, 5)), suggestion("t0", target(3))),
    )
    localisation = judge_document(judge_input, rounds=0)["localisation"]
    assert localisation["right_place"]["value"] == 0.5
    assert localisation["without_order"] == 1
    at_hand = judge_document(replace(judge_input, order_of=in_order), rounds=0)["localisation"]
    assert at_hand["right_place"]["value"] == 1.0
    assert at_hand["without_order"] == 0


def test_mode_without_places_locates_nothing() -> None:
    judge_input = judge_with(votes("1"), votes("1"), suggestions=(suggestion("t0", target(3)),))
    localisation = judge_document(judge_input, rounds=0)["localisation"]
    assert (localisation["n"], localisation["no_places"]) == (0, 1)
    assert localisation["right_place"] == {"value": None, "undefined": "no_overlap"}
