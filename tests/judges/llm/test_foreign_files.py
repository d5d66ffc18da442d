"""Responses, recorded answers and batches whose fields hold anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Final

import orjson
import pytest

from mast_tui.judges.llm.client.api_errors import (
    ApiError,
    answer_room,
    context_limit,
    error_kind_of,
    longest_answer,
    read_api_error,
)
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.client.replies import UnusableReply, read_reply
from mast_tui.judges.llm.request import (
    MOST_TOKENS,
    ContextOverflow,
    Parameters,
    Reply,
    RunStops,
    Unanswered,
)
from mast_tui.judges.llm.run.batch_files import AnswerFiles, BatchFileError, outcome_of
from mast_tui.judges.llm.run.recording import RecordingError, replaying
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.llm.run.vendor_batches import BatchClient, BatchState
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Usage
from tests.judges.llm.asking import a_request
from tests.judges.llm.server import Action, ModelServer, Seen, raw
from tests.judges.llm.test_any_answer import ODD

PLACE: Final = "«»"
"""Where an odd value is put into a text."""


def with_odd(texts: tuple[str, ...]) -> Iterator[str]:
    """Each text with each odd value in its place."""
    for text, odd in product(texts, ODD):
        yield text.replace(PLACE, odd)


RESPONSES: Final = (
    PLACE,
    '{"choices": «», "usage": {"prompt_tokens": 300}}',
    '{"choices": [«»]}',
    '{"choices": [{"message": «», "finish_reason": "stop"}]}',
    '{"choices": [{"message": {"content": «»}, "finish_reason": "stop"}]}',
    '{"choices": [{"message": {"content": [«», {"text": «»}]}}]}',
    '{"choices": [{"message": {"content": "", "tool_calls": «»}}]}',
    '{"choices": [{"message": {"content": "", "tool_calls": [{"function": «»}]}}]}',
    '{"choices": [{"message": {"content": "", "tool_calls": [{"function": {"arguments": «»}}]}}]}',
    '{"choices": [{"message": {"content": "ok", "refusal": «», "reasoning": «»}}]}',
    '{"choices": [{"message": {"content": "ok"}, "finish_reason": «»}]}',
    '{"choices": [{"message": {"content": "ok"}}], "usage": «»}',
    '{"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": «»}}',
    '{"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": 300,'
    ' "completion_tokens": «», "total_tokens": «»}}',
    '{"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": 300,'
    ' "prompt_tokens_details": «», "completion_tokens_details": «»}}',
    '{"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": 300,'
    ' "prompt_tokens_details": {"cached_tokens": «»},'
    ' "completion_tokens_details": {"reasoning_tokens": «»}, "cost": «»}}',
    '{"error": «»}',
    '{"error": {"message": «», "code": «», "type": «», "param": «»}}',
    '{"error": {"message": "try again in 5 s", "details": [{"retryDelay": «»}], "metadata": «»}}',
    "data: «»\n\ndata: [DONE]\n\n",
    'data: {"choices": [{"delta": «», "finish_reason": "stop"}]}\n\n',
    'data: {"choices": [{"delta": {"content": «»}, "finish_reason": «»}], "usage": «»}\n\n',
)


@pytest.mark.slow
def test_no_field_of_a_response_is_too_odd() -> None:
    for text in with_odd(RESPONSES):
        got = read_reply(text, form="json_schema", sent_tokens=1_000)
        assert isinstance(got, Reply | UnusableReply | ApiError)
        if not isinstance(got, ApiError):
            assert 0 <= got.tokens_in <= 2 * MOST_TOKENS
            assert 0 <= got.tokens_out <= MOST_TOKENS
        for status in () if "choices" in text else (400, 429, 503):
            error = read_api_error(status, {}, text.encode("utf-8", "surrogatepass"))
            error_kind_of(error)
            for number in (answer_room(error), context_limit(error), longest_answer(error)):
                assert number is None or 0 <= number < 10**12


REPLY = '"text": "{}", "finish": "stop", "form": "text", "tokens_in": 1, "tokens_out": 1'
RECORDED: Final = (
    PLACE,
    f'{{"request": "r", "room": «», "reply": {{{REPLY}}}}}',
    '{"request": "r", "room": 100, "reply": «»}',
    *(
        f'{{"request": "r", "room": 100, "reply": {{{REPLY}, "{name}": «»}}}}'
        for name in (
            *("text", "finish", "form", "tokens_in", "tokens_out", "tokens_cached"),
            *("tokens_thought", "counted", "kept", "more"),
        )
    ),
    '{"request": "r", "room": 100, "unanswered": «»}',
    '{"request": "r", "room": 100, "too_long": «», "longest_answer": 5}',
    '{"request": "r", "room": 100, "too_long": "it is", "longest_answer": «»}',
)


@pytest.mark.slow
async def test_a_recorded_answer_is_one_or_its_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.judges.llm.run.recording._request_key", lambda *_: "r")
    setup = Setup(load_mast(), Parameters("m"), "http://127.0.0.1:1/v1")
    path = tmp_path / "said.jsonl"
    refused = 0
    for line in with_odd(RECORDED):
        path.write_text(line, "utf-8", "surrogatepass")
        try:
            connect = replaying(path)
        except RecordingError:
            refused += 1
            continue
        async with connect(setup, Usage(), lambda _: None, lambda _: None) as client:
            try:
                reply = await client.ask(a_request(), 100)
            except (ContextOverflow, Unanswered):
                continue
            else:
                assert isinstance(reply.text.strip(), str)
                assert 0 <= reply.tokens_in + reply.tokens_out < 2 * MOST_TOKENS
    assert refused > len(RECORDED) * len(ODD) / 2


LINES: Final = (
    PLACE,
    '{"custom_id": «», "response": {"status_code": 200, "body": {}}}',
    '{"custom_id": "a", "response": «», "error": «»}',
    '{"custom_id": "a", "response": {"status_code": «», "body": {"error": {"message": "no"}}}}',
    '{"custom_id": "a", "response": {"status_code": 200, "body": «»}}',
    '{"custom_id": "a", "error": {"code": «», "message": «»}}',
)


@pytest.mark.slow
def test_a_line_of_a_batch_is_an_answer_or_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    for line in with_odd(LINES):
        path.write_text(line, "utf-8", "surrogatepass")
        with ExitStack() as files:
            try:
                answers = AnswerFiles([path], files)
            except BatchFileError:
                continue
            found = answers.find("a")
            assert answers.count_strangers(["a"]) <= len(answers)
        if found is not None:
            assert outcome_of(found, "text", 1_000) is not None


BATCHES: Final = (
    PLACE,
    '{"id": «», "status": "completed"}',
    '{"id": "b", "status": «»}',
    '{"id": "b", "status": "failed", "errors": «», "request_counts": «»}',
    '{"id": "b", "status": "failed", "errors": {"data": «»}, "output_file_id": «»}',
    '{"id": "b", "status": "failed", "errors": {"data": [{"message": «»}]},'
    ' "request_counts": {"total": «», "completed": «», "failed": «»}}',
    '{"data": «»}',
    '{"data": [«», {"id": «», "input_file_id": "f"}]}',
)


@pytest.mark.slow
async def test_a_batch_of_a_vendor_has_a_state_or_ends_in_words(tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text("{}\n")
    said = [""]

    def desk(_seen: Seen, _content: bytes) -> Action:
        return raw(said[0].encode("utf-8", "surrogatepass"))

    with ModelServer() as server:
        server.desk = desk
        async with BatchClient(Endpoint(server.base_url, "k")) as client:
            ways: tuple[Callable[[], object], ...] = (
                lambda: client.upload(requests),
                lambda: client.create("f"),
                lambda: client.state("b"),
                lambda: client.find("f"),
            )
            for number, text in enumerate(with_odd(BATCHES)):
                said[0] = text
                try:
                    got = await ways[number % len(ways)]()  # type: ignore[misc]
                except RunStops:
                    continue
                assert got is None or isinstance(got, str | BatchState)
                if isinstance(got, BatchState):
                    assert all(isinstance(file, str) for file in got.files)
                    assert 0 <= got.done + got.failed <= 2 * 10**9
                    assert got.ended in (True, False)
    assert orjson.loads(requests.read_bytes()) == {}
