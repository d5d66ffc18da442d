"""Search of text in many files."""

from __future__ import annotations

import gzip
import json
import os
import re
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.library import read_fully, samples_folder, scan
from mast_tui.traces.readers.codex.reader import CodexParser
from mast_tui.traces.scan import scanning
from mast_tui.traces.scan.big_documents import BigDocuments
from mast_tui.traces.scan.file_reader import read_one
from mast_tui.traces.scan.scanning import Unit
from mast_tui.traces.search import file_search
from mast_tui.traces.search.file_search import (
    FileToSearch,
    Hit,
    ManyFilesSearch,
    NotSearched,
    Query,
    SearchFiles,
    excerpt,
    files_to_search,
    search_file,
)
from tests import waiting
from tests.benchmarks.rollouts import RARE_WORD, write_long
from tests.pickled_workers import PickledWorkers
from tests.traces.nested_runs import CHILD, run_message, write_rollout
from tests.traces.rollouts import call, message, meta, output, write
from tests.traces.test_trials import published_layout_itbench

pytestmark = pytest.mark.slow

WORD = re.compile(r"[^\W\d_]{3,}")


def hits(query: Query, *paths: Path) -> list[Hit | NotSearched]:
    """Return the hits of a search in this process."""
    actual: list[Hit | NotSearched] = []
    for file in files_to_search(paths):
        if isinstance(file, NotSearched):
            actual.append(file)
        else:
            actual += chain.from_iterable(search_file(file.unit, query, query.matcher()))
    return actual


def spans_with_hits(query: Query, *paths: Path) -> list[int]:
    """Return the indices of the spans with a hit."""
    return [hit.span for hit in hits(query, *paths) if isinstance(hit, Hit)]


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    """Write a rollout of seven spans."""
    (tmp_path / "traces").mkdir()
    return write(
        tmp_path / "traces",
        meta(),
        message("user", "Find the Zebra in the log"),
        call("a", '{"command": ["grep", "zebra", "log"]}'),
        output("a", '{"output": "no zebra, no ZEBRA", "metadata": {"exit_code": 1}}'),
        call("b"),
        output("b", '{"output": "log", "metadata": {"exit_code": 0}}'),
        message("assistant", "There is\nno zebra."),
        name="run.jsonl",
    )


def test_a_hit_has_its_trace_span_place_and_context(rollout: Path) -> None:
    actual = hits(Query("no zebra"), rollout.parent)
    assert all(isinstance(hit, Hit) for hit in actual)
    first, last = (hit for hit in actual if isinstance(hit, Hit))
    assert (first.path, first.record) == (str(rollout), None)
    assert first.place == f"{rollout}:4"
    assert (first.kind, first.name, first.matches) == ("tool_result", "shell", 2)
    assert first.preview[first.match_start : first.match_end] == "no zebra"
    assert last.place == f"{rollout}:7"
    assert last.preview == "There is no zebra."
    assert (last.start, last.end) == (9, 17)


def test_all_runs_of_a_trial_are_searched(tmp_path: Path) -> None:
    trial = published_layout_itbench(tmp_path)
    sessions = trial / "sessions" / "2026" / "03" / "01"
    write_rollout(
        sessions / "rollout-y.jsonl", CHILD, None, run_message(1, "assistant", "told again")
    )
    for folder in (trial, tmp_path):
        paths = [hit.path for hit in hits(Query("told"), folder) if isinstance(hit, Hit)]
        assert paths == [str(sessions / name) for name in ("rollout-x.jsonl", "rollout-y.jsonl")]


def test_case_counts_with_a_capital_or_on_request(rollout: Path) -> None:
    indices = spans_with_hits(Query("zebra"), rollout)
    assert len(indices) == 4
    assert spans_with_hits(Query("Zebra"), rollout) == indices[:1]
    assert spans_with_hits(Query("zebra", exact=True), rollout) == indices[1:]
    assert spans_with_hits(Query("no z.bra", regex=True), rollout) == indices[2:]


def test_conditions_narrow_a_search_and_need_no_text(rollout: Path) -> None:
    tool_call, tool_result = spans_with_hits(Query("zebra", tool="Shell"), rollout)
    assert spans_with_hits(Query("zebra", kinds=("tool_call",)), rollout) == [tool_call]
    assert spans_with_hits(Query(failed=True), rollout) == [tool_result]
    assert spans_with_hits(Query("zebra", agent="nobody"), rollout) == []
    assert len(spans_with_hits(Query(tool="shell"), rollout)) == 4


def test_a_search_without_a_text_reads_a_long_file_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    facts = write_long(path, 700_000, seed=3, block_bytes=100_000)
    assert spans_with_hits(Query(), path) == [*range(facts.spans)]


def test_a_file_without_the_text_is_not_parsed(
    rollout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_read(*_args: object, **_options: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(scanning, "read_run", fail_to_read)
    assert hits(Query("giraffe"), rollout) == []
    assert hits(Query("(giraffe|elephant)s?", regex=True), rollout) == []
    with pytest.raises(AssertionError):
        hits(Query("zebra"), rollout)


def test_a_cached_big_file_is_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rollout.jsonl"
    big = BigDocuments(folder=tmp_path / "kept", line_file_bytes=0)
    facts = write_long(path, 700_000, seed=3, block_bytes=100_000)
    (trace,) = read_one(path, True, big).traces
    trace.spans.read_in_background()
    read_fully(trace)
    # Another process writes the cache file, and renames it at the end.
    for _ in waiting.until(lambda: [*(tmp_path / "kept").glob("*.spans")]):
        pass
    monkeypatch.setattr(
        scanning, "read_run", lambda path, _members, named: read_one(path, named, big)
    )
    feed = CodexParser.feed
    fed_lines = {0}

    def recording_feed(parser: CodexParser, number: int, line: bytes, cut_off: bool, /) -> None:
        fed_lines.add(number)
        feed(parser, number, line, cut_off)

    monkeypatch.setattr(CodexParser, "feed", recording_feed)
    read_one(path, True, big)
    last_line = max(fed_lines)
    assert spans_with_hits(Query(RARE_WORD), path) == list(facts.rare)
    assert max(fed_lines) == last_line < len(trace)


def test_compressed_and_utf_16_files_are_searched(rollout: Path, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl.gz").write_bytes(gzip.compress(rollout.read_bytes()))
    chat = json.dumps([{"role": "user", "content": "zebra"}, {"role": "assistant", "content": ""}])
    (tmp_path / "wide.json").write_bytes(b"\xff\xfe" + chat.encode("utf-16-le"))
    (tmp_path / "escaped.json").write_text(chat.replace("zebra", r"\u007aebra"))
    assert len(spans_with_hits(Query("zebra"), tmp_path / "run.jsonl.gz")) == 4
    assert spans_with_hits(Query("zebra"), tmp_path / "wide.json") == [0]
    assert spans_with_hits(Query("zebra"), tmp_path / "escaped.json") == [0]


def test_sub_agents_are_searched_with_their_run(tmp_path: Path) -> None:
    main_id, child_id = (f"0199a213-81c0-7800-8aa1-bbab2a03000{number}" for number in (1, 2))
    run = write(tmp_path, meta(main_id), message("user", "go"), name="a.jsonl")
    child_header = meta(child_id, parent_thread_id=main_id)
    write(tmp_path, child_header, message("user", "the zebra"), name="b.jsonl")
    for paths in ([tmp_path], [run]):
        (hit,) = hits(Query("zebra"), *paths)
        assert isinstance(hit, Hit)
        assert (hit.path, hit.trace_id) == (str(run), main_id)
        assert hit.place == f"{tmp_path / 'b.jsonl'}:2"


def test_files_that_cannot_be_searched_are_problems(rollout: Path, tmp_path: Path) -> None:
    broken = tmp_path / "traces" / "broken.json"
    broken.write_text('{"zebra": nothing,,}')
    missing = tmp_path / "missing"
    actual = hits(Query("zebra"), rollout.parent, missing)
    results = [result for result in actual if isinstance(result, NotSearched)]
    assert [result.path for result in results] == [str(broken), str(missing)]
    assert "not JSON" in results[0].reason
    assert "no such file" in results[1].reason


def test_every_file_is_searched_once(rollout: Path) -> None:
    os.link(rollout, rollout.parent / "z.jsonl")
    (rollout.parent / "y.jsonl").symlink_to(rollout)
    files = [*files_to_search([rollout, rollout.parent, rollout])]
    assert files == [
        FileToSearch(Unit(rollout, [], named=True), rollout.stat().st_size),
        FileToSearch(Unit(rollout.parent / "z.jsonl"), rollout.stat().st_size),
    ]


def test_the_words_of_every_sample_pass_the_byte_filter() -> None:
    """No reader shows words that are not in the bytes of its file."""
    for report in scan([samples_folder()]):
        if not report.traces:
            continue
        data = report.path.read_bytes()
        for trace in report.traces:
            read_fully(trace)
            texts = [*map(trace.text, range(len(trace)))]
            for word in sorted({word for text in texts for word in WORD.findall(text)}):
                prefilter = Prefilter.for_any(word)
                assert prefilter is None or prefilter.may_match(data), (report.path, word)


PIECES = (
    *("error", "Error", "k", "\u212a", "é", "É", "日本", "404", "1e2", "x_1", "no such file", "ß"),
    *(" ", "\n", "\t", "-", ".", '"', "\\", "\u2014", "{", ":"),
)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), st.data())
def test_every_spelling_of_a_text_passes_the_byte_filter(
    pieces: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(pieces) - 1))
    last = data.draw(st.integers(first + 1, len(pieces)))
    text = "".join(pieces)
    needle = "".join(pieces[first:last])
    row = " ".join(text.split())
    for query_text in {
        needle,
        *([" ".join(needle.split())] if " ".join(needle.split()) in row else []),
    }:
        prefilter = Prefilter.for_any(query_text)
        for escaped in (True, False):
            encoded = json.dumps(text, ensure_ascii=escaped)
            encoded_twice = json.dumps(encoded, ensure_ascii=escaped)
            assert prefilter is None or prefilter.may_match(encoded.encode())
            assert prefilter is None or prefilter.may_match(encoded_twice.encode())


def test_a_preview_is_cut_around_the_hit() -> None:
    assert excerpt("short", 0, 5) == ("short", 0, 5)
    line, start, end = excerpt("a" * 100 + "\n\n needle \n" + "b" * 300, 103, 109)
    assert line[start:end] == "needle"
    assert line.startswith("…aaa")
    assert "a needle b" in line
    assert line.endswith("b…")
    long, start, end = excerpt("x" * 1000, 10, 900)
    assert len(long) < 200
    assert (start, end) == (10, len(long) - 1)


# Processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write twelve rollouts; every third has the word."""
    for number in range(12):
        text = "a zebra" if number % 3 == 0 else "nothing"
        thread_id = f"0199a213-81c0-7800-8aa1-bbab2a03{number:04d}"
        write(tmp_path, meta(thread_id), message("user", text), name=f"run-{number:02d}.jsonl")
    return tmp_path


def test_processes_find_the_same_hits_in_the_order_of_files(folder: Path) -> None:
    search = ManyFilesSearch([folder], Query("zebra"), 3)
    actual = [result for result in search.results() if result is not None]
    assert actual == hits(Query("zebra"), folder)
    assert len(actual) == 4
    assert (search.searched_count, search.total) == (12, 12)


def test_hits_of_a_big_file_arrive_as_they_are_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, "_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(file_search, "_BLOCK_BYTES", 5000)
    lines = [message("user", f"zebra {number}" + 6000 * "y") for number in range(5)]
    write(folder, meta(), *lines, name="run-00.jsonl")
    files = [*files_to_search([folder / "run-00.jsonl"])]
    results = [*SearchFiles(Query("zebra"))(files)]  # type: ignore[arg-type]
    assert [len(batch) for batch in results] == [1, 1, 1, 1, 1, 0]
    search = ManyFilesSearch([folder], Query("zebra"), 2)
    assert [result for result in search.results() if result is not None] == hits(
        Query("zebra"), folder
    )


def test_a_search_can_be_stopped(folder: Path) -> None:
    search = ManyFilesSearch([folder], Query("zebra"), 2)
    results = search.results()
    assert isinstance(next(results), Hit)
    search.close()
    assert [*results] == []


def test_a_file_that_kills_its_process_loses_no_other_file(folder: Path) -> None:
    # The first batch lists the files; each of the others is one file.
    search = ManyFilesSearch([folder], Query("zebra"), PickledWorkers(lost=[3, 4, 5]))
    results = [result for result in search.results() if result is not None]
    (lost,) = (result for result in results if isinstance(result, NotSearched))
    assert ("run-01" in lost.path, "was killed" in lost.reason) == (True, True)
    assert len(results) == 5
    assert search.searched_count == 12


def test_an_exception_in_a_process_is_raised(folder: Path) -> None:
    invalid_query = Query("zebra", kinds=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError) as error:
        [*ManyFilesSearch([folder], invalid_query, 1).results()]
    assert "accepts" in "".join(error.value.__notes__)
