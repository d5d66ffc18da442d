"""Whole-document JSON of any size in four formats, the same bytes for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Final

import orjson

STEPS_AT_ONCE: Final = 400
"""How many steps are made before they are repeated with other numbers in them."""

_NUMBER: Final = b"@STEPNR@"
_PROSE: Final = (
    "the test cache retry pod queue limit owner span build path fails after change because module "
    "returns empty value check parser config handler writes index before reading next offset"
)
_TERMS: Final = tuple(_PROSE.split())


@dataclass(frozen=True, slots=True)
class Layout:
    """A format of documents: the bytes before and after the steps, and their builder."""

    head: bytes
    foot: bytes
    step: Callable[[Random, int], bytes]


def write_document(path: Path, size: int, layout: str, *, seed: int) -> int:
    """Write about ``size`` bytes of one of ``LAYOUTS``; return how many steps there are."""
    rng = Random(seed)
    made = LAYOUTS[layout]
    block = b",\n".join(made.step(rng, number) for number in range(STEPS_AT_ONCE))
    count = max(1, round(size / (len(block) + 2)))
    with path.open("wb") as file:
        file.write(made.head)
        for number, data in enumerate(_numbered(block, count)):
            file.write((b",\n" if number else b"") + data)
        file.write(made.foot)
    return count * STEPS_AT_ONCE


def _numbered(block: bytes, count: int) -> Iterator[bytes]:
    for number in range(count):
        yield block.replace(_NUMBER, b"%08d" % number)


def _sentence(rng: Random, count: int) -> str:
    return " ".join(rng.choices(_TERMS, k=count))


def _listing(rng: Random) -> str:
    lines = round(4 * 60 ** rng.random() ** 2)
    return "\n".join(
        f"src/{rng.choice(_TERMS)}.py:{line}: {_sentence(rng, 8)}" for line in range(lines)
    )


def _atif(rng: Random, number: int) -> bytes:
    call = f"call_{_NUMBER.decode()}{number:04d}"
    command = f"rg -n '{rng.choice(_TERMS)}' src/{_NUMBER.decode()}.{number}.py"
    return _json(
        {
            "step_id": number + 1,
            "source": "agent",
            "message": f"Step {_NUMBER.decode()}.{number}: {_sentence(rng, 20)}",
            "reasoning_content": _sentence(rng, 40),
            "tool_calls": [
                {"tool_call_id": call, "function_name": "bash", "arguments": {"command": command}}
            ],
            "observation": {"results": [{"source_call_id": call, "content": _listing(rng)}]},
        }
    )


def _swe_agent(rng: Random, number: int) -> bytes:
    return _json(
        {
            "action": f"rg -n '{rng.choice(_TERMS)}' src/{_NUMBER.decode()}.{number}.py",
            "observation": _listing(rng),
            "response": _sentence(rng, 30),
            "thought": f"Step {_NUMBER.decode()}.{number}: {_sentence(rng, 20)}",
            "state": "{}",
            "execution_time": 0.5,
        }
    )


def _mini_swe_agent(rng: Random, number: int) -> bytes:
    command = f"rg -n '{rng.choice(_TERMS)}' src/{_NUMBER.decode()}.{number}.py"
    thought = f"THOUGHT: {_NUMBER.decode()}.{number} {_sentence(rng, 30)}"
    asked = {"role": "assistant", "content": f"{thought}\n\n```bash\n{command}\n```"}
    output = f"<returncode>0</returncode>\n<output>\n{_listing(rng)}\n</output>"
    return _json(asked) + b",\n" + _json({"role": "user", "content": output})


def _otlp(rng: Random, number: int) -> bytes:
    begin = 1_760_000_000_000_000_000 + number * 1_000_000
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.id": f"call_{_NUMBER.decode()}{number:04d}",
        "gen_ai.tool.call.arguments": f'{{"command": "ls {_NUMBER.decode()}.{number}"}}',
        "gen_ai.tool.call.result": _listing(rng),
    }
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    return _json(
        {
            "traceId": "5b8efff798038103d269b633813fc60c",
            "spanId": f"{_NUMBER.decode()}{number + 1:08d}",
            "name": "execute_tool bash",
            "kind": 1,
            "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(begin + 500_000),
            "attributes": pairs,
        }
    )


def _json(value: Mapping[str, object]) -> bytes:
    return orjson.dumps(value)


LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {
        "atif": Layout(
            b'{"schema_version":"ATIF-v1.4","session_id":"session-of-one-long-run",'
            b'"agent":{"name":"terminus","version":"2.0","model_name":"gpt-5"},"steps":[\n',
            b"\n]}\n",
            _atif,
        ),
        "swe-agent": Layout(
            b'{"environment":"main","trajectory":[\n',
            b'\n],"history":[{"role":"system","content":"You fix bugs.","agent":"main"}],'
            b'"info":{"exit_status":"submitted","submission":"diff"}}\n',
            _swe_agent,
        ),
        "mini-swe-agent": Layout(
            b'{"info":{"mini_version":"1.9.0","exit_status":"Submitted"},'
            b'"trajectory_format":"mini-swe-agent-1","messages":['
            b'{"role":"system","content":"You fix bugs."},\n',
            b"\n]}\n",
            _mini_swe_agent,
        ),
        "otlp": Layout(
            b'{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":'
            b'{"stringValue":"agent"}}]},"scopeSpans":[{"scope":{"name":"agent"},"spans":[\n',
            b"\n]}]}]}\n",
            _otlp,
        ),
    }
)
"""What can be written, by name."""
