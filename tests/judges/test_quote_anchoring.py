"""Location of a finding's quote in the trace, and correction of its span range."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.quote_anchoring import MOST_SEARCHED, NEAR, Locator, anchored
from mast_tui.labels import Evidence, Finding, Match
from mast_tui.redaction.engine import Redaction
from tests.judges.memory_trace import MemoryTrace

TEXTS = (
    "Please mend the cart; write to bob@example.com when it is done.",
    'I said: "the limit is 512 MB" and then I left the cluster alone.',
    "Reading deployment.yaml\n    limits:\n        memory: 20Mi\nwhich is far too little for it.",
    "All three pods are running, although valkey still refuses every write.",
    "I checked the pods of the cart service again — they’re all “healthy”.",
    "ok",
    '{"command": "kubectl get pods", "note": "first line\\nsecond \\"quoted\\" line"}',
    "The cart is healthy now, so I close this incident without another test.",
    "done",
)


@dataclass(frozen=True)
class Claim:
    quote: str | None
    first: int | None = None
    last: int | None = None
    mode: str = "step_repetition"
    rationale: str = "as #1 shows"
    confidence: float = 0.75
    decisive: bool | None = True


def trace_of(*texts: str) -> MemoryTrace:
    trace = MemoryTrace()
    for text in texts:
        trace.say(text, agent="Planner")
    return trace


@dataclass(frozen=True)
class AnchoredClaim:
    """An anchored finding, with the indices of its range and of its quote's span."""

    finding: Finding
    first: int | None
    last: int | None
    span: int | None
    evidence: Evidence

    @property
    def quote(self) -> str | None:
        return None if self.finding.evidence is None else self.evidence.quote


NO_EVIDENCE = Evidence(key=None, quote="")


def anchor(trace: MemoryTrace, claim: Claim, redaction: Redaction | None = None) -> AnchoredClaim:
    """Anchor a claim, and check that a located quote is in the trace verbatim."""
    view = RedactedView(trace, redaction or Redaction.none())
    ends = [f"line {end + 1}" for end in (claim.first, claim.last) if end is not None]
    claimed = Finding(
        claim.mode,
        ends[0] if ends else None,
        ends[-1] if ends else None,
        claim.rationale,
        claim.confidence,
        claim.decisive,
        None if claim.quote is None else Evidence(key=None, quote=claim.quote),
    )
    finding = anchored(claimed, trace, view, Locator(view).locate)
    evidence = finding.evidence or NO_EVIDENCE
    keys = finding.first, finding.last, evidence.key if evidence.placed else None
    first, last, span = (None if key is None else trace.index_of(key) for key in keys)
    if evidence.placed:
        assert span is not None
        assert trace.text(span)[evidence.char_start : evidence.char_end] == evidence.quote
    return AnchoredClaim(finding, first, last, span, evidence)


RUNNING = "All three pods are running"
ALL = TEXTS[3][:-1]
LIMITS = "limits:\n        memory: 20Mi"


def test_quotes_are_found_as_models_write_them() -> None:
    for quote, span, located, match in [
        ("the limit is 512 MB", 1, "the limit is 512 MB", Match.EXACT),
        ('"the limit is 512 MB"', 1, '"the limit is 512 MB"', Match.EXACT),
        ("`valkey still refuses`", 3, "valkey still refuses", Match.EXACT),
        (f"```\n{LIMITS}\n```", 2, LIMITS, Match.EXACT),
        ("limits: memory: 20Mi", 2, LIMITS, Match.SPACING),
        ("limits:\\n        memory: 20Mi", 2, LIMITS, Match.EXACT),
        ("\\u0061lthough valkey", 3, "although valkey", Match.EXACT),
        ('first line\nsecond "quoted"', 6, 'first line\\nsecond \\"quoted\\"', Match.SPACING),
        ('again - they\'re all "healthy"', 4, "again — they’re all “healthy”", Match.SPACING),
        (RUNNING.upper() + " although", 3, f"{RUNNING}, although", Match.SPACING),
        (f"[#4] {RUNNING}", 3, RUNNING, Match.EXACT),
        (f"[0a1b2c3d #4] agent message | planner\n{RUNNING}", 3, RUNNING, Match.EXACT),
        (f"#4] agent message | planner\n{RUNNING}", 3, RUNNING, Match.EXACT),
        (f"Planner (thought): {RUNNING}", 3, RUNNING, Match.EXACT),
        (f"**planner [to user]:** {RUNNING}", 3, RUNNING, Match.EXACT),
        (f"Assistant (thought): {RUNNING}", 3, RUNNING, Match.EXACT),
        (f"Stranger: {RUNNING}", 3, RUNNING, Match.ALTERED),
        ("All three pods &amp;lt;are&amp;gt; running", 3, RUNNING, Match.SPACING),
        ("[The agent] I close this incident", 7, "I close this incident", Match.REWORDED),
        ("…valkey still refuses…", 3, "valkey still refuses", Match.EXACT),
        ("All three pods are … still refuses every write", 3, ALL, Match.IN_PARTS),
        ("All three pods … every write", 3, ALL, Match.IN_PARTS),
        ("Reading deployment.yaml\n limits:\n[… 1,234 characters left out …]\nis far too little",
         2, TEXTS[2][: TEXTS[2].index(" for it")], Match.IN_PARTS),
        (f"{RUNNING} … nothing else", 3, RUNNING, Match.ALTERED),
        ("All three pods were running, but valkey is still refusing every write",
         3, ALL, Match.REWORDED),
        ("the limit is 513 MB", 1, "the limit is 512 MB", Match.ALTERED),
        ("All three pods are not running, although", 3, f"{RUNNING}, although", Match.ALTERED),
        ("the cart is unhealthy now, so I close this incident",
         7, "The cart is healthy now, so I close this incident", Match.ALTERED),
        ("All three pods are … now refusing each write", 3, None, None),
        ("no such thing was ever written down in it", 3, None, None),
        ("valkey still refuses … All three pods", 3, None, None),
    ]:  # fmt: skip
        result = anchor(trace_of(*TEXTS), Claim(quote, span, span))
        assert (result.quote if result.span is not None else None) == located
        assert result.evidence.match is match
        assert result.evidence.wording == (None if match in (None, Match.EXACT) else quote)
        assert result.evidence.misnamed_spans is None
        assert (result.first, result.last) == (span, span)


def test_a_range_without_the_quote_is_corrected() -> None:
    for claimed, corrected, misnamed in [
        ((0, 1), (3, 3), ("line 1", "line 2")),  # the quote is elsewhere
        ((1, 5), (1, 5), None),
        ((None, None), (3, 3), None),
    ]:
        result = anchor(trace_of(*TEXTS), Claim("valkey still refuses every write", *claimed))
        assert (result.first, result.last, result.span) == (*corrected, 3)
        assert (result.evidence.misnamed_spans, result.evidence.match) == (misnamed, Match.EXACT)


def test_a_missing_quote_is_kept_without_a_range() -> None:
    result = anchor(trace_of(*TEXTS), Claim("`it was all in vain, we gave up`", 2, 3))
    assert result.quote == "`it was all in vain, we gave up`"
    evidence = result.evidence
    assert (evidence.key, evidence.char_start, evidence.match) == ("line 3", None, None)
    assert (result.finding.first, result.finding.last) == ("line 3", "line 4")
    result = anchor(trace_of(*TEXTS), Claim("it was all in vain, we gave up"))
    assert (result.finding.first, result.finding.last, result.evidence.key) == (None, None, None)
    result = anchor(trace_of(), Claim("whatever was said about it", 0, 0))
    assert (result.first, result.evidence.char_start) == (None, None)


def test_without_a_quote_the_existing_range_is_kept() -> None:
    for quote in [None, "", "  \n"]:
        for ends, expected in [
            ((2, 3), (2, 3)),
            *((ends, (2, 2)) for ends in ((99, 2), (2, None), (None, 2), (2, -7))),
        ]:
            result = anchor(trace_of(*TEXTS), Claim(quote, *ends))
            assert (result.quote, result.first, result.last) == (None, *expected)
            assert (result.finding.rationale, result.finding.confidence) == ("as #1 shows", 0.75)


def test_a_quote_of_a_gap_alone_is_searched_literally() -> None:
    for quote in ["…", "...", "[…]", " … … "]:
        result = anchor(trace_of("nothing of it", f"and {quote.strip()} so on"), Claim(quote, 1))
        assert (result.first, result.quote) == (1, quote.strip())
        assert not anchor(trace_of("nothing of it"), Claim(quote, 0)).evidence.placed


def test_named_and_near_spans_come_first() -> None:
    # Short words count only in the named span.
    trace = trace_of(*TEXTS)
    assert [anchor(trace, Claim("done", *named)).span for named in ((8, 8), (3, 3), ())] == [
        *(8, None, None)
    ]
    # Of equal places the named one counts, then the nearest.
    quote = "the same words again"
    trace = trace_of(*(quote if n % 10 == 0 else f"step {n}" for n in range(60)))
    for named, span in (((30, 30), 30), ((38, 38), 40), ((32, 33), 30)):
        assert anchor(trace, Claim(quote, *named)).span == span
    # A place in the named span goes before a better match far away.
    trace = trace_of("memory:\n  20Mi is what it has", "nothing", "memory: 20Mi is what it has")
    assert anchor(trace, Claim("memory: 20Mi is what it has", 0, 0)).span == 0
    # A nearby match goes before an altered one in the named span.
    trace = trace_of("step 12: the server was restarted", "step 13: the servers were restarted")
    result = anchor(trace, Claim("step 13: the server was restarted", 0, 0))
    assert (result.span, result.evidence.match) == (1, Match.REWORDED)
    assert anchor(trace, Claim("step 14: the server was restarted", 0, 0)).span == 0


def test_reworded_quotes_are_searched_nearby_and_at_the_ends_of_long_texts() -> None:
    changed = "All three pods were running, but valkey is still refusing every write"
    far = ["step"] * (NEAR + 5)
    assert anchor(trace_of(*TEXTS, *far), Claim(changed, 6, 6)).span == 3
    assert anchor(trace_of(*TEXTS, *far), Claim(changed, NEAR + 12, NEAR + 12)).span is None
    noise = "and the log goes on and on and on. " * 10_000
    changed = "All three pods were running, but valkey is still refusing every write"
    result = anchor(trace_of("no", noise + TEXTS[3]), Claim(changed, 1, 1))
    assert (result.quote, result.evidence.match) == (TEXTS[3][:-1], Match.REWORDED)
    result = anchor(trace_of("no", TEXTS[3] + noise), Claim(changed, 1, 1))
    assert result.evidence.char_start == 0
    assert anchor(trace_of("no", noise + TEXTS[3] + noise), Claim(changed, 1, 1)).span is None


def test_parts_of_a_quote_are_joined_if_they_are_near() -> None:
    trace = trace_of(*TEXTS)
    result = anchor(trace, Claim("valkey still refuses every write. … I checked the pods", 3, 3))
    assert (result.first, result.last, result.span) == (3, 4, 3)
    assert result.quote == "valkey still refuses every write."
    assert result.evidence.misnamed_spans == ("line 4", "line 4")
    header = (
        "still refuses every write.\n[0a1b2c3d4e #5] agent message | planner\nI checked the pods"
    )
    result = anchor(trace, Claim(header, 3, 4))
    assert (result.first, result.last, result.span) == (3, 4, 3)
    assert result.evidence.misnamed_spans is None
    far = Claim("still refuses every write … I close this incident", 3, 3)
    assert anchor(trace, far).span is None
    text = "It all begins here. " + "and so on " * 5_000 + "It all ends there."
    result = anchor(trace_of(text), Claim("It all begins here. […] It all ends there.", 0, 0))
    assert (result.quote, result.evidence.match) == ("It all begins here.", Match.IN_PARTS)
    text = "The tool was called 12 times. " + "It went on. " * 9 + "In the end 7 of them failed."
    quote = "The tool was called 12 times … in the end {} of them failed"
    matches = [anchor(trace_of(text), Claim(quote.format(n), 0, 0)).evidence.match for n in (7, 9)]
    assert matches == [Match.IN_PARTS, Match.ALTERED]


def test_a_quote_with_a_redacted_secret_covers_the_secret() -> None:
    trace = trace_of(*TEXTS)
    sent = RedactedView(trace, Redaction.default()).text(0)
    assert "bob@example.com" not in sent
    quote = sent[sent.index("write") : sent.index(" when")]
    result = anchor(trace, Claim(quote, 0, 0), Redaction.default())
    assert result.quote == "write to bob@example.com"
    assert result.evidence.match is Match.EXACT


TEXT = st.text("abcdefgh é😀内\n\t\"'\\", min_size=8, max_size=80)
SPANS = st.lists(TEXT, min_size=1, max_size=12)


@given(SPANS, st.data())
def test_verbatim_quotes_are_found_exactly(texts: list[str], data: st.DataObject) -> None:
    span = data.draw(st.integers(0, len(texts) - 1))
    start = data.draw(st.integers(0, len(texts[span])))
    quote = texts[span][start : data.draw(st.integers(start, len(texts[span])))]
    named = data.draw(st.none() | st.integers(0, len(texts) - 1))
    result = anchor(trace_of(*texts), Claim(quote, named, named))
    if not quote.strip():
        assert result.quote is None
    elif len(quote.strip()) >= 24 or named == span:
        assert result.evidence.match is Match.EXACT
        assert result.quote == quote.strip()
        assert named is None or (result.evidence.misnamed_spans is None) == (result.span == named)


@given(
    SPANS, st.text(max_size=60), st.none() | st.integers(-3, 15), st.none() | st.integers(-3, 15)
)
def test_any_claim_becomes_a_finding(
    texts: list[str], quote: str, first: int | None, last: int | None
) -> None:
    result = anchor(trace_of(*texts), Claim(quote, first, last))
    assert (result.first is None) == (result.finding.first is None)
    if result.first is not None and result.last is not None:
        assert 0 <= result.first <= result.last < len(texts)
    if result.span is not None and result.first is not None and result.last is not None:
        assert result.first <= result.span <= result.last


@dataclass
class HugeTrace:
    """A trace of many long texts that records which were read."""

    read: list[int] = field(default_factory=list)
    size: int = 100_000

    def __len__(self) -> int:
        return 1_000

    def text(self, index: int, /) -> str:
        self.read.append(index)
        return f"{index:04} the text goes on " * (self.size // 22)

    def agents(self) -> tuple[str, ...]:
        return ()

    def to_original(self, index: int, start: int, end: int, /) -> tuple[int, int]:
        return start, end


def test_only_the_nearest_part_of_a_huge_trace_is_searched() -> None:
    texts = HugeTrace()
    locator = Locator(texts)
    assert locator.locate("words that stand nowhere in this trace at all", (500, 501)) is None
    assert locator.partly_searched_quote_count == 1
    most = MOST_SEARCHED // texts.size + 2
    assert len(set(texts.read)) <= most
    assert all(abs(index - 500) <= most for index in texts.read)
    location = locator.locate("0505 the text goes on", (500, 501))
    assert location is not None
    assert (location.index, locator.partly_searched_quote_count) == (505, 1)
