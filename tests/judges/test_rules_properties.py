"""Properties of the rules on random traces."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from tests.judges.memory_trace import MemoryTrace

COMMANDS = [
    "kubectl get pods", "kubectl get pods | head -5", "sleep 5; kubectl get pods",
    "kubectl rollout restart deploy/ledger", "cat > a.json <<'EOF'\n{}\nEOF", "./unknown.sh", "",
]  # fmt: skip
WORDS = [
    "I'll take this in three steps: pods, log, events, and then report what I have found.",
    "Next I'll run `kubectl describe pod a`.", "I will not restart it.",
    "I'll use `  ` and `(` and `kubectl`.", "The incident is resolved. Verified.", "Done.",
    "I give up on it here.", "p95 is below 500 ms.", "It is still failing.",
    "maximum number of turns reached", "x" * 5000 + " The task is complete.",
]  # fmt: skip
ANSWERS = [
    *("", "ledger-0 0/1 Error: boom", "4608.3", "y" * 9000),
    '{"output":"a","metadata":{"exit_code":1}}',
]

texts = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(ANSWERS),
    st.builds(lambda command: json.dumps({"cmd": command}), st.sampled_from(COMMANDS)),
    st.text(max_size=40),
    st.builds(lambda code: f"```python\n{code}\n```", st.text(max_size=20)),
)


@st.composite
def traces(draw: st.DrawFn) -> MemoryTrace:
    trace = MemoryTrace()
    for place in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(list(SpanKind)))
        earlier = draw(st.integers(0, place))
        trace.add(
            kind,
            draw(st.sampled_from(list(Role))),
            draw(st.sampled_from(["agent", "other", "third"])),
            draw(texts),
            name=draw(st.sampled_from([None, "shell", "python", "get_order", "promql"])),
            parent=f"line {earlier}" if kind is SpanKind.TOOL_RESULT and earlier else None,
            status=draw(st.sampled_from(list(SpanStatus))),
            start=draw(st.one_of(st.none(), st.floats(0, 1e9))),
        )
    return trace


@settings(max_examples=settings().max_examples // 2)
@given(traces())
def test_findings_fit_the_trace(trace: MemoryTrace) -> None:
    judge = RulesJudge(RULES)
    findings = judge.judge(trace).findings
    assert judge.judge(trace).findings == findings
    starts = []
    for finding in findings:
        assert finding.first is not None
        assert finding.last is not None
        first, last = trace.index_of(finding.first), trace.index_of(finding.last)
        assert finding.mode in judge.looks_at
        assert first is not None
        assert last is not None
        assert first <= last
        words = finding.evidence
        assert words is not None
        assert words.key is not None
        evidence = trace.index_of(words.key)
        assert evidence is not None
        assert words.quote
        assert trace.text(evidence)[words.char_start : words.char_end] == words.quote
        assert "#" in finding.rationale
        starts.append(first)
    assert starts == sorted(starts)


def test_only_the_ends_of_long_texts_are_read() -> None:
    filler = "nothing of note here\n" * 100_000
    hidden = MemoryTrace().say(filler + "I give up on it here.\n" + filler)
    shown = MemoryTrace().say(filler + "I give up on it here.")
    assert RulesJudge(RULES).judge(hidden).findings == ()
    (finding,) = RulesJudge(RULES).judge(shown).findings
    words = finding.evidence
    assert words is not None
    assert shown.text(0)[words.char_start : words.char_end] == words.quote
