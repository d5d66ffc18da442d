"""Pictures in the source of any format, with type and size."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64encode
from pathlib import Path

import pytest

from mast_tui.traces.alignment import Likeness, align
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.traces.pictures import Picture, PictureFinder, count_picture_notes


def png(width: int, height: int, red: int) -> bytes:
    """Return a PNG of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = (b"\0" + bytes((red, 30, 30)) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


RED = b64encode(png(64, 48, 200)).decode()
DARK = b64encode(png(32, 16, 20)).decode()
A_RED = "PNG, 64 × 48"
A_DARK = "PNG, 32 × 16"


def anthropic_image(data: str) -> dict[str, object]:
    """Return a part of a message as Anthropic writes it."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def claude_code(*contents: list[object]) -> list[object]:
    """Return the lines of a session with these messages of the user."""
    return [
        {
            "type": "user",
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": "s",
            "timestamp": f"2026-01-01T00:00:0{number}Z",
            "cwd": "/x",
            "version": "2.0",
            "message": {"role": "user", "content": content},
        }
        for number, content in enumerate(contents)
    ]


def codex(*payloads: dict[str, object]) -> list[object]:
    """Return the lines of a rollout with these items."""
    meta = {"id": "abc", "cwd": "/x", "originator": "codex", "cli_version": "1"}
    records = [("session_meta", meta), *(("response_item", payload) for payload in payloads)]
    return [
        {"timestamp": f"2026-01-01T00:00:0{number}Z", "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(records)
    ]


TOOL_USE = {"type": "tool_use", "id": "t", "name": "computer", "input": {"action": "screenshot"}}
DONE_ACTIONS = [{"done": {"text": "ok"}}]
SOURCES: dict[str, tuple[object, list[str]]] = {
    "OpenAI": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Look"},
                        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{RED}"}},
                        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                    ],
                },
                {"role": "assistant", "content": "I see red."},
            ]
        },
        [f"{A_RED} | https://example.com/a.png (a URL, which is not fetched)", ""],
    ),
    "Anthropic": (
        {
            "messages": [
                {"role": "user", "content": "click"},
                {"role": "assistant", "content": [{"type": "text", "text": "Ok"}, TOOL_USE]},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t",
                            "content": [anthropic_image(RED)],
                        },
                        anthropic_image(DARK),
                    ],
                },
            ]
        },
        ["", "", "", A_RED, A_DARK],
    ),
    "Gemini": (
        {
            "contents": [
                {
                    "parts": [{"inline_data": {"mime_type": "image/png", "data": RED}}],
                    "role": "user",
                },
                {"parts": [{"text": "red"}], "role": "model"},
            ]
        },
        [A_RED, ""],
    ),
    "Bedrock": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"text": "what"},
                        {"image": {"format": "png", "source": {"bytes": RED}}},
                    ],
                },
                {"role": "assistant", "content": [{"text": "red"}]},
            ]
        },
        [A_RED, ""],
    ),
    "Claude Code": (
        claude_code(
            [{"type": "text", "text": "see"}, anthropic_image(RED), anthropic_image(DARK)],
            [{"type": "tool_result", "tool_use_id": "t", "content": [anthropic_image(DARK)]}],
        ),
        ["", A_RED, A_DARK, A_DARK],
    ),
    "Codex": (
        codex(
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{RED}"},
                ],
            },
            {"type": "function_call", "name": "view", "call_id": "c", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_image", "image_url": f"data:image/png;base64,{DARK}"}],
            },
        ),
        [A_RED, "", A_DARK],
    ),
    "smolagents": (
        {
            "steps": [
                {
                    "step_number": 1,
                    "timing": {},
                    "model_output": "hi",
                    "tool_calls": [
                        {"id": "c", "function": {"name": "python_interpreter", "arguments": "x"}}
                    ],
                    "observations": "ok",
                    "observations_images": [RED],
                }
            ]
        },
        ["", "", A_RED],
    ),
    "browser-use": (
        {
            "history": [
                {
                    "model_output": {"action": DONE_ACTIONS},
                    "result": [{"extracted_content": "ok"}],
                    "state": {"title": "Shop", "url": "http://x", "screenshot": RED},
                },
                {
                    "model_output": {"action": DONE_ACTIONS},
                    "result": [{"extracted_content": "ok"}],
                    "state": {"screenshot_path": "shots/1.png"},
                },
                {
                    "model_output": {"action": DONE_ACTIONS},
                    "result": [{"extracted_content": "ok"}],
                    "state": {"screenshot_path": "../outside.png"},
                },
            ]
        },
        [
            *(A_RED, "", "", A_DARK, "", ""),
            *("../outside.png (a file outside the trace's folder, which is not read)", "", ""),
        ],
    ),
}


def trace_of(folder: Path, content: object) -> Trace:
    """Return the trace of a JSON document, or of a list as lines, beside a picture."""
    run_folder = folder / "run"
    (run_folder / "shots").mkdir(parents=True)
    (run_folder / "shots" / "1.png").write_bytes(png(32, 16, 20))
    (folder / "outside.png").write_bytes(png(32, 16, 20))
    if isinstance(content, list):
        path = run_folder / "run.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in content))
    else:
        path = run_folder / "run.json"
        path.write_text(json.dumps(content))
    trace = read_file(path, named=True).traces[0]
    read_fully(trace)
    return trace


def type_and_size(picture: Picture) -> str:
    """Return the type and size of a picture."""
    return ", ".join(picture.description.split(", ")[:2])


@pytest.mark.parametrize("name", SOURCES)
def test_each_span_has_its_pictures(name: str, tmp_path: Path) -> None:
    content, expected = SOURCES[name]
    trace = trace_of(tmp_path, content)
    finder = PictureFinder(trace)
    actual = [" | ".join(map(type_and_size, finder.of_span(index))) for index in range(len(trace))]
    assert actual == expected


def test_traces_on_lines_of_one_file_have_their_own_pictures(tmp_path: Path) -> None:
    lines = [
        {"messages": [{"role": "user", "content": [anthropic_image(data)]}]} for data in (RED, DARK)
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    traces = read_file(path, named=True).traces
    pictures = [[*map(type_and_size, PictureFinder(trace).of_span(0))] for trace in traces]
    assert pictures == [[A_RED], [A_DARK]]
    assert [pair.likeness for pair in align(*traces).pairs] == [Likeness.CHANGED]


@pytest.mark.parametrize(
    ("data", "description"),
    [
        (b"GIF89a" + struct.pack("<HH", 7, 9) + bytes(40), "GIF, 7 × 9, 50 bytes"),
        (
            b"\xff\xd8\xff\xe0\0\4\0\0\xff\xc0\0\x11\x08"
            + struct.pack(">HH", 480, 640)
            + bytes(40),
            "JPEG, 640 × 480, 57 bytes",
        ),
        (
            b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0"
            + (639).to_bytes(3, "little")
            + (479).to_bytes(3, "little")
            + bytes(2000),
            "WebP, 640 × 480, 2 KB",
        ),
        (b"\xff\xd8\xff\xe0", "JPEG, 4 bytes"),
    ],
)
def test_the_size_comes_from_the_head_of_the_picture(data: bytes, description: str) -> None:
    assert Picture("", data).description == description


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("[image] and [image_url], [computer_screenshot]", 3),
        ("[file image/png] [file shot.PNG] [file report.pdf]", 2),
        ("no [images of war] here, an image", 1),
        ("[1] [imag]", 0),
    ],
)
def test_notes_of_pictures_are_counted(text: str, notes: int) -> None:
    assert count_picture_notes(text) == notes


def test_a_damaged_picture_is_marked_and_other_texts_are_not(tmp_path: Path) -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{RED[:-9]}"}},
        {"type": "text", "text": "/9j/ is how a JPEG begins, in the letters of Base64"},
        {"type": "image", "source": {"type": "base64", "data": RED[:-9]}},
    ]
    trace = trace_of(tmp_path, {"messages": [{"role": "user", "content": parts}]})
    pictures = PictureFinder(trace).of_span(0)
    assert [picture.description for picture in pictures] == 2 * ["a picture (damaged)"]
