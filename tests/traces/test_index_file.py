"""The index of a long file of lines, written by other processes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui import parallel
from mast_tui.traces.index import line_ranges, lines
from mast_tui.traces.index.blocks import Block, blocks_in, write_block
from mast_tui.traces.index.line_ranges import DigestFeed
from mast_tui.traces.index.lines import LineParser, LineSpans, parser_in
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.index.span_totals import SpanTotals
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Growth, Trace
from mast_tui.traces.readers import base
from mast_tui.traces.readers.codex import reader as codex
from mast_tui.traces.scan import document_process
from mast_tui.traces.scan.big_documents import BigDocuments
from mast_tui.traces.scan.document_cache import DocumentCache
from mast_tui.traces.scan.document_process import DocumentProcess
from mast_tui.traces.scan.file_reader import read_one
from tests.benchmarks.rollouts import write_long
from tests.pickled_workers import PickledWorkers
from tests.traces.rollouts import call, event, message, meta, output, reasoning, record, tokens
from tests.traces.test_following import jsonl_lines

pytestmark = pytest.mark.slow

ROLLOUT_BYTES = 700_000
"""Size of a rollout that is longer than the first slice."""


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    path = tmp_path / "rollout.jsonl"
    write_long(path, ROLLOUT_BYTES, seed=3, block_bytes=100_000)
    return path


@pytest.fixture
def big(tmp_path: Path) -> BigDocuments:
    """Let a process read every file of lines."""
    return BigDocuments(folder=tmp_path / "kept", line_file_bytes=0)


def trace_facts(trace: Trace) -> list[object]:
    """Return the facts and spans of a trace; fail unless its keys lead to their spans."""
    spans = [(trace.span(i), trace.text(i)) for i in range(len(trace))]
    indices = [trace.index_of(trace.span(i).key) for i in range(len(trace))]
    assert indices == list(range(len(trace)))
    return [trace.meta, list(trace.problems), dict(trace.spawned), spans, trace.loaded]


def read_directly(path: Path) -> Trace:
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    return trace


def read_in_background(path: Path, big: BigDocuments) -> Trace:
    (trace,) = read_one(path, True, big).traces
    trace.spans.read_in_background()
    read_fully(trace)
    trace.spans.stop_background_read()
    return trace


def check_background_read(path: Path, big: BigDocuments) -> None:
    """Fail unless a read in the background gives the same trace as a direct one."""
    assert trace_facts(read_in_background(path, big)) == trace_facts(read_directly(path))


def totals_of(trace: Trace) -> SpanTotals:
    totals = SpanTotals()
    totals.add(trace.columns(0, len(trace)))
    return totals


def fail_if_called(*_args: object, **_options: object) -> None:
    raise AssertionError("a process was begun")


RECORDS = st.lists(
    st.sampled_from(
        [
            *(message(role, text) for role in ("user", "assistant") for text in ("go", "on", "é")),
            *(event(kind, message="go") for kind in ("user_message", "agent_message")),
            *(make(name) for make in (call, output) for name in "abc"),
            reasoning("so"),
            reasoning(),
            *(
                output("s", text)
                for text in ('{"agent_id": "t1"}', '{"output":"{\\"agent_id\\":\\"t\\"}"}')
            ),
            record(
                "response_item", {"type": "web_search_call", "call_id": "s", "name": "spawn_agent"}
            ),
            meta("another"),
            message("user", "much later", 60),
            tokens(5, 6, 11),
            tokens(7, 8, 26),
            {"type": "response_item", "payload": {"type": "message", "role": "user"}},
        ]
    ),
    min_size=1,
    max_size=40,
)
ENDS = st.sampled_from([b"", b"\n\n", b'{"type": "event', b"not JSON\n", b"\xff\n", b"null"])


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "FIRST_SLICE", 1)


def copy_through_blocks(rollout: Path, block_bytes: int, *, whole: bool = False) -> Trace:
    """Return a trace whose spans are read from the blocks, or the single block, of another one."""
    source, copy = (read_file(rollout, named=True).traces[0] for _ in range(2))
    assert isinstance(source.spans, LineSpans)
    assert isinstance(copy.spans, LineSpans)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(lines, "_FIRST_BLOCK", block_bytes)
        path = Path(folder, "index")
        with path.open("wb") as index_file:
            for block in source.spans.blocks():
                write_block(index_file, block)
            if whole:
                index_file.truncate(0)
                index_file.seek(0)
                for block in source.spans.whole():
                    write_block(index_file, block)
        with path.open("rb") as file:
            for block in blocks_in(file.fileno(), path.stat().st_size):
                assert copy.spans.append_block(block)
    read_fully(copy)
    return copy


@pytest.mark.usefixtures("short_slices")
@given(RECORDS, ENDS, st.sampled_from([1, 300, 1 << 20]), st.booleans())
def test_blocks_hold_the_spans_that_were_read(
    records: Sequence[object], end: bytes, block_bytes: int, whole: bool
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "rollout.jsonl")
        path.write_bytes(b"".join(jsonl_lines(meta(), *records)) + end)
        assert trace_facts(copy_through_blocks(path, block_bytes, whole=whole)) == trace_facts(
            read_directly(path)
        )


def flat_state_of(parser: LineParser) -> bytes:
    """Pickle a parser without its table, and shared objects as often as they are used."""

    class FlatPickler(pickle.Pickler):
        def persistent_id(self, value: object, /) -> str | None:
            return "table" if value is parser.table else None

    file = BytesIO()
    pickler = FlatPickler(file)
    pickler.fast = True
    pickler.dump(parser)
    return file.getvalue()


@pytest.mark.usefixtures("short_slices")
@given(RECORDS, ENDS, st.integers(1, 2000), st.sampled_from([50, 200, 900]), st.booleans())
def test_an_index_is_the_same_however_the_file_is_cut(
    records: Sequence[object], end: bytes, block_bytes: int, range_bytes: int, is_fork: bool
) -> None:
    """Ranges of lines from other processes, some lost or late, change no byte of the index."""
    header = meta(forked_from_id="another") if is_fork else meta()
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_FIRST_BLOCK", block_bytes)
        patch.setattr(lines, "state_of", flat_state_of)
        patch.setattr(line_ranges, "RANGE_BYTES", range_bytes)
        patch.setattr(line_ranges, "_OWN_BYTES", 1 + block_bytes // 4)
        late_workers = PickledWorkers(late=range(30))
        path = Path(folder, "rollout.jsonl")
        path.write_bytes(b"".join(jsonl_lines(header, *records)) + end)
        indexes = []
        workers = (PickledWorkers(), PickledWorkers([1, 2, 3]), late_workers)
        for digest_feed in (None, *map(DigestFeed, workers)):
            spans = read_file(path, named=True).traces[0].spans
            assert isinstance(spans, LineSpans)
            for _block in spans.blocks(digest_feed):
                pass
            file = BytesIO()
            for block in spans.whole():
                write_block(file, block)
            indexes.append(file.getvalue())
        assert indexes[1:] == indexes[:1] * 3


@pytest.mark.usefixtures("short_slices")
@given(st.lists(st.sampled_from(["one", "", "é", "\r", "x" * 50]), max_size=300), st.booleans())
def test_blocks_of_a_log_hold_its_spans(lines: Sequence[str], ended: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.log")
        path.write_text("begin\n" + "\n".join(lines) + "\n" * ended)
        assert trace_facts(copy_through_blocks(path, 100)) == trace_facts(read_directly(path))
        assert trace_facts(copy_through_blocks(path, 100, whole=True)) == trace_facts(
            read_directly(path)
        )


@pytest.mark.usefixtures("short_slices")
def test_blocks_of_codex_exec_hold_its_spans(tmp_path: Path) -> None:
    item = {"id": "item_0", "type": "command_execution", "command": "ls"}
    completed = {**item, "aggregated_output": "a\n", "exit_code": 1, "status": "failed"}
    path = tmp_path / "exec.jsonl"
    path.write_bytes(
        b"".join(
            jsonl_lines(
                {"type": "thread.started", "thread_id": "t"},
                {"type": "turn.started"},
                {"type": "item.started", "item": item},
                {"type": "item.completed", "item": completed},
                {"type": "item.completed", "item": {**completed, "id": "item_1"}},
                {"type": "item.completed", "item": {"id": "i", "type": "reasoning", "text": "so"}},
                {"type": "turn.completed", "usage": {"input_tokens": 1 << 40, "output_tokens": 2}},
            )
        )
    )
    expected = read_directly(path)
    assert len(expected) > 4
    assert trace_facts(copy_through_blocks(path, 1)) == trace_facts(expected)
    assert trace_facts(copy_through_blocks(path, 1, whole=True)) == trace_facts(expected)


def test_a_process_indexes_the_same_spans(rollout: Path, big: BigDocuments) -> None:
    check_background_read(rollout, big)


def test_several_processes_index_the_same_spans(
    rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = parallel._WORKER_CODE.replace(
        "serve(*",
        "from mast_tui.traces.scan import document_worker\n"
        "document_worker._LEAST_SHARED_BYTES = 0\n"
        "serve(*",
    )
    monkeypatch.setattr(parallel, "_WORKER_CODE", code)
    write_long(rollout, 3_000_000, seed=3, block_bytes=100_000)
    check_background_read(rollout, big)


def test_an_index_is_used_the_next_time(
    rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_background(rollout, big)
    monkeypatch.setattr(document_process, "DocumentProcess", fail_if_called)
    monkeypatch.setattr(codex.CodexParser, "finish", lambda _self: None)
    (trace,) = read_one(rollout, True, big).traces
    first_slice_count = len(trace)
    monkeypatch.setattr(codex.CodexParser, "feed", fail_if_called)
    trace.spans.load_cached()
    assert trace.loaded.complete
    assert len(trace) > first_slice_count
    assert trace.totals is not None
    assert trace.totals.block() == totals_of(trace).block()


def test_totals_are_known_before_the_spans(
    rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = trace_facts(read_in_background(rollout, big))
    monkeypatch.setattr(document_process, "DocumentProcess", fail_if_called)
    (trace,) = read_one(rollout, True, big).traces
    first_slice_count = len(trace)
    trace.spans.load_totals()
    totals = trace.totals
    assert totals is not None
    assert len(trace) == first_slice_count < totals.span_count == trace.loaded.spans
    assert trace.loaded.all_spans
    trace.spans.load_cached()
    assert trace.loaded.complete
    assert len(trace) == totals.span_count
    assert totals.block() == totals_of(trace).block()
    assert trace_facts(trace) == expected


def test_totals_of_damaged_columns_are_not_used(
    rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = trace_facts(read_in_background(rollout, big))
    assert big.folder is not None
    (index_file,) = big.folder.glob("*.spans")
    data = bytearray(index_file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    index_file.write_bytes(data)
    monkeypatch.setattr(document_process, "DocumentProcess", fail_if_called)
    (trace,) = read_one(rollout, True, big).traces
    trace.spans.load_totals()
    trace.spans.load_cached()
    assert trace.totals is None
    assert trace.loaded.spans == 0
    read_fully(trace)
    assert trace_facts(trace) == expected


def test_no_process_starts_without_a_cache(
    rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_process, "DocumentProcess", fail_if_called)
    (trace,) = read_one(rollout, True, big).traces
    loaded_count = len(trace)
    trace.spans.load_cached()
    assert len(trace) == loaded_count
    monkeypatch.undo()
    trace.spans.read_in_background()
    read_fully(trace)
    trace.spans.stop_background_read()
    assert trace_facts(trace) == trace_facts(read_directly(rollout))


def test_a_file_that_has_grown_is_read_from_the_end_of_its_index(
    rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_background(rollout, big)
    with rollout.open("ab") as file:
        file.writelines(jsonl_lines(message("assistant", "more"), call("new"), output("new")))
    fed_lines: list[int] = []
    feed = codex.CodexParser.feed

    def recording_feed(self: codex.CodexParser, number: int, line: bytes, cut_off: bool, /) -> None:
        fed_lines.append(number)
        feed(self, number, line, cut_off)

    expected = trace_facts(read_directly(rollout))
    (trace,) = read_one(
        rollout, True, BigDocuments(folder=big.folder, line_file_bytes=10_000)
    ).traces
    monkeypatch.setattr(codex.CodexParser, "feed", recording_feed)
    monkeypatch.setattr(document_process, "DocumentProcess", fail_if_called)
    trace.spans.read_in_background()
    read_fully(trace)
    assert len(fed_lines) == 3
    assert trace_facts(trace) == expected
    monkeypatch.undo()
    # A process continues the index.
    assert trace_facts(read_in_background(rollout, big)) == expected


def test_a_trace_that_came_from_an_index_is_followed(rollout: Path, big: BigDocuments) -> None:
    for _ in range(2):  # while the index is written, and from the cached index
        trace = read_in_background(rollout, big)
        with rollout.open("ab") as file:
            file.writelines(jsonl_lines(output("none"), message("assistant", "more")))
        assert trace.follow() is Growth.MORE
        read_fully(trace)
        assert trace_facts(trace) == trace_facts(read_directly(rollout))


def rewrite(path: Path) -> None:
    stat = path.stat()
    path.write_bytes(path.read_bytes().replace(b"cache", b"CACHE"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def truncate(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"\n", 0, ROLLOUT_BYTES // 2) + 1])


def replace_by_longer(path: Path) -> None:
    write_long(path, 2 * ROLLOUT_BYTES, seed=4, block_bytes=100_000)


@pytest.mark.parametrize("change", [rewrite, truncate, replace_by_longer])
def test_the_index_of_another_content_is_not_used(
    change: Callable[[Path], None], rollout: Path, big: BigDocuments
) -> None:
    read_in_background(rollout, big)
    change(rollout)
    check_background_read(rollout, big)


@pytest.mark.parametrize("position", [0, 100, 5_000, -1])
def test_a_damaged_index_loses_no_span(position: int, rollout: Path, big: BigDocuments) -> None:
    read_in_background(rollout, big)
    (index_file,) = (rollout.parent / "kept").glob("*.spans")
    data = bytearray(index_file.read_bytes())
    data[position] ^= 0xFF
    index_file.write_bytes(data)
    check_background_read(rollout, big)


def test_spans_missing_from_a_process_are_read_in_this_process(
    rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_WORKER_CODE", "raise SystemExit(1)")
    check_background_read(rollout, big)
    assert not list((rollout.parent / "kept").iterdir())


def test_all_lines_are_read_in_this_process_without_a_cache_folder(rollout: Path) -> None:
    (rollout.parent / "file").touch()
    big = BigDocuments(folder=rollout.parent / "file" / "kept", line_file_bytes=0)
    check_background_read(rollout, big)


@pytest.mark.parametrize("resumes", [True, False])
def test_closing_a_trace_leaves_no_process(
    resumes: bool, rollout: Path, big: BigDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_long(rollout, 4_000_000, seed=3, block_bytes=100_000)  # of several blocks
    processes: list[DocumentProcess] = []

    def recording_process(path: Path, documents: DocumentCache, *, lines: bool) -> DocumentProcess:
        processes.append(DocumentProcess(path, documents, lines=lines))
        return processes[-1]

    take_block = document_process.IndexInProgress.next

    def next_block(file: document_process.IndexInProgress, *, wait: bool) -> Block | None:
        return take_block(file, wait=wait) if wait else None

    monkeypatch.setattr(document_process, "DocumentProcess", recording_process)
    monkeypatch.setattr(document_process.IndexInProgress, "next", next_block)
    (trace,) = read_one(rollout, True, big).traces
    trace.spans.read_in_background()
    loaded_count = len(trace)
    while len(trace) == loaded_count:
        trace.advance()
    trace.spans.stop_background_read()
    assert processes[0].wait(0)
    if resumes:
        trace.spans.read_in_background()
        assert len(processes) == 2
    read_fully(trace)
    trace.spans.stop_background_read()
    assert trace_facts(trace) == trace_facts(read_directly(rollout))


def test_a_block_of_another_offset_is_not_used(
    rollout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_FIRST_BLOCK", 100_000)
    source, trace = (read_file(rollout, named=True).traces[0].spans for _ in range(2))
    assert isinstance(source, LineSpans)
    assert isinstance(trace, LineSpans)
    first_slice_count = len(trace)
    first, second = list(source.blocks())[:2]
    assert not trace.append_block(second)
    assert len(trace) == first_slice_count
    assert trace.append_block(first)
    block_count = len(trace)
    assert trace.append_block(first)  # its spans are there already
    assert len(trace) == block_count > first_slice_count


@pytest.mark.parametrize(
    "state",
    [
        pickle.dumps(os.system),
        b"cmast_tui.traces.index.lines\npickle\n.",
        b"cmast_tui.traces.index.lines\nOrderedDict\n.",
        b"cmast_tui.traces.index.lines\nparser_in\n.",
    ],
)
def test_a_state_of_another_shape_is_refused(state: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="no part of a parser"):
        parser_in(state, SpanTable())
