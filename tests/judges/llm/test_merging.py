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
from tests.gold.build import ABSENT, PRESENT, UNSURE

MODES = ("repeats", "forgets", "stops")


def sighting(
    first: int | None,
    last: int | None = None,
    *,
    mode: str = "repeats",
    quote: tuple[int, int, int] | None = None,
    lost: bool = False,
    confidence: float = 0.5,
    window: tuple[int, int] = (0, 99),
    sample: int = 0,
    rationale: str = "",
) -> Sighting:
    """Return a finding on these spans; ``quote`` is its span and range."""
    last = first if last is None else last
    key = None if first is None else f"k{first}"
    evidence = Evidence(key=key, quote="lost words") if lost else None
    if quote is not None:
        span, start, end = quote
        text = f"words {quote}"
        evidence = Evidence(
            key=f"k{span}", quote=text, char_start=start, char_end=end, match=Match.EXACT
        )
    last_key = None if last is None else f"k{last}"
    finding = Finding(mode, key, last_key, rationale, confidence, evidence=evidence)
    return Sighting(finding, first, last, quote[0] if quote else None, window, sample)


def part(
    *sightings: Sighting,
    verdicts: dict[str, VerdictValue] | None = None,
    window: tuple[int, int] = (0, 99),
    modes: tuple[str, ...] = MODES,
) -> WindowAnswer:
    """Return a window's answer; modes with findings are present, others absent."""
    if verdicts is None:
        verdicts = dict.fromkeys(modes, ABSENT) | {s.finding.mode: PRESENT for s in sightings}
    return WindowAnswer(Window(*window, final=True, modes=modes), verdicts, sightings)


EARLY = (0, 50)
LATE = (45, 95)
SAME = {
    "words that overlap": (
        sighting(46, quote=(46, 0, 20), window=EARLY), sighting(46, quote=(46, 10, 30), window=LATE)
    ),
    "words of one window": (sighting(3, 9, quote=(5, 0, 20)), sighting(5, 20, quote=(5, 8, 12))),
    "half in common": (sighting(44, 49, window=EARLY), sighting(46, 51, window=LATE)),
    "inside, where both look": (sighting(30, 50, window=EARLY), sighting(47, 48, window=LATE)),
    "both of the whole trace": (sighting(None, window=EARLY), sighting(None, window=LATE)),
    "one target": (sighting(3, 9, quote=(3, 0, 5)), sighting(3, 9, quote=(9, 0, 5))),
    "one span without words": (sighting(4), sighting(4, lost=True)),
}  # fmt: skip
TWO = {
    "two modes": (sighting(4, mode="forgets"), sighting(4)),
    "two spans": (sighting(3), sighting(4)),
    "two quotes": (sighting(4, quote=(4, 0, 5)), sighting(4, quote=(4, 50, 60))),
    "little in common": (sighting(0, 45, window=EARLY), sighting(45, 95, window=LATE)),
    "inside, of one window": (sighting(0, 9), sighting(3, 4)),
    "partly where both look": (sighting(0, 50, window=EARLY), sighting(46, 60, window=LATE)),
    "a span and the whole trace": (sighting(None), sighting(4)),
}


def test_repeated_findings_are_joined_and_different_ones_kept() -> None:
    for name, (first, second) in (SAME | TWO).items():
        for pair in ((first, second), (second, first)):
            if name in SAME:
                assert len(merged_windows([part(pair[0]), part(pair[1])])) == 1, name
            else:
                assert len(merged_windows([part(*pair)])) == 2, name


def test_a_located_quote_outweighs_confidence() -> None:
    proven = sighting(46, quote=(46, 0, 5), confidence=0.2, window=EARLY, rationale="proven")
    unproven = sighting(46, confidence=0.6, window=LATE)
    lost = sighting(46, lost=True, confidence=0.9, window=LATE)
    [merged] = merged_windows([part(proven), part(unproven), part(lost)])
    assert merged.finding.rationale == "proven"
    [merged] = merged_windows([part(unproven), part(lost)])
    assert merged.finding.evidence is None
    surer = sighting(44, 49, quote=(47, 0, 5), confidence=0.8, window=LATE, rationale="surer")
    [merged] = merged_windows([part(sighting(45, 49, quote=(45, 0, 5), window=EARLY)), part(surer)])
    assert (merged.finding.rationale, merged.first) == ("surer", 44)


VERDICTS: list[tuple[list[VerdictValue | None], VerdictValue | None, VerdictValue | None]] = [
    ([ABSENT, ABSENT], ABSENT, ABSENT), ([ABSENT, UNSURE], UNSURE, UNSURE),
    ([UNSURE, UNSURE], UNSURE, UNSURE), ([ABSENT, None], None, ABSENT),
    ([UNSURE, None], None, UNSURE), ([None, None], None, None),
    ([ABSENT, ABSENT, UNSURE], UNSURE, ABSENT), ([ABSENT, None, None], None, ABSENT),
]  # fmt: skip


def test_verdicts_need_all_windows_and_most_samples() -> None:
    for values, of_windows, of_samples in VERDICTS:
        answers = [{"stops": value} if value else {} for value in values]
        parts = [part(verdicts=answer, modes=MODES[::2]) for answer in answers]
        one_window_each = [[window] for window in parts]
        for samples, verdict in (([parts], of_windows), (one_window_each, of_samples)):
            judgement = judgement_of(samples, MODES)
            assert ("stops" in judgement.unsure) == (verdict is UNSURE)
            assert ("stops" in (judgement.judged_modes or ())) == (verdict is not None)
            assert "forgets" not in (judgement.judged_modes or ())


def test_a_mode_seen_in_any_window_is_present() -> None:
    parts = [
        part(verdicts={}),
        part(sighting(60), verdicts={"repeats": PRESENT}),
        part(verdicts={"repeats": UNSURE}),
    ]
    judgement = judgement_of([parts], MODES)
    assert [finding.mode for finding in judgement.findings] == ["repeats"]
    assert (judgement.judged_modes, judgement.unsure) == (("repeats",), ())
    # A window that does not look at a mode has no say in it.
    inner = part(modes=("repeats",), window=EARLY)
    assert judgement_of([[inner, part(window=LATE)]], MODES).judged_modes == MODES


def test_confidence_is_the_share_of_samples() -> None:
    samples = [
        [part(sighting(3, 5, confidence=0.9, sample=0), sighting(60, sample=0))],
        [part(sighting(5, 8, quote=(6, 0, 5), confidence=0.1, sample=1))],
        [part(sighting(8, 9, sample=2), sighting(3, quote=(3, 0, 9), confidence=0.4, sample=2))],
        [part()],
    ]
    findings = judgement_of(samples, MODES).findings
    assert [(f.first, f.last, f.confidence) for f in findings] == [
        ("k3", "k3", 0.75),
        ("k60", "k60", 0.25),
    ]
    twice = [[part(sighting(3, confidence=0.2))], [part(sighting(3, confidence=0.4, sample=1))]]
    assert [f.confidence for f in judgement_of(twice, MODES).findings] == [1.0]


def test_findings_are_joined_alike_in_any_order() -> None:
    chain = (
        sighting(3, 6, quote=(3, 0, 5)), sighting(5, 8, quote=(6, 0, 5), confidence=0.9),
        sighting(7, 9), sighting(None), sighting(3, 6, mode="stops"),
    )  # fmt: skip
    merged = [judgement_of([[part(*order)]] * 2, MODES) for order in permutations(chain)]
    assert all(judgement == merged[0] for judgement in merged)
    modes = {finding.mode for finding in merged[0].findings}
    assert modes == {link.finding.mode for link in chain}


def test_a_partial_judgement_has_only_verdicts_on_findings() -> None:
    judgement = partial_judgement(
        merge_sightings([[part(sighting(3, mode="stops"), verdicts={"forgets": UNSURE})]], MODES)
    )
    assert (judgement.judged_modes, judgement.unsure) == (("stops",), ())
    assert [finding.mode for finding in judgement.findings] == ["stops"]
