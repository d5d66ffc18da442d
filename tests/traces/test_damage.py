"""Damaged files: nothing crashes, and intact records are read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.readers.converted import line_of
from tests.traces.checks import CORPUS, SAMPLES, check_sound, keys_of, texts_of, write_json_lines
from tests.traces.damage import missing_keys, mutate, read_damaged, read_intact
from tests.traces.golden.damage import damaged_formats, sample_of
from tests.traces.inspect_logs import HEADER
from tests.traces.rollouts import call, message, meta, output, write

pytestmark = pytest.mark.slow

MUTATIONS = 5
GOLDEN_MUTATIONS = 20
BIG_BYTES = 200_000
"""Files above this size are damaged once: they take long, and smaller files have their formats."""

MESSAGES = [
    {"role": "user" if number % 2 else "assistant", "content": f"message {number}, " + "so " * 30}
    for number in range(40)
]


def sampled_files(folder: Path) -> list[Path]:
    """Return the files below a folder, but only every third of those in big folders."""
    paths = []
    for subfolder in sorted({path.parent for path in folder.rglob("*") if path.is_file()}):
        files = [path for path in sorted(subfolder.iterdir()) if path.is_file()]
        paths += files[::3] if len(files) > 10 else files
    return paths


@pytest.mark.parametrize("path", [*sampled_files(SAMPLES), *sampled_files(CORPUS)], ids=str)
def test_damaged_files_are_read_soundly(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    intact = read_intact(path)
    for number in range(1 if len(data) > BIG_BYTES else MUTATIONS):
        mutation = mutate(data, random.Random(f"{path.name} {number}"))
        target = tmp_path / path.name
        target.write_bytes(mutation.data)
        report = read_damaged(target)
        if (comparison := missing_keys(intact, data, mutation, report)) is not None:
            _expected_count, missing = comparison
            assert not missing, (number, mutation.kind)


@pytest.mark.parametrize("name", damaged_formats())
def test_damaged_golden_inputs_are_read_soundly_and_alike_each_time(
    name: str, tmp_path: Path
) -> None:
    sample = sample_of(name)
    assert sample is not None
    (data,) = sample.files.values()
    path = tmp_path / Path(sample.opened).name
    for number in range(GOLDEN_MUTATIONS):
        mutation = mutate(data, random.Random(f"{name} {number}"))
        path.write_bytes(mutation.data)
        first, second = ([keys_of(trace) for trace in read_damaged(path).traces] for _ in range(2))
        assert first == second, (number, mutation.kind)


def read_texts(trace: Trace) -> list[str]:
    read_fully(trace)
    check_sound(trace)
    return texts_of(trace)


def write_and_read(path: Path, content: bytes | str) -> FileReport:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_file(path, named=True)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_damaged_message_loses_no_other_message(
    tmp_path: Path, indent: int | None, wrapped: bool
) -> None:
    document = {"question": "why", "history": MESSAGES} if wrapped else MESSAGES
    text = json.dumps(document, indent=indent)
    for broken in ("message 20, \x00", 'message 20", ', "message 20, \\x"):
        report = write_and_read(tmp_path / "chat.json", text.replace("message 20, ", broken))
        (trace,) = report.traces
        actual = read_texts(trace)
        for number in (0, 19, 21, 39):
            assert MESSAGES[number]["content"] in actual
        (problem,) = report.problems
        line = text[: text.index("message 20")].count("\n") + 1
        assert problem.place == f"line {line}"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_chat_cut_off_anywhere_is_read_up_to_the_cut(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(MESSAGES, indent=indent)
    for part in range(1, 20):
        report = write_and_read(tmp_path / "chat.json", text[: len(text) * part // 20])
        (trace,) = report.traces
        actual = read_texts(trace)
        complete = 40 * part // 20 - 1
        assert actual[:complete] == [message["content"] for message in MESSAGES[:complete]]
        assert any("cut off" in problem.message for problem in report.problems)


def test_a_rollout_cut_off_anywhere_is_read_up_to_the_cut(tmp_path: Path) -> None:
    steps = [message("user", f"step {number}") for number in range(38)]
    path = write(tmp_path, meta(), call("a"), output("a"), *steps)
    data = path.read_bytes()
    (whole,) = read_file(path, named=True).traces
    expected = read_texts(whole)
    for part in range(1, 20):
        report = write_and_read(tmp_path / "cut.jsonl", data[: len(data) * part // 20])
        (trace,) = report.traces
        actual = read_texts(trace)
        assert actual == expected[: len(actual)]
        assert len(actual) >= 2 * part - 3


@pytest.mark.parametrize("broken", [b'{"role": "us', b"\0\0\0\0", b"}", b"\xff\xfe {"])
def test_a_broken_first_line_loses_no_other_line(tmp_path: Path, broken: bytes) -> None:
    lines = [json.dumps(message).encode() for message in MESSAGES]
    report = write_and_read(
        tmp_path / "chat.jsonl", b"\n".join([b'{"role": ' + broken, *lines[1:], b""])
    )
    (trace,) = report.traces
    assert read_texts(trace) == [message["content"] for message in MESSAGES[1:]]
    assert report.problems[0].place == "line 1"


def test_the_messages_of_a_broken_line_are_read(tmp_path: Path) -> None:
    runs = [{"messages": MESSAGES[:10]}, {"messages": MESSAGES[10:20]}, {"messages": MESSAGES[20:]}]
    path = write_json_lines(tmp_path / "runs.jsonl", *runs)
    report = write_and_read(path, path.read_text().replace("message 15, ", 'message 15" '))
    actual = [read_texts(trace) for trace in report.traces]
    assert [len(texts) for texts in actual] == [10, 10, 20]
    assert actual[1][:5] == [message["content"] for message in MESSAGES[10:15]]
    assert actual[1][6:] == [message["content"] for message in MESSAGES[16:20]]
    assert any(problem.place == "line 2" for problem in report.problems)


def test_a_converted_trace_behind_a_broken_line_is_recognised(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "chat.json", MESSAGES)
    (trace,) = read_file(path, named=True).traces
    line = line_of(trace).strip()
    report = write_and_read(tmp_path / "runs.jsonl", b"broken" + line + b"\n" + line + b"\n")
    (converted,) = report.traces
    assert report.format == "mast-tui"
    assert read_texts(converted) == read_texts(trace)
    assert report.problems[0].place == "line 1"


def test_a_damaged_framework_document_keeps_its_turns(tmp_path: Path) -> None:
    """The document has the layout of AG2's exporter."""
    turns = [
        {"content": [f"turn {n}", "x" * 20], "role": "user" if n % 2 else "assistant", "name": name}
        for n, name in enumerate(["mathproxyagent", "assistant"] * 6)
    ]
    text = json.dumps({"instance_id": "i", "problem_statement": ["p"], "trajectory": turns})
    whole = write_and_read(tmp_path / "whole.json", text)
    report = write_and_read(tmp_path / "broken.json", text.replace("turn 4", "turn 4, \x00 and"))
    assert report.format == whole.format
    (trace,) = report.traces
    assert len(read_texts(trace)) == len(read_texts(whole.traces[0]))


def test_a_damaged_inspect_log_keeps_its_samples(tmp_path: Path) -> None:
    samples = [
        {"id": number, "epoch": 1, "input": "go", "messages": MESSAGES[:4]} for number in range(6)
    ]
    text = json.dumps({**HEADER, "samples": samples}, indent=2)
    offset = text.index('"id": 3')
    broken = text[:offset] + text[offset:].replace("message 1, ", 'message 1", "', 1)
    report = write_and_read(tmp_path / "log.json", broken)
    assert report.format == write_and_read(tmp_path / "whole.json", text).format
    assert len(report.traces) == 6
    assert any(problem.place.startswith("line ") for problem in report.problems)


def test_a_broken_document_with_a_name_of_text_is_text(tmp_path: Path) -> None:
    report = write_and_read(
        tmp_path / "printed.txt", '{"status": "begun", "took": 12s}\n\nand so on\n'
    )
    assert report.format == "text"
    assert not report.problems


def test_a_broken_document_of_no_format_has_failed_with_its_place(tmp_path: Path) -> None:
    report = write_and_read(tmp_path / "config.json", '{"a": 1,\n"b": ~}')
    assert report.failed is not None
    assert "not JSON, line 2" in report.failed
