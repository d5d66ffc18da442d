"""Search of text in one trace: every hit, in order, with few lines parsed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.traces.byte_prefilter import Prefilter, folded
from mast_tui.traces.index.line_index import LineIndex, MemoryContent
from mast_tui.traces.index.lines import LineSpans
from mast_tui.traces.index.multi_file_trace import MemberFile, join_members
from mast_tui.traces.keys import identity_by_content
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import SpanKind, Thread, Trace
from mast_tui.traces.readers.codex.reader import CodexParser
from mast_tui.traces.readers.logs import TextParser
from mast_tui.traces.search import text_search
from mast_tui.traces.search.text_search import SLICE_BYTES, Matcher, Needle, SearchStep, TextSearch
from tests.traces import claude_sessions as claude
from tests.traces.counting_content import CountingContent
from tests.traces.rollouts import Record, call, message, meta, output, reasoning

FULL_PREVIEW = "begin " * 60
"""Text that fills a preview, so that no row contains the text after it."""

PIECES = [
    "error", "Error", "ERROR", "k", "K", "\u212a", "i", "İ", "ß", "é", "É", "日本", "日", "🙂",
    "404", "0", "1", "2", "3", "5", "7", "15", "30", "678", "57", "93", "e-",
    "ς", "Σ", "σ", "null", "1e2", "100", "100.0", "1.50", "a/b", "\\", '"', "\n", "\t", "\x1b",
    "\x00", " ", "  ", "-", ".",
    "{", "}", ": ", ",", "x", "step 3", "v1.5", "\u2028", "\ufffd", "\\u0065", "\\n", "_",
]  # fmt: skip


def all_hits(search: TextSearch, max_bytes: int = SLICE_BYTES) -> dict[int, int]:
    """Return the counts of hits by span of a search that never waits."""
    hits: list[tuple[int, int]] = []
    while (actual := search.step(max_bytes=max_bytes)) is not None:
        assert not actual.waits
        hits += actual.hits
    assert len(dict(hits)) == len(hits)
    return dict(hits)


def hits_of_all_texts(trace: Trace, needle: str) -> dict[int, int]:
    """Return the counts of hits by span from all texts and rows."""
    exact = any(letter != letter.lower() for letter in needle)
    hits = {}
    for index in range(len(trace)):
        span = trace.span(index)
        texts = [trace.text(index), span.preview, span.name or ""]
        if not exact:
            texts = [folded(text) for text in texts]
            needle = folded(needle)
        count = texts[0].count(needle) or int(needle in texts[1] or needle in texts[2])
        if count:
            hits[index] = count
    return hits


class CountingParser(CodexParser):
    """A parser of Codex that counts the texts that it makes."""

    texts_made = 0

    def text(self, data: bytes, kind: SpanKind, index: int, /) -> str:
        self.texts_made += 1
        return super().text(data, kind, index)


def rollout_bytes(records: Iterable[Record], *, plain: bool = False) -> bytes:
    lines = [json.dumps(record, ensure_ascii=not plain) for record in records]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def rollout_of(data: bytes, *, read: bool = True) -> tuple[Trace, CountingContent, CountingParser]:
    """Return a trace of a rollout, with the content and parser that count its reads and texts."""
    content = CountingContent(data)
    parser = CountingParser()
    path = Path("rollout.jsonl")
    identity = identity_by_content(path, None, data, reader="codex", key_scheme=1)
    trace = Trace(identity, path, LineSpans(LineIndex(content, len(data)), parser))
    if read:
        read_fully(trace)
    return trace, content, parser


short_texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
needles = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join)
NUMBERS = [
    b"1E2", b"1.5e1", b"-2e-7", b"0.00001", b"123456789012345678901234567890", b"1.50", b"404",
    b"0.30000000000000001665", b"12345678.123456785", b"9007199254740993.0", b"1e400", b"-0.0",
]  # fmt: skip
"""Numbers, some of which a reader rewrites with other digits."""

values = st.one_of(
    short_texts,
    st.just("@number@"),
    st.sampled_from([100.0, 1e2, 1.5, 10**25, True, None, 5e-7]),
    st.dictionaries(st.sampled_from(["step", "É", "a b"]), short_texts | st.just(1e2), max_size=2),
)


@st.composite
def rollouts(draw: st.DrawFn) -> bytes:
    """Draw records with foreign characters, some of them after the text of the preview."""
    records: list[Record] = [meta()]
    for number in range(draw(st.integers(1, 5))):
        lead = draw(st.sampled_from(["", FULL_PREVIEW]))
        records.append(message("assistant", lead + draw(short_texts)))
        records.append(reasoning(lead, draw(short_texts)))
        arguments = draw(values)
        records.append(
            call(f"c{number}", arguments if isinstance(arguments, dict) else json.dumps(arguments))
        )
        wrapped_output = {"output": lead + draw(short_texts), "metadata": {"exit_code": 0}}
        records.append(output(f"c{number}", json.dumps(wrapped_output)))
        records.append({"type": "event_msg", "payload": {"type": "odd", "it": draw(values)}})
    data = rollout_bytes(records, plain=draw(st.booleans()))
    if draw(st.booleans()):  # a writer may escape any letter
        data = data.replace(b"error", b"\\u0065rr\\u006fr").replace(b"step 3", b"step\\u00203")
        data = data.replace(b"404", b"\\u00340\\u0034")
    return data.replace(b'"@number@"', draw(st.sampled_from(NUMBERS)))


@settings(max_examples=40)
@given(rollouts(), needles, st.integers(0, 30), st.integers(1, 2000))
def test_a_search_finds_the_hits_of_a_search_in_every_text(
    data: bytes, needle: str, start: int, max_bytes: int
) -> None:
    trace = rollout_of(data)[0]
    search = TextSearch(trace, Needle(needle), min(start, len(trace)))
    assert all_hits(search, max_bytes) == hits_of_all_texts(trace, needle)


def test_an_escaped_surrogate_pair_is_found() -> None:
    wrapped_output = json.dumps({"output": "done \U0001f642", "metadata": {"exit_code": 0}})
    data = rollout_bytes([meta(), call("c0", "{}"), output("c0", wrapped_output)], plain=False)
    assert b"\\\\ud83d\\\\ude42" in data
    search = TextSearch(rollout_of(data)[0], Needle("\U0001f642"), 0)
    assert all_hits(search, 1) == {1: 1}


@settings(max_examples=30)
@given(st.lists(short_texts, min_size=1, max_size=12), needles)
def test_a_search_of_plain_text_finds_every_hit(paragraphs: list[str], needle: str) -> None:
    data = "\n\n".join(FULL_PREVIEW + paragraph for paragraph in paragraphs).encode()
    path = Path("notes.txt")
    identity = identity_by_content(path, None, data, reader="text", key_scheme=1)
    trace = Trace(
        identity, path, LineSpans(LineIndex(MemoryContent(data), len(data)), TextParser())
    )
    read_fully(trace)
    assert all_hits(TextSearch(trace, Needle(needle), 0)) == hits_of_all_texts(trace, needle)


@given(st.text(max_size=40))
def test_folding_keeps_each_code_point_in_its_place(text: str) -> None:
    assert len(folded(text)) == len(text)
    assert folded(folded(text)) == folded(text)


@given(short_texts, needles)
def test_hits_have_their_offsets(text: str, needle: str) -> None:
    matcher = Needle(needle)
    ranges = matcher.match_ranges(text)
    assert [folded(text[a:b]) for a, b in ranges] == [folded(needle)] * len(ranges)
    assert len(ranges) == matcher.count(text, tuple)
    assert all(a[1] <= b[0] for a, b in pairwise(ranges))


@given(short_texts, needles, st.integers(1, 9))
def test_a_long_text_is_searched_in_pieces(text: str, needle: str, piece_chars: int) -> None:
    matcher = Needle(needle)
    expected = list(matcher.match_ranges(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_search, "PIECE_CHARS", piece_chars)
        assert list(matcher.match_ranges(text)) == expected
        assert matcher.count(text, tuple) == len(expected)


def test_small_letters_find_capitals() -> None:
    assert Needle("pod").count("Pod pod POD", tuple) == 3
    assert Needle("Pod").count("Pod pod POD", tuple) == 1
    assert Needle("straße").count("STRAẞE Straße", tuple) == 2
    assert Needle("οδός").count("ΟΔΌΣ", tuple) == 1


def test_a_hit_in_the_row_alone_is_found_once() -> None:
    matcher = Needle("namespace=shop")
    assert matcher.count('{"namespace": "shop"}', lambda: ("namespace=shop", "get_pods")) == 1
    assert Needle("get_pods").count("get_pods twice: get_pods", lambda: ("get_pods",)) == 2


def test_a_rare_word_parses_only_its_lines() -> None:
    filler = [message("assistant", f"{FULL_PREVIEW} nothing of note {i}") for i in range(400)]
    filler[123] = message("assistant", f"{FULL_PREVIEW} the zebra")
    filler[301] = message("assistant", f"{FULL_PREVIEW} a Zebra")
    data = rollout_bytes([meta(), *filler])
    trace, content, parser = rollout_of(data)
    content.bytes_read = 0
    parser.texts_made = 0
    actual = all_hits(TextSearch(trace, Needle("zebra"), 200))
    assert len(actual) == 2
    assert parser.texts_made == 2
    assert content.bytes_read <= len(data)


def test_an_absent_word_parses_nothing() -> None:
    data = rollout_bytes([meta(), *(message("user", f"{FULL_PREVIEW}{i}") for i in range(50))])
    trace, _content, parser = rollout_of(data)
    parser.texts_made = 0
    assert all_hits(TextSearch(trace, Needle("zebra"), 0)) == {}
    assert parser.texts_made == 0


@pytest.mark.slow
def test_a_line_longer_than_a_slice_is_searched_in_pieces() -> None:
    text = "y" * 9_000_000
    data = rollout_bytes([meta(), message("user", text), message("user", text + "zebra")])
    trace, _content, parser = rollout_of(data)
    parser.texts_made = 0
    assert list(all_hits(TextSearch(trace, Needle("zebra"), 0))) == [1]
    assert parser.texts_made == 1


def test_a_search_starts_at_the_position_and_wraps_around() -> None:
    data = rollout_bytes([meta(), *(message("user", f"pod {i}") for i in range(9))])
    trace = rollout_of(data)[0]
    search = TextSearch(trace, Needle("pod"), 4)
    first = search.step()
    second = search.step()
    assert isinstance(first, SearchStep)
    assert isinstance(second, SearchStep)
    assert [index for index, _ in first.hits] == [4, 5, 6, 7, 8]
    assert [index for index, _ in second.hits] == [0, 1, 2, 3]
    assert second.share == 1
    assert search.step() is None


def test_a_search_continues_in_new_lines_of_the_index() -> None:
    data = rollout_bytes([meta(), *(message("user", f"pod {i}") for i in range(300))])
    trace = rollout_of(data, read=False)[0]
    trace.advance(2000)
    search = TextSearch(trace, Needle("pod"), 3)
    hits: list[int] = []
    wait_count = 0
    while (actual := search.step()) is not None:
        hits += [index for index, _ in actual.hits]
        if actual.waits:
            wait_count += 1
            trace.advance(20_000)
    assert wait_count
    assert sorted(hits) == list(range(300))


def test_a_file_that_is_gone_ends_the_search_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(rollout_bytes([meta(), *(message("user", f"pod {i}") for i in range(9))]))
    trace = read_file(path, named=True).traces[0]
    read_fully(trace)
    path.unlink()
    assert all_hits(TextSearch(trace, Needle("zebra"), 0)) == {}


@pytest.mark.parametrize("needle", ["1e5", "null", '": "', "\ufffd", "///"])
def test_rewritten_texts_are_searched_in_every_span(needle: str) -> None:
    assert Prefilter.for_any(needle) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("needle", "line"),
    [
        ("événement", b'"\\u00c9V\\u00c9NEMENT"'),
        ("日本", '"日本"'.encode()),
        ("日本", b'"\\u65E5\\u672c"'),
        ("🙂", b'"\\uD83D\\ude42"'),
        ("step 3", b'"STEP\\u00203"'),
        ("é", "É".encode()),
        ("100", b'{"n":1e2}'),
        ("100", b'"{\\n  -1.0E+2}"'),
        ("678", b"[12345678901234567890.5]"),
        ("5", b"[0.00001]"),
        ("10.0.0.1", b"10.0.0.1"),
        ("2026-09-21", b"2026-09-21"),
    ],
)
def test_a_byte_filter_passes_every_spelling(needle: str, line: bytes) -> None:
    prefilter = Prefilter.for_any(needle)
    assert prefilter is not None
    assert prefilter.hits(b"nothing\n" + line + b"\nnothing") != []
    assert prefilter.hits(b"nothing\nnothing") == []


def test_ids_that_look_like_exponents_are_searched_as_text() -> None:
    prefilter = Prefilter.for_any("404")
    assert prefilter is not None
    assert prefilter.hits(b'{"id":"6d1e2f3e4-0e1a-4e55-a9e3","call":"call_3e5f"}\n') == []


def test_a_needle_is_a_matcher() -> None:
    matchers: Sequence[Matcher] = [Needle("a")]
    assert all(matcher.match_ranges("banana") == [(1, 2), (3, 4), (5, 6)] for matcher in matchers)


def test_the_files_of_a_run_are_searched_as_one(tmp_path: Path) -> None:
    main_records = [
        meta("t1"),
        *(message("user", f"{FULL_PREVIEW} main pod {i}") for i in range(4)),
    ]
    child_records = [
        meta("t2"),
        *(message("user", f"{FULL_PREVIEW} a {i} zebra") for i in range(3)),
    ]
    members = []
    for name, records in (("main", main_records), ("other", child_records)):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(rollout_bytes(records))
        trace = read_file(path, named=True).traces[0]
        members.append(MemberFile(Thread(name), trace, name))
    run = join_members(members[0], members[1:]).with_id("run")
    read_fully(run)
    assert len(run) == 7
    for needle in ("pod", "zebra", "404", "begin", "user"):
        assert all_hits(TextSearch(run, Needle(needle), 5)) == hits_of_all_texts(run, needle)


@pytest.mark.parametrize("needle", ["zebra", "Zebra crossing", "42", "pods", "é"])
def test_sessions_of_claude_code_are_searched(tmp_path: Path, needle: str) -> None:
    trace = claude.trace_of(
        tmp_path,
        claude.user("u1", None, "Where is the zebra? " + "So " * 200 + "a Zebra crossing"),
        claude.agent(
            "a1", "u1", claude.text("x" * 300 + " Zebra"), claude.call("t1", command="get pods é")
        ),
        claude.result("u2", "a1", "t1", "pods: 42 " + "." * 300 + " 42 zebras"),
    )
    assert len(trace) > 2
    assert all_hits(TextSearch(trace, Needle(needle), 1)) == hits_of_all_texts(trace, needle)
