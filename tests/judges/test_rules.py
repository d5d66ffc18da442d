"""Suggestions of each rule, and properties of the rules on random traces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.errors import MastError
from mast_tui.judges.rules import RULES, RulesJudge, chosen_rules
from mast_tui.judges.rules.walk import walk
from mast_tui.labels import Finding
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from tests.judges.memory_trace import MemoryTrace

REPETITION = "step_repetition"
TOO_LATE = "unaware_of_termination_conditions"
GUESSED = "fail_to_ask_for_clarification"
TOO_EARLY = "premature_termination"
FAILING = "incorrect_verification"

PODS = "NAME        READY   STATUS    RESTARTS   AGE\nledger-0    0/1     Error     4          7m\n"
OTHER_PODS = PODS.replace("0/1     Error     4", "1/1     Running   4")


def start() -> MemoryTrace:
    return MemoryTrace().user("The ledger of the shop answers with 503. Find out why and mend it.")


def suggested_ranges(trace: MemoryTrace, mode: str) -> list[tuple[int, int]]:
    """Return the ranges of span numbers at which a mode is suggested."""
    ranges = []
    for finding in RulesJudge(RULES).judge(trace).findings:
        if finding.mode == mode:
            assert finding.first is not None
            assert finding.last is not None
            first = trace.index_of(finding.first)
            last = trace.index_of(finding.last)
            assert first is not None
            assert last is not None
            ranges.append((first + 1, last + 1))
    return ranges


def only_finding(trace: MemoryTrace) -> Finding:
    (finding,) = RulesJudge(RULES).judge(trace).findings
    return finding


Builder = Callable[[MemoryTrace], object]
Ranges = list[tuple[int, int]]


def cases(mode: str, *examples: tuple[str, Ranges, Builder]) -> list[object]:
    """Return the cases of a mode: name, expected places, steps."""
    return [
        pytest.param(mode, ranges, steps, id=f"{mode}: {name}") for name, ranges, steps in examples
    ]


def each(values: Iterable[object], steps: Callable[[MemoryTrace, Any], object]) -> Builder:
    def all_steps(trace: MemoryTrace) -> None:
        for value in values:
            steps(trace, value)

    return all_steps


def polled(values: Sequence[str]) -> Builder:
    """Repeat a command with these results."""
    return each(values, lambda t, value: t.run("curl -s 'http://prom/query?query=p95'", value))


def say_each(text: str, *names: str) -> Builder:
    """Say the text with each name, each followed by another agent's answer."""
    return each(names, lambda t, name: t.say(text.format(name), "lead").say(f"{name}: no", "other"))


def wait_for_change(times: int) -> Builder:
    """Change something, and poll for its effect."""
    poll = each(range(times), lambda t, _: t.run("sleep 30; kubectl get pods", PODS))
    return lambda t: poll(t.run("kubectl rollout restart deploy/ledger", "restarted"))


PAGE = "Address: https://a.example/p\nTitle: P\nViewport position: page {} of 3.\n===\nText"
SCREENSHOT = " Here is a screenshot of [P](https://a.example/p). The viewport shows 30%.\nText"
PROMPT = "You are at a company that makes software. Answer in one word, and nothing else. "
LOGGED = "I look at the ledger's pods now, and then at the events of the last hour. " * 10
ARCHIVE = "Please open the archive of 2015 and read the table of the first week of August to me."
REPEATED = cases(
    REPETITION,
    ("an age that has grown", [(4, 5)],
     lambda t: t.run("ls", PODS).run("ls", PODS.replace("7m", "9m12s"))),
    ("output cut in another way", [(4, 5)],
     lambda t: t.run("kubectl get pods | head -20", PODS).run("kubectl get pods 2>&1", PODS)),
    ("the same words ask for nothing new", [(6, 7)],
     lambda t: t.user("Go on.").run("ls", PODS).user("Go on.").run("ls", PODS)),
    ("a refused answer again", [(5, 6)],
     each("ab", lambda t, _: t.call("submit", '{"answer": "42"}', "42").user("That is wrong."))),
    ("a failing change again", [(4, 7)],
     each("abc", lambda t, _: t.run("kubectl apply -f a.yaml", "error: no file", failed=True))),
    ("a failing call again after another try", [(6, 7)],
     each("aba", lambda t, name: t.run(f"kubectl get pod ledger-{name}", "no", failed=True))),
    ("waiting too often for a change", [(10, 13)], wait_for_change(5)),
    ("one agent says the same", [(4, 4), (6, 6)], say_each(ARCHIVE, *"abc")),
    ("two questions in turns", [(6, 13)],
     each("abc", lambda t, _: t.run("kubectl get pods", PODS).run("kubectl get events", "none"))),
    ("not what lies between", [(4, 5), (8, 9)],
     lambda t: t.run("ls", PODS).run("ls", PODS).run("ps", "none").run("ls", PODS)),
    ("the same view", [(5, 5)],
     each((1, 1, 2, 1), lambda t, page: t.say("Open the page of the shop.", "lead")
          .say(PAGE.format(page), "surfer"))),
)  # fmt: skip
NOT_REPEATED = cases(
    REPETITION,
    ("a new request", [],
     lambda t: t.run("ls", PODS).user("And are they well now?").run("ls", PODS)),
    ("after a change", [],
     lambda t: t.run("kubectl get pods", PODS).run("kubectl rollout restart deploy/ledger", "ok")
     .run("kubectl get pods", PODS)),
    ("another answer", [],
     lambda t: t.run("kubectl get pods", PODS).run("kubectl get pods", OTHER_PODS)),
    ("another picture", [], lambda t: t.run("ls", "ok\n[image]").run("ls", "ok\n[image]")),
    ("another place", [],
     lambda t: t.run("kubectl get pods", PODS).run("kubectl get pods -n other", PODS)),
    ("another question", [],
     lambda t: t.run("kubectl get pods", PODS).run("kubectl get deployments", PODS)),
    ("another agent", [],
     lambda t: t.run("ls", PODS).call("shell", '{"cmd": "ls"}', PODS, agent="second")),
    ("pages of one file", [],
     each(range(6), lambda t, n: t.run(f"sed -n '{n}00,{n}99p' src/ledger.py", "    return\n"))),
    ("waiting for a change", [], wait_for_change(3)),
    ("waiting by the clock", [],
     lambda t: t.run("kubectl rollout restart deploy/ledger", "restarted", start=1_000.0)
     .run("kubectl get pods", PODS, start=1_100.0).run("kubectl get pods", PODS, start=1_200.0)),
    ("answers with other numbers", [], polled(("101", "102", "103", "104"))),
    ("calls without a result", [], each("abc", lambda t, _: t.run("ls /srv", None))),
    ("other names", [],
     say_each("Please ask {} what a parcel of two kilograms to Lyon costs. Tell me the cheapest way"
              " there is.", "FedEx", "DHL", "USPS")),
    ("other codes", [],
     say_each("Look for flights from {} to Lisbon on the first of May, please. Tell me the cheapest"
              " way there is.", "JFK", "LHR", "CDG")),
    ("a prompt that agents share", [],
     each("abc", lambda t, _: t.say(PROMPT + "Python.", "chief").say(PROMPT + "Done.", "clerk"))),
    ("what a log prints twice", [],
     each(range(3), lambda t, turn: t.say(LOGGED).log(f"copy {turn}"))),
    ("an argument that is mended", [],
     each(("a", "a-0"), lambda t, name: t.run(f"kubectl get pod {name}", "no", failed=True))),
    ("another click with the same view", [],
     lambda t: t.say("I clicked 'Next'." + SCREENSHOT).say("I clicked 'More'." + SCREENSHOT)),
)  # fmt: skip


def order(number: str) -> Builder:
    return lambda t: t.call("get_order", json.dumps({"order_id": number}), "none")


def from_a_long_answer(trace: MemoryTrace) -> None:
    trace.call("list_orders", "{}", "x" * 5000 + " #W1234567 " + "x" * 5000)
    trace.call("get_order", '{"order_id": "#W1234567"}', "pending")


def sales(trace: MemoryTrace) -> None:
    trace.call("sales", "{}", '{"a": 850000, "b": 950000}')
    trace.say("Here is the sales data of both homes, of 2022: 850,000 and 950,000.")


def message(text: str) -> Builder:
    return lambda t: t.say(text)


INVENTED = cases(
    GUESSED,
    *((value, [(2, 2)], order(value)) for value in ("#W1234567", "your_order_id")),
    ("given in another spelling", [],
     lambda t: t.user("Order w-1234567.").call("get_order", '{"order_id": "#W1234567"}', "none")),
    ("from a long answer", [], from_a_long_answer),
    *((text, [(2, 2)], message(text)) for text in (
        "Assuming we have downloaded the table, the mean is 12.",
        "As the download fails, we can simulate the temperature data for now.",
        "I use placeholder values until somebody has the file.",
        "Here is the sales data of both homes: 850,000 and 950000.",
    )),
    *((text, [], message(text)) for text in (
        "I will not assume that we have the table; please send it.",
        "If we assume the file is complete, the mean is 12.",
        "The simulation ends at noon.",
    )),
    ("figures of a tool, and years", [], sales),
)  # fmt: skip

LIMIT = "run ended: maximum number of turns (40) reached"
TOO_LATE_ENDS = cases(
    TOO_LATE,
    ("a limit ends the run at work", [(5, 5)],
     lambda t: t.think("More logs.").run("kubectl logs deploy/ledger", "timeout").log(LIMIT)),
    ("a limit after the end", [],
     lambda t: t.run("ls", OTHER_PODS).say("The incident is resolved: all are ready.").log(LIMIT)),
    ("a limit in a service", [],
     lambda t: t.run("cat log", "WARN rate limit exceeded: 200 requests\n" * 40).say("Throttled.")),
)  # fmt: skip

RESTART = "kubectl rollout restart deploy/ledger"
GIVES_UP = "# Nothing helps, so I give up on it here.\nprint(apis.supervisor.complete_task())"
ENDS = cases(
    TOO_EARLY,
    *((text, [(4, 4)], lambda t, text=text: t.run("kubectl get pods", PODS).say(text)) for text in (
        "I could not determine the cause. I'll leave it here.",
        "I am giving up on this one.",
        "The restart is through. The ledger is still failing.",
        "The cause is a full volume. Further investigation is required.",
        "Now I'll check the events of the node.",
        "I am now running the tests.",
    )),
    *((text, [], message(text)) for text in (
        "If that helps I'll look at the pods.", "I will not delete the pod.", "I'll wait for you.",
    )),
    ("a refusal by policy", [],
     lambda t: t.call("get_order", "{}", '{"status": "delivered"}')
     .say("I cannot complete this: by our policy a delivered order is not cancelled.")),
    ("words in the middle", [],
     lambda t: t.say("I could not determine the cause.").run("kubectl get pods", PODS)
     .say("The volume of the ledger is full.")),
    ("a comment in code", [(2, 2)], lambda t: t.call("python", GIVES_UP, "task closed")),
)  # fmt: skip

BROKEN = PODS.replace("Error", "CrashLoopBackOff")
FIXED = "The incident is fixed."


def checked(command: str, result: str, *later: str) -> Builder:
    """Change something, check it, run further commands, and claim success."""

    later_steps = each(later, lambda t, other: t.run(other))

    def steps(trace: MemoryTrace) -> None:
        later_steps(trace.run(RESTART, "restarted").run(command, result))
        trace.say(FIXED)

    return steps


def measured(value: str) -> Builder:
    query = '{"query": "p95(ledger_duration_milliseconds_bucket)"}'
    return lambda t: (
        t.run(RESTART, "restarted").call("promql", query, value)
        .say("p95 is below 500 ms again. The incident is resolved.")
    )  # fmt: skip


CHECKS = cases(
    FAILING,
    *((look, [], checked(look, OTHER_PODS)) for look in (
        "kubectl get pods", "sleep 20 && kubectl get pods", "curl -s http://ledger/healthz",
    )),
    ("a note is no change", [(4, 8)],
     checked("kubectl get pods -l app=ledger", BROKEN, "echo fixed > notes.md")),
    ("words of a page", [],
     lambda t: t.run(RESTART, "restarted").run("kubectl get pods -l app=ledger", BROKEN)
     .say(f"{PAGE.format(1)}\n{FIXED}")),
    ("a count of none", [],
     checked("kubectl logs deploy/ledger | tail -1", "checks: 0 failed, no errors")),
    ("a reading beyond the bound", [(4, 6)], measured("4608.3")),
    ("a reading within the bound", [], measured("412.7")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "ranges", "steps"),
    [*(*REPEATED, *NOT_REPEATED, *INVENTED, *TOO_LATE_ENDS, *ENDS, *CHECKS)],
)
def test_a_mode_is_suggested_at_its_places_only(mode: str, ranges: Ranges, steps: Builder) -> None:
    trace = start()
    steps(trace)
    assert suggested_ranges(trace, mode) == ranges


@pytest.mark.parametrize(
    ("steps", "key", "quote", "rationale"),
    [
        (lambda t: t.run("kubectl get pods", PODS).think("Hm.").run("kubectl get pods", PODS),
         "call_2:call", "kubectl get pods", "#5.*#2"),
        (lambda t: t.think("More logs.").run("kubectl logs deploy/ledger", "timeout").log(LIMIT),
         "line 5", "maximum number of turns", "limit ends the run"),
        (checked("kubectl get pods -l app=ledger", BROKEN), "call_2:result", "CrashLoopBackOff",
         "#6 claims success"),
    ],
    ids=["repetition", "limit", "check"],
)  # fmt: skip
def test_a_finding_has_a_quote_and_a_reason(
    steps: Builder, key: str, quote: str, rationale: str
) -> None:
    trace = start()
    steps(trace)
    finding = only_finding(trace)
    assert finding.evidence is not None
    assert finding.evidence.key == key
    assert quote in finding.evidence.quote
    assert re.search(rationale, finding.rationale)


def test_more_repetitions_give_more_confidence() -> None:
    once, often = (start().run("ls", "a").run("ls", "a") for _ in range(2))
    assert only_finding(often.run("ls", "a")).confidence > only_finding(once).confidence


def test_rules_are_chosen_by_name() -> None:
    default, every, some = (
        RulesJudge(chosen_rules(which)) for which in ("default", "all", "limit,repeated-call")
    )
    assert default.name == RulesJudge().name
    assert every.name == f"{default.name}+all"
    assert some.name == f"{default.name}+repeated-call+limit"
    assert set(some.looks_at) == {REPETITION, TOO_LATE}
    for names, problem in [
        ("", "no rule named"),
        ("loops", "no rule 'loops'"),
        ("all,nothing", "no rule 'nothing'"),
    ]:
        with pytest.raises(
            MastError, match=f"{problem}.*; there are default, all, and repeated-call"
        ):
            chosen_rules(names)


# Random traces


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
    for index in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(list(SpanKind)))
        earlier = draw(st.integers(0, index))
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


@given(traces())
def test_findings_fit_the_trace(trace: MemoryTrace) -> None:
    judge = RulesJudge(RULES)
    findings = judge.judge(trace).findings
    assert judge.judge(trace).findings == findings
    starts = []
    for finding in findings:
        assert finding.first is not None
        assert finding.last is not None
        first = trace.index_of(finding.first)
        last = trace.index_of(finding.last)
        assert finding.mode in judge.looks_at
        assert first is not None
        assert last is not None
        assert first <= last
        evidence = finding.evidence
        assert evidence is not None
        assert evidence.key is not None
        span = trace.index_of(evidence.key)
        assert span is not None
        assert evidence.quote
        assert trace.text(span)[evidence.char_start : evidence.char_end] == evidence.quote
        assert "#" in finding.rationale
        starts.append(first)
    assert starts == sorted(starts)


def test_only_the_ends_of_long_texts_are_read() -> None:
    filler = "nothing of note here\n" * 100_000
    hidden = MemoryTrace().say(filler + "I give up on it here.\n" + filler)
    visible = MemoryTrace().say(filler + "I give up on it here.")
    assert RulesJudge(RULES).judge(hidden).findings == ()
    (finding,) = RulesJudge(RULES).judge(visible).findings
    evidence = finding.evidence
    assert evidence is not None
    assert visible.text(0)[evidence.char_start : evidence.char_end] == evidence.quote


def test_a_final_message_that_the_file_has_already_is_no_further_step() -> None:
    text = "The login works again. " * 200
    trace = MemoryTrace().say(text)
    assert len(walk(trace, text).steps) == 1
    assert len(walk(trace, text + "Done.").steps) == 2
