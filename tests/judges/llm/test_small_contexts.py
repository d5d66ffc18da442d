"""Runs against emulated servers with small contexts, long thinking or wrong counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mast_tui.judges.llm.client.rate_limiter import FIRST
from mast_tui.judges.llm.prompt.tokens import estimate
from mast_tui.judges.llm.run.estimate import estimate_run
from mast_tui.judges.runner import TraceStatus
from mast_tui.taxonomy.loader import from_dict
from mast_tui.workspace import Asked
from tests.judges.llm.bench import Bench, traces
from tests.judges.llm.made_answers import judgement
from tests.judges.llm.server import Action, Script, answer, status

pytestmark = pytest.mark.slow

MODES = [
    {"slug": "late", "code": "1", "name": "Late", "category": "all"},
    {"slug": "loop", "code": "1.3", "name": "Loop", "category": "all"},
]
FEW = from_dict({"id": "few", "version": "1", "categories": [{"id": "all"}], "modes": MODES})
"""Two modes, whose instructions leave room for a trace in 4,096 tokens."""

REAL_SHARE = 1.1
"""The ratio of estimated to counted tokens."""

ANSWER_TOKENS = 500
"""Tokens of an ordinary answer."""


def tokens_of(body: dict[str, Any]) -> int:
    """Count the tokens of a request as the emulated server does."""
    return round(estimate("".join(message["content"] for message in body["messages"])) / REAL_SHARE)


def room_of(body: dict[str, Any]) -> int:
    return int(body["max_tokens"])


def full_answer(body: dict[str, Any], counted: int | None = None) -> Action:
    tokens_in = tokens_of(body) if counted is None else counted
    return answer(judgement(body), tokens_in=tokens_in, tokens_out=ANSWER_TOKENS)


def llama_cpp(context: int) -> Script:
    """Refuse a prompt that is too long, and cut an answer where the context is full."""

    def script(body: dict[str, Any], _n: int) -> Action:
        prompt = tokens_of(body)
        if prompt >= context:
            return status(
                400,
                f"request ({prompt} tokens) exceeds the available context size ({context} tokens),"
                " try increasing it",
                type="exceed_context_size_error",
                n_ctx=context,
            )
        left = context - prompt
        if left < ANSWER_TOKENS:
            half = judgement(body)[: 2 * left]
            return answer(half, tokens_in=prompt, tokens_out=left, finish="length")
        return full_answer(body)

    return script


def vllm(context: int) -> Script:
    """Refuse a prompt that is too long together with its longest answer."""

    def script(body: dict[str, Any], _n: int) -> Action:
        prompt = tokens_of(body)
        room = room_of(body)
        if prompt + room > context:
            return status(
                400,
                f"This model's maximum context length is {context} tokens. However, you requested"
                f" {prompt + room} tokens ({prompt} in the messages, {room} in the completion)."
                " Please reduce the length of the messages or completion.",
            )
        return full_answer(body)

    return script


def says_nothing(context: int) -> Script:
    """Refuse a prompt that is too long without a number."""

    refused = status(400, "Prompt is too long", code="context_length_exceeded")
    return lambda body, _n: refused if tokens_of(body) > context else full_answer(body)


def ollama(context: int) -> Script:
    """Cut a prompt that is too long, and count what is left."""

    return lambda body, _n: full_answer(body, min(tokens_of(body), context))


def counts_alike(count: int) -> Script:
    """Count the same number of tokens for all requests."""
    return lambda body, _n: full_answer(body, count)


@pytest.fixture
def small(bench: Bench) -> Bench:
    """A bench with two modes and eight requests at a time."""
    return replace(bench, taxonomy=FEW, concurrency=8)


def usable_answers(bench: Bench) -> list[Asked]:
    return [
        answered
        for run in bench.workspace.runs()
        for trace in bench.workspace.traces()
        for answered in bench.workspace.answers_about(run.id, trace.trace_id)
        if answered.usable and answered.finish == "stop"
    ]


# Contexts that are small


@pytest.mark.parametrize(
    ("server_like", "context"),
    [
        (llama_cpp, 4_096), (vllm, 8_192), (says_nothing, 4_096), (ollama, 8_192),
    ],
)  # fmt: skip
def test_windows_are_split_until_they_fit(
    server_like: Callable[[int], Script], context: int, small: Bench
) -> None:
    assert FIRST < 8
    small.write_long(4, word_count=300)
    small.server.script = server_like(context)
    summary = small.judge()
    assert (summary.stopped, summary.failed) == (None, [])
    assert dict(+summary.traces) == {TraceStatus.JUDGED: 4}
    read = [min(tokens_of(chat.body), context + 1) for chat in small.chats]
    assert max(read) > context, "the first request was short enough"
    assert all(answered.tokens_in < context for answered in usable_answers(small))


@pytest.mark.parametrize(
    ("server_like", "context"),
    [(llama_cpp, 2_048), (vllm, 4_096), (ollama, 2_048), (ollama, 4_096)],
)
def test_too_long_instructions_stop_the_run(
    server_like: Callable[[int], Script], context: int, bench: Bench
) -> None:
    bench.write_long(4, word_count=50)
    bench.server.script = server_like(context)
    stopped = bench.judge().stopped
    assert len(bench.chats) <= bench.concurrency
    assert stopped is not None
    instructions = bench.setup().prompt.system.tokens
    assert f"reads {context:,} tokens" in stopped
    assert f"about {instructions:,} tokens, an answer up to 4,000 (--answer-tokens)" in stopped
    for option in ("--window-tokens", "llama.cpp -c", "OLLAMA_CONTEXT_LENGTH", "--taxonomy"):
        assert option in stopped


def test_a_server_that_refuses_every_length_stops_the_run(small: Bench) -> None:
    small.write_long(6, word_count=300)
    small.server.script = says_nothing(10)
    guess = small.estimate()
    stopped = small.judge(concurrency=1).stopped
    assert small.estimate() == guess, "notes on what was too long do not make answers free"
    assert guess.tokens_out > 0
    assert stopped is not None
    # Either limit is right: which one is met first depends on the machine.
    assert "3 traces in a row failed" in stopped or "none of 8 requests" in stopped
    assert "Prompt is too long" in stopped


# Cuts in silence


@pytest.mark.parametrize("word_count", [120, 170])
def test_silently_cut_traces_are_not_judged(word_count: int, small: Bench) -> None:
    small.write_long(3, word_count=word_count)
    small.server.script = ollama(4_096)
    sizes = [estimate_run(small.setup(), [trace], None).tokens_in for trace in traces(small.runs)]
    assert 4_096 < min(sizes) <= max(sizes) < 1.1 * min(sizes)
    summary = small.judge()
    assert dict(+summary.traces) == {TraceStatus.JUDGED: 3}
    assert summary.suggestions == len(small.workspace.labels(annotator=summary.judge))
    assert dict(+small.judge().traces) == {TraceStatus.KNOWN: 3}
    assert all(answered.tokens_in < 4_096 for answered in usable_answers(small))


def test_constant_token_counts_are_tolerated(small: Bench) -> None:
    small.write_long(5, word_count=300)
    small.server.script = counts_alike(4_096)
    assert dict(+small.judge().traces) == {TraceStatus.JUDGED: 5}
    # Most of them are smaller and smaller summaries.
    assert len(small.chats) < 90
    assert dict(+small.judge().traces) == {TraceStatus.KNOWN: 5}


def test_a_judgement_on_a_cut_request_is_withdrawn(small: Bench) -> None:
    # A context of an unusual size is noticed by the second of two different requests.
    runs = small.write_long(1, word_count=170)
    other = small.write_long(1, word_count=200, name="other")
    small.server.script = ollama(4_500)
    summary = small.judge(runs, other, concurrency=1)
    [run] = small.workspace.runs()
    assert dict(+summary.traces) == {TraceStatus.JUDGED: 1, TraceStatus.FAILED: 1}
    (failed,) = summary.failed
    assert failed.problem is not None
    assert "read only 4,500 tokens" in failed.problem
    problems = {trace.trace_id: trace.problem for trace in run.traces}
    assert problems[failed.trace_id] == failed.problem
    labels = small.workspace.labels(annotator=summary.judge)
    assert summary.suggestions == len(labels)
    assert failed.trace_id not in {label.trace_id for label in labels}
    assert small.estimate(runs).to_judge == 1
    second = small.judge(runs, other, concurrency=1)
    assert dict(+second.traces) == {TraceStatus.JUDGED: 1, TraceStatus.KNOWN: 1}
