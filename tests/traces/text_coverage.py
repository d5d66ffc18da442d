"""An independent look at a trace file: which of its long texts are in no span, or in two.

It knows no format. It parses the JSON of a file, collects every string of more than 40 characters,
and searches for each in the texts of the spans. A text counts as found where its words occur in a
span's text in the same order, so that indentation and JSON escapes do not matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mast_tui.traces.model import SpanKind, SpanStatus, Trace

LONG_TEXT = 40
_DEEPEST = 60


@dataclass(frozen=True)
class TextCoverage:
    """Long texts of a file by how many spans hold them.

    ``lost`` are in no span, ``doubled`` are in more than one although the file holds them once.
    """

    lost: tuple[str, ...]
    doubled: tuple[str, ...]


def text_coverage(
    path: Path, traces: Sequence[Trace], passed_over: Sequence[str] = ()
) -> TextCoverage:
    """Compare the long texts of a JSON or JSON Lines file with the texts of its spans.

    Args:
        path: The file.
        traces: What was read of it.
        passed_over: Names of fields whose values belong in no span, such as ids and signatures.

    Returns:
        The texts that are lost or doubled, in the order of the file, each once.
    """
    span_texts = [_words(trace.text(index)) for trace in traces for index in range(len(trace))]
    texts = list(long_texts(path, passed_over))
    words_in_file = [_words(text) for text in texts]
    lost: dict[str, None] = {}
    doubled: dict[str, None] = {}
    for text, words in zip(texts, words_in_file, strict=True):
        in_spans = sum(words in span_text for span_text in span_texts)
        if in_spans == 0:
            lost[text] = None
        elif in_spans > sum(words in other for other in words_in_file):
            doubled[text] = None
    return TextCoverage(tuple(lost), tuple(doubled))


def long_texts(path: Path, passed_over: Sequence[str] = ()) -> Iterator[str]:
    """Yield the strings of more than 40 characters in a file, in the order of the file.

    Args:
        path: A JSON document, JSON documents one after another, or JSON Lines.
        passed_over: Names of fields that are not looked into.
    """
    decoder = json.JSONDecoder(strict=False)
    content = path.read_text(encoding="utf-8-sig")
    position = 0
    while True:
        while position < len(content) and content[position].isspace():
            position += 1
        if position == len(content):
            return
        value, position = decoder.raw_decode(content, position)
        yield from _long_texts_in(value, frozenset(passed_over), 0)


def counts_by_kind(traces: Sequence[Trace]) -> dict[str, int]:
    """Count calls, results, errors and messages of traces, as ``calls``, ``results`` and so on."""
    spans = [trace.span(index) for trace in traces for index in range(len(trace))]
    return {
        "calls": sum(span.kind is SpanKind.TOOL_CALL for span in spans),
        "results": sum(span.kind is SpanKind.TOOL_RESULT for span in spans),
        "tied": sum(
            span.kind is SpanKind.TOOL_RESULT and span.parent is not None for span in spans
        ),
        "errors": sum(span.status is SpanStatus.ERROR for span in spans),
        "messages": sum(span.kind is SpanKind.MESSAGE for span in spans),
    }


def _long_texts_in(value: object, passed_over: frozenset[str], depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in passed_over:
                yield from _long_texts_in(inner, passed_over, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _long_texts_in(inner, passed_over, depth + 1)
    elif isinstance(value, str):
        nested = _nested_json(value)
        if nested is not None:
            yield from _long_texts_in(nested, passed_over, depth + 1)
        elif len(value) > LONG_TEXT and not _is_identifier(value):
            yield value


def _nested_json(text: str) -> object:
    """Return the object or list that a string holds as JSON, else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return value


def _is_identifier(text: str) -> bool:
    """Tell whether a text is one word: an id, a hash, a path or encoded data."""
    return not any(character.isspace() for character in text.strip())


def _words(text: str) -> str:
    """Return the letters and digits of a text, JSON escapes undone, in order."""
    unescaped = text.replace("\\n", " ").replace("\\t", " ").replace("\\r", " ")
    return "".join(character for character in unescaped if character.isalnum())
