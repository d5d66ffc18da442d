"""Findings of several windows and samples merged into one judgement."""

from __future__ import annotations

from itertools import permutations

from mast_tui.judges.llm.answer.merging import (
    Sighting,
    WindowAnswer,
    judgement_of,
    merge_sightings,
    merged_windows,
    partial_judgement,
)
from mast_tui.judges.llm.request import Window
from mast_tui.labels import Evidence, Finding, Match, VerdictValue

MODES = ("repeats", "forgets", "stops")
PRESENT, ABSENT, UNSURE = VerdictValue.PRESENT, VerdictValue.ABSENT, VerdictValue.UNSURE


def seen(
    first: int | None,
    last: int | None = None,
    *,
    mode: str = "repeats",
    at: tuple[int, int, int] | None = None,
    lost: bool = False,
    confidence: float = 0.5,
    shown: tuple[int, int] = (0, 99),
    sample: int = 0,
    rationale: str = "",
) -> Sighting:
    """Return a finding on these spans; ``at`` is the span and the range of its quote."""
    last = first if last is None else last
    key = None if first is None else f"k{first}"
    words = Evidence(key=key, quote="lost words") if lost else None
    if at is not None:
        span, start, end = at
        words = Evidence(
            key=f"k{span}", quote=f"words {at}", char_start=start, char_end=end, match=Match.EXACT
        )
    last_key = None if last is None else f"k{last}"
    finding = Finding(mode, key, last_key, rationale, confidence, evidence=words)
    return Sighting(finding, first, last, at[0] if at else None, shown, sample)


def part(
    *sightings: Sighting,
    said: dict[str, VerdictValue] | None = None,
    shown: tuple[int, int] = (0, 99),
    modes: tuple[str, ...] = MODES,
) -> WindowAnswer:
    """Return a window's answer; modes with findings are present, others as said or absent."""
    verdicts = dict.fromkeys(modes, ABSENT) | {s.finding.mode: PRESENT for s in sightings}
    if said is not None:
        verdicts = said
    return WindowAnswer(Window(*shown, final=True, modes=modes), verdicts, sightings)


EARLY, LATE = (0, 50), (45, 95)
SAME = {
    "words that overlap": (
        seen(46, at=(46, 0, 20), shown=EARLY), seen(46, at=(46, 10, 30), shown=LATE)
    ),
    "words of one window": (seen(3, 9, at=(5, 0, 20)), seen(5, 20, at=(5, 8, 12))),
    "half in common": (seen(44, 49, shown=EARLY), seen(46, 51, shown=LATE)),
    "inside, where both look": (seen(30, 50, shown=EARLY), seen(47, 48, shown=LATE)),
    "both of the whole trace": (seen(None, shown=EARLY), seen(None, shown=LATE)),
    "one place to label": (seen(3, 9, at=(3, 0, 5)), seen(3, 9, at=(9, 0, 5))),
    "one span without words": (seen(4), seen(4, lost=True)),
}  # fmt: skip
TWO = {
    "two modes": (seen(4, mode="forgets"), seen(4)),
    "two spans": (seen(3), seen(4)),
    "two places in the text of one span": (seen(4, at=(4, 0, 5)), seen(4, at=(4, 50, 60))),
    "little in common": (seen(0, 45, shown=EARLY), seen(45, 95, shown=LATE)),
    "inside, of one window": (seen(0, 9), seen(3, 4)),
    "partly where both look": (seen(0, 50, shown=EARLY), seen(46, 60, shown=LATE)),
    "a span and the whole trace": (seen(None), seen(4)),
}


def test_repeated_findings_are_joined_and_different_ones_kept() -> None:
    for name, (one, other) in (SAME | TWO).items():
        for pair in ((one, other), (other, one)):
            if name in SAME:
                assert len(merged_windows([part(pair[0]), part(pair[1])])) == 1, name
            else:
                assert len(merged_windows([part(*pair)])) == 2, name


def test_a_located_quote_goes_before_confidence() -> None:
    proven = seen(46, at=(46, 0, 5), confidence=0.2, shown=EARLY, rationale="proven")
    unproven = seen(46, confidence=0.6, shown=LATE)
    lost = seen(46, lost=True, confidence=0.9, shown=LATE)
    [kept] = merged_windows([part(proven), part(unproven), part(lost)])
    assert kept.finding.rationale == "proven"
    [kept] = merged_windows([part(unproven), part(lost)])
    assert kept.finding.evidence is None
    surer = seen(44, 49, at=(47, 0, 5), confidence=0.8, shown=LATE, rationale="surer")
    [kept] = merged_windows([part(seen(45, 49, at=(45, 0, 5), shown=EARLY)), part(surer)])
    assert (kept.finding.rationale, kept.first) == ("surer", 44)


VERDICTS: list[tuple[list[VerdictValue | None], VerdictValue | None, VerdictValue | None]] = [
    ([ABSENT, ABSENT], ABSENT, ABSENT), ([ABSENT, UNSURE], UNSURE, UNSURE),
    ([UNSURE, UNSURE], UNSURE, UNSURE), ([ABSENT, None], None, ABSENT),
    ([UNSURE, None], None, UNSURE), ([None, None], None, None),
    ([ABSENT, ABSENT, UNSURE], UNSURE, ABSENT), ([ABSENT, None, None], None, ABSENT),
]  # fmt: skip


def test_verdicts_need_all_windows_and_most_samples() -> None:
    for said, of_windows, of_samples in VERDICTS:
        parts = [part(said={"stops": value} if value else {}, modes=MODES[::2]) for value in said]
        for samples, verdict in (([parts], of_windows), ([[one] for one in parts], of_samples)):
            judgement = judgement_of(samples, MODES)
            assert ("stops" in judgement.unsure) == (verdict is UNSURE)
            assert ("stops" in (judgement.judged_modes or ())) == (verdict is not None)
            assert "forgets" not in (judgement.judged_modes or ())


def test_a_mode_seen_in_any_window_is_present() -> None:
    parts = [
        part(said={}),
        part(seen(60), said={"repeats": PRESENT}),
        part(said={"repeats": UNSURE}),
    ]
    judgement = judgement_of([parts], MODES)
    assert [finding.mode for finding in judgement.findings] == ["repeats"]
    assert (judgement.judged_modes, judgement.unsure) == (("repeats",), ())
    # A window that does not look at a mode has no say in it.
    inner = part(modes=("repeats",), shown=EARLY)
    assert judgement_of([[inner, part(shown=LATE)]], MODES).judged_modes == MODES


def test_confidence_is_the_share_of_samples() -> None:
    samples = [
        [part(seen(3, 5, confidence=0.9, sample=0), seen(60, sample=0))],
        [part(seen(5, 8, at=(6, 0, 5), confidence=0.1, sample=1))],
        [part(seen(8, 9, sample=2), seen(3, at=(3, 0, 9), confidence=0.4, sample=2))],
        [part()],
    ]
    found = judgement_of(samples, MODES).findings
    assert [(f.first, f.last, f.confidence) for f in found] == [
        ("k3", "k3", 0.75),
        ("k60", "k60", 0.25),
    ]
    twice = [[part(seen(3, confidence=0.2))], [part(seen(3, confidence=0.4, sample=1))]]
    assert [f.confidence for f in judgement_of(twice, MODES).findings] == [1.0]


def test_findings_are_joined_alike_in_any_order() -> None:
    chain = (
        seen(3, 6, at=(3, 0, 5)), seen(5, 8, at=(6, 0, 5), confidence=0.9), seen(7, 9),
        seen(None), seen(3, 6, mode="stops"),
    )  # fmt: skip
    merged = [judgement_of([[part(*order)]] * 2, MODES) for order in permutations(chain)]
    assert all(one == merged[0] for one in merged)
    modes = {finding.mode for finding in merged[0].findings}
    assert modes == {one.finding.mode for one in chain}


def test_a_partial_judgement_has_only_verdicts_on_findings() -> None:
    judgement = partial_judgement(
        merge_sightings([[part(seen(3, mode="stops"), said={"forgets": UNSURE})]], MODES)
    )
    assert (judgement.judged_modes, judgement.unsure) == (("stops",), ())
    assert [finding.mode for finding in judgement.findings] == ["stops"]
