"""Codex rollouts of any size, the same bytes for the same seed.

A block of records is made once; the file is that block again and again, each time with other
numbers in its ids and texts and another hour in its times. So a gigabyte takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

import orjson

RARE_WORD: Final = "quagmireish"
"""Stands in three messages of a long rollout and nowhere else."""

FIRST_WORDS: Final = "You are a coding agent at"
"""How the first span of every long rollout begins."""

BLOCK_BYTES: Final = 8 << 20
SHORT_BLOCK_SPANS: Final = 1000
EVERY_LONG_ROW: Final = 20
"""In a rollout of short lines, every so manieth span has some lines of text, others one."""

_NUMBER: Final = b"@BLOCKNR"
_HOUR: Final = b"@DATE-AND-HR@"
_BEGIN: Final = datetime(2026, 1, 1)
_PROSE: Final = (
    "the test cache retry pod queue limit owner span build path fails after change because module "
    "returns empty value check parser config handler writes index before reading next offset and "
    "then restart service node memory trace image latency file import error while loading table"
)
_TERMS: Final = tuple(_PROSE.split())
_FOLDERS: Final = ("src", "tests", "docs", "config", "scripts")


@dataclass(frozen=True, slots=True)
class RolloutFacts:
    """The content of a rollout: spans, lines, and the indices of spans with the rare word."""

    spans: int
    lines: int
    rare: tuple[int, ...] = ()


@dataclass(slots=True)
class _Block:
    """Lines with places for the block's number and its hour, and how many spans they make."""

    lines: list[bytes]
    spans: int = 0
    size: int = 0

    def add(self, kind: str, payload: Mapping[str, object], spans: int, every_ms: int) -> None:
        """Append a record, written ``every_ms`` after the one before it."""
        ms = len(self.lines) * every_ms % 3_600_000
        stamp = f"{_HOUR.decode()}:{ms // 60_000:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}Z"
        line = orjson.dumps({"timestamp": stamp, "type": kind, "payload": payload}) + b"\n"
        self.lines.append(line)
        self.spans += spans
        self.size += len(line)

    def numbered(self) -> Iterator[bytes]:
        """Return the block as bytes, with the numbers 0, 1, 2 …"""
        whole = b"".join(self.lines)
        number = 0
        while True:
            hour = (_BEGIN + timedelta(hours=number)).isoformat()[:13].encode()
            yield whole.replace(_NUMBER, b"%08d" % number).replace(_HOUR, hour)
            number += 1


def write_long(path: Path, size: int, *, seed: int, block_bytes: int = BLOCK_BYTES) -> RolloutFacts:
    """Write about ``size`` bytes of the usual mix of records, with outputs of 200 B to 50 kB."""
    rng = Random(seed)
    block = _long_block(rng, block_bytes)
    count = max(1, round(size / block.size))
    head = _session_meta(rng, instructions=f"{FIRST_WORDS} a terminal. " + _sentence(rng, 300))
    spans = 1
    lines = 1
    rare: list[int] = []
    places = sorted((0, count // 2, count - 1))
    with path.open("wb") as file:
        file.write(head)
        for number, data in zip(range(count), block.numbered(), strict=False):
            file.write(data)
            spans += block.spans
            lines += len(block.lines)
            for _ in range(places.count(number)):
                rare.append(spans)
                text = f"Here is the {RARE_WORD} part, number {len(rare)}."
                file.write(_with_hour(number, _record("response_item", _message(text))))
                spans += 1
                lines += 1
    return RolloutFacts(spans, lines, tuple(rare))


def write_short(path: Path, spans: int, *, seed: int) -> RolloutFacts:
    """Write ``spans`` spans on short lines; all but every twentieth have one line of text."""
    rng = Random(seed)
    block = _short_block(rng, min(spans, SHORT_BLOCK_SPANS))
    if spans % block.spans:
        raise ValueError(f"{spans} is no multiple of {block.spans}")
    count = spans // block.spans
    with path.open("wb") as file:
        file.write(_session_meta(rng))
        for _, data in zip(range(count), block.numbered(), strict=False):
            file.write(data)
    return RolloutFacts(spans, 1 + count * len(block.lines))


def is_one_line(index: int) -> bool:
    """Return whether the span at ``index`` of a rollout of short lines has one line of text."""
    return index % EVERY_LONG_ROW != EVERY_LONG_ROW - 1


def small_traces(count: int, *, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of small rollouts of a few spans each."""
    rng = Random(seed)
    block = _Block([])
    _turn(rng, block, steps=4, longest=2000)
    for number, data in zip(range(count), block.numbered(), strict=False):
        yield f"rollout-{number:05d}.jsonl", _session_meta(rng) + data


def _long_block(rng: Random, size: int) -> _Block:
    # Viewers that style whole lines, whatever their length, are to be measured by their reading:
    # on their first screens, at the beginning or at the end, there are no long lines.
    block = _Block([])
    _turn(rng, block, steps=12, longest=300)
    while block.size < size:
        _turn(rng, block, steps=rng.randrange(20, 60), longest=50_000)
    _turn(rng, block, steps=12, longest=300)
    return block


def _turn(rng: Random, block: _Block, *, steps: int, longest: int) -> None:
    """Return a task and the steps of an agent."""
    every_ms = 450
    number = _NUMBER.decode()
    begin = len(block.lines)
    task = f"Task {number}.{begin}: {_sentence(rng, 60)}"
    content = [{"type": "input_text", "text": task}]
    item = {"type": "message", "role": "user", "content": content}
    block.add("response_item", item, 1, every_ms)
    block.add("event_msg", {"type": "user_message", "message": task, "kind": "plain"}, 0, every_ms)
    context = {"cwd": "/srv/app", "approval_policy": "never", "model": "gpt-5-codex"}
    block.add("turn_context", {**context, "effort": "high", "summary": "auto"}, 0, every_ms)
    for step in range(steps):
        line = len(block.lines)
        thought = f"**{_sentence(rng, 4)} {number}.{line}**\n\n{_sentence(rng, 40)}"
        block.add("event_msg", {"type": "agent_reasoning", "text": thought}, 0, every_ms)
        summary = [{"type": "summary_text", "text": thought}]
        secret = "".join(rng.choices("ABCDEFGHIJKLMNOPabcdefghijklmnop0123456789", k=400))
        item = {"type": "reasoning", "summary": summary, "encrypted_content": secret}
        block.add("response_item", item, 1, every_ms)
        if step % 5 == 4:
            text = f"Step {number}.{line}: {_sentence(rng, 30)}"
            block.add("event_msg", {"type": "agent_message", "message": text}, 0, every_ms)
            block.add("response_item", _message(text), 1, every_ms)
        call = f"call_{number}{line:06d}"
        command = f"rg -n '{rng.choice(_TERMS)}' {rng.choice(_FOLDERS)}/{rng.choice(_TERMS)}.py"
        block.add("response_item", _call(call, command), 1, every_ms)
        chars = round(200 * (longest / 200) ** rng.random() ** 3)
        block.add("response_item", _output(call, _listing(rng, chars)), 1, every_ms)
        block.add("event_msg", _token_count(line), 0, every_ms)


def _short_block(rng: Random, spans: int) -> _Block:
    block = _Block([])
    number = _NUMBER.decode()
    call = ""
    for index in range(spans):
        span_name = f"{number}.{index:04d}"
        if index % 5 == 0:
            payload: Mapping[str, object] = _message(f"Step {span_name}: {_sentence(rng, 4)}")
        elif index % 5 in (1, 3):
            call = f"call_{number}{index:04d}"
            payload = _call(call, f"ls {rng.choice(_FOLDERS)}/{span_name}")
        elif is_one_line(index):
            payload = _output(call, f"{rng.choice(_TERMS)}.py {span_name}")
        else:
            names = rng.choices(_TERMS, k=5)
            payload = _output(call, "\n".join(f"{name}.py {span_name}" for name in names))
        block.add("response_item", payload, 1, 3000)
    return block


def _session_meta(rng: Random, *, instructions: str | None = None) -> bytes:
    session_id = str(UUID(int=rng.getrandbits(128), version=4))
    meta = {"id": session_id, "timestamp": f"{_HOUR.decode()}:00:00.000Z", "cwd": "/srv/app"}
    meta |= {"originator": "codex_cli_rs", "cli_version": "0.98.0"}
    payload: dict[str, object] = {**meta, "instructions": instructions}
    return _with_hour(0, _record("session_meta", payload))


def _record(kind: str, payload: Mapping[str, object]) -> bytes:
    block = _Block([])
    block.add(kind, payload, 0, 0)
    return block.lines[0]


def _with_hour(number: int, line: bytes) -> bytes:
    """Return the line with its hour; it holds no block number."""
    return line.replace(_HOUR, (_BEGIN + timedelta(hours=number)).isoformat()[:13].encode())


def _message(text: str) -> Mapping[str, object]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


def _call(call_id: str, command: str) -> Mapping[str, object]:
    arguments = orjson.dumps({"command": ["bash", "-lc", command]}).decode()
    return {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call_id}


def _output(call_id: str, text: str) -> Mapping[str, object]:
    wrapped = {"output": text, "metadata": {"exit_code": 0, "duration_seconds": 0.1}}
    output = orjson.dumps(wrapped).decode()
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _token_count(number: int) -> Mapping[str, object]:
    last = {"input_tokens": 20_000 + number, "cached_input_tokens": 18_000, "output_tokens": 300}
    last |= {"reasoning_output_tokens": 100, "total_tokens": 20_300 + number}
    total = {name: value + 1_000_000 + number for name, value in last.items()}
    info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 272_000}
    limits = {"primary": {"used_percent": 12.0, "window_minutes": 299, "resets_in_seconds": 6000}}
    return {"type": "token_count", "info": info, "rate_limits": limits}


def _sentence(rng: Random, count: int) -> str:
    return " ".join(rng.choices(_TERMS, k=count)).capitalize()


def _listing(rng: Random, chars: int) -> str:
    """Return lines like those of a search or a build."""
    lines: list[str] = []
    size = 0
    while size < chars:
        words: Sequence[str] = rng.choices(_TERMS, k=9)
        lines.append(f"{words[0]}/{words[1]}.py:{rng.randrange(2000)}: {' '.join(words[2:])}")
        size += len(lines[-1]) + 1
    return "\n".join(lines)[:chars]
