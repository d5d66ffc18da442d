"""Odd values in every field of answers, responses, recordings and batch files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, product
from pathlib import Path
from typing import Final

import orjson
import pytest

from mast_tui.errors import MastError
from mast_tui.judges.llm.answer.parsing import Malformed
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
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.verification import parse_verification
from mast_tui.judges.llm.request import (
    MOST_TOKENS,
    ContextOverflow,
    Parameters,
    Reply,
    RunStops,
    Unanswered,
    Window,
)
from mast_tui.judges.llm.run.grouping import read_groups
from mast_tui.judges.llm.run.recording import replaying
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.llm.run.vendor_batches import BatchClient, BatchState
from mast_tui.redaction.engine import Redaction
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Usage
from tests.judges.llm.asking import a_request
from tests.judges.llm.scripted_model import FakeLedger, Model, judge, run_of
from tests.judges.llm.server import Action, ModelServer, Seen, raw

MAST = load_mast()
VIEW = RedactedView(run_of(6), Redaction.none())
MODES = tuple(mode.slug for mode in MAST.modes)
WINDOW = Window(0, 3, False, MODES)
PROMPT = Prompt(MAST, Parameters("m"))
DECISIVE = Prompt(MAST, Parameters("m", decisive="whole run"))
NOTES = ("it stopped", "it went on")

ODD_VALUES: Final = (
    *("null", "true", "0", "-1", "3", "0.5", "1e308", "1e999", "NaN", "-Infinity", "1e-400"),
    *("18446744073709551616", "9" * 309, "-" + "9" * 309, "9" * 5_000, "0." + "9" * 5_000),
    *('""', '"#3"', '"4-3"', '"3 to 99"', '"1.3"', '"' + "9" * 309 + '"', '"' + "٣" * 12 + '"'),
    *(
        '"' + "x" * 20_000 + '"',
        '"NaN"',
        '"90%"',
        '"\\ud83d"',
        '"\\u0000\\u202e"',
        '"present"',
        '"#"',
    ),
    *("[]", "[null]", "[3, 4]", "[1e999, 2]", '["3", {}]', "[" + "9" * 309 + "]"),
    *("[" * 2_000 + "]" * 2_000, "[" + "0," * 2_000 + "0]", '{"a": ' * 2_000 + "1" + "}" * 2_000),
    *("{}", '{"": null}', '{"a": {"b": []}}', '{"verdict": "present"}'),
    *("0x" + "f" * 2_000, "1j", "'it'", "{1}", "(1,)", "None", "undefined", "00"),
)
"""Values of all kinds, and texts that only look like JSON."""


def json_object(fields: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"


FORMS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "modes": ("«»", {"modes": '{"1.3": {"verdict": "absent"}}', "digest": '"so far"'}),
    "modes by code": ('{"modes": «»}', {"1.3": '{"verdict": "absent"}', "1.1": '"absent"'}),
    "mode": (
        '{"modes": {"1.3": «»}, "digest": ""}',
        {"notes": '""', "findings": "[]", "verdict": '"absent"'},
    ),
    "finding": (
        '{"modes": {"1.3": {"findings": [«»], "verdict": "present"}}}',
        {
            "rationale": '"it shows in #2"',
            "quote": '"step 2 of the work"',
            "first": "null",
            "last": "null",
            "spans": "null",
            "confidence": "0.5",
            "decisive": "true",
        },
    ),
    "list of modes": (
        '{"modes": [«»]}',
        {"mode": '"1.3"', "verdict": '"absent"', "findings": "[]"},
    ),
    "decisive": ("«»", {"notes": '""', "decisive": "[]", "digest": '""'}),
    "decisive step": (
        '{"notes": "", "decisive": [«»], "digest": ""}',
        {
            "rationale": '"why"',
            "quote": '"step 2"',
            "first": "2",
            "agent": '""',
            "correction": '"Ask."',
            "then": '"It went well."',
            "mode": '"1.3"',
            "fits": "true",
            "confidence": "0.5",
        },
    ),
    "second look": (
        "«»",
        {
            "shows": '"it"',
            "definition": '"met"',
            "boundary": "null",
            "verdict": '"holds"',
            "confidence": "0.5",
        },
    ),
    "groups": ("«»", {"groups": '[{"name": "Stops", "notes": [1]}]'}),
    "group": (
        '{"groups": [«», {"name": "Goes on", "notes": [2]}]}',
        {"name": '"Stops"', "notes": "[1, 2]"},
    ),
}
"""A whole answer of each kind around an object, and the fields of the object."""


def written(kind: str, **changes: str) -> str:
    """Return an answer of a kind with other values in some fields."""
    frame, fields = FORMS[kind]
    return frame.replace("«»", json_object(fields | changes))


def read_modes(text: str) -> object:
    return PROMPT.read(text, view=VIEW, window=WINDOW)


def read_decisive(text: str) -> object:
    return DECISIVE.read(text, view=VIEW, window=WINDOW)


def read_groups_of_notes(text: str) -> object:
    return read_groups(text, NOTES)


READERS: Final[dict[str, Callable[[str], object]]] = {
    **dict.fromkeys(("decisive", "decisive step"), read_decisive),
    **dict.fromkeys(("groups", "group"), read_groups_of_notes),
    "second look": lambda text: parse_verification(text, VIEW),
}

FRAMES: Final[dict[str, Callable[[str], str]]] = {
    "bare": lambda text: text,
    "in a fence": lambda text: f"<think>{{</think> Here:\n```json\n{text}\n```",
    "with a fault": lambda text: f"{text[:-1]},}}",
    "as Python writes it": lambda text: text.replace('"', "'").replace(" null", " None"),
}


def test_an_odd_value_in_any_field_is_read_or_malformed() -> None:
    tried = malformed = 0
    frames = cycle(FRAMES.values())
    for kind, (_, fields) in FORMS.items():
        reader = READERS.get(kind, read_modes)
        for frame in FRAMES.values():
            reader(frame(written(kind)))
        for name, odd in product(fields, ODD_VALUES):
            tried += 1
            try:
                reader(next(frames)(written(kind, **{name: odd})))
            except Malformed:
                malformed += 1
        next(frames)  # so that a value is written in another way in the next answer
    assert tried >= 1_500
    assert 0 < malformed < tried / 2


async def test_an_answer_is_recorded_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    text = written("finding", first="9" * 4_000)
    model = Model(lambda request, _: Reply(text, "stop", "text", request.tokens, 50))
    result = await judge(run_of(6), model)
    assert any("names a span" in remark for remark in result.remarks)
    ledger = FakeLedger()
    monkeypatch.setattr(Prompt, "read", broken)
    with pytest.raises(ZeroDivisionError):
        await judge(run_of(6), Model(lambda r, _: Reply("{}", "stop", "text", r.tokens, 9)), ledger)
    assert [reply.text for reply, _ in ledger.all] == ["{}"]


# Responses, recorded answers and batches

PLACE: Final = "«»"
"""The place of an odd value in a text."""


def with_odd(texts: tuple[str, ...]) -> Iterator[str]:
    for text, odd in product(texts, ODD_VALUES):
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
def test_an_odd_value_in_a_response_is_read_or_an_error() -> None:
    for text in with_odd(RESPONSES):
        result = read_reply(text, form="json_schema", sent_tokens=1_000)
        assert isinstance(result, Reply | UnusableReply | ApiError)
        if not isinstance(result, ApiError):
            assert 0 <= result.tokens_in <= 2 * MOST_TOKENS
            assert 0 <= result.tokens_out <= MOST_TOKENS
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
async def test_an_odd_value_in_a_recording_is_read_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mast_tui.judges.llm.run.recording._request_key", lambda *_: "r")
    setup = Setup(MAST, Parameters("m"), "http://127.0.0.1:1/v1")
    path = tmp_path / "said.jsonl"
    refused = 0
    for line in with_odd(RECORDED):
        path.write_text(line, "utf-8", "surrogatepass")
        try:
            connect = replaying(path)
        except MastError:
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
    assert refused > len(RECORDED) * len(ODD_VALUES) / 2


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
async def test_an_odd_value_in_a_batch_status_is_read_or_an_error(tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text("{}\n")
    response = [""]

    def desk(_seen: Seen, _content: bytes) -> Action:
        return raw(response[0].encode("utf-8", "surrogatepass"))

    with ModelServer() as server:
        server.desk = desk
        async with BatchClient(Endpoint(server.base_url, "k")) as client:
            requests_by_kind: tuple[Callable[[], object], ...] = (
                lambda: client.upload(requests),
                lambda: client.create("f"),
                lambda: client.state("b"),
                lambda: client.find("f"),
            )
            for number, text in enumerate(with_odd(BATCHES)):
                response[0] = text
                try:
                    result = await requests_by_kind[number % len(requests_by_kind)]()  # type: ignore[misc]
                except RunStops:
                    continue
                assert result is None or isinstance(result, str | BatchState)
                if isinstance(result, BatchState):
                    assert all(isinstance(file, str) for file in result.files)
                    assert 0 <= result.done + result.failed <= 2 * 10**9
                    assert result.ended in (True, False)
    assert orjson.loads(requests.read_bytes()) == {}
