"""Values in foreign messages: fields under the names that vendors give them, and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_text, content_text, dump_text, tokens_of
from mast_tui.traces.model import Tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    kind_of,
    name_in,
    name_set,
    names,
    texts_in,
)
from mast_tui.traces.times import unix_seconds

_TIME_FIELDS: Final = ("timestamp", "created_at", "createdAt", "time", "created")
_USAGE_FIELDS: Final = ("usage", "usage_metadata", "usageMetadata", "models_usage", "token_usage")
_MODEL_FIELDS: Final = ("model", "model_name", "model_version", "modelVersion", "model_id")
_METADATA_FIELDS: Final = ("response_metadata", "metadata")
_INPUT_TOKENS: Final = names(
    "input_tokens prompt_tokens request_tokens prompt_token_count promptTokenCount"
    " inputTokens promptTokens"
)
_OUTPUT_TOKENS: Final = names(
    "output_tokens completion_tokens response_tokens candidates_token_count candidatesTokenCount"
    " outputTokens completionTokens"
)
_CACHED_APART: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")
_THOUGHTS_APART: Final = ("thoughts_token_count", "thoughtsTokenCount")


def start_of(message: Fields) -> float | None:
    """Return the time at which a message was written, in Unix seconds."""
    return next(
        (time for field in _TIME_FIELDS if (time := unix_seconds(message.get(field))) is not None),
        None,
    )


def model_of(message: Fields) -> str | None:
    """Return the model that wrote a message or answered a request, where it is named."""
    holders = (message, *(fields_of(message.get(field)) for field in _METADATA_FIELDS))
    return next((name for holder in holders if (name := name_in(holder, *_MODEL_FIELDS))), None)


def usage_of(message: Fields) -> Tokens | None:
    """Return the tokens of the model call that a message or a response came from.

    Tokens read from or written to a cache count as input, and hidden thoughts as output,
    where the vendor counts them apart.
    """
    for field in _USAGE_FIELDS:
        usage = message.get(field)
        if usage is not None and isinstance(usage, Mapping):
            return _tokens(usage)
    usage = fields_of(message.get("response_metadata")).get("token_usage")
    return _tokens(usage) if isinstance(usage, Mapping) else None


def _tokens(usage: Fields) -> Tokens | None:
    return tokens_of(
        _sum(usage, first_in(usage, *_INPUT_TOKENS), _CACHED_APART),
        _sum(usage, first_in(usage, *_OUTPUT_TOKENS), _THOUGHTS_APART),
    )


def _sum(usage: Fields, base: object, more: tuple[str, ...]) -> int | None:
    count = as_count(base)
    return None if count is None else count + sum(as_count(usage.get(name)) or 0 for name in more)


def usage_tokens(usage: object, input_fields: str, output_fields: str) -> Tokens | None:
    """Return the tokens of a model call; None where none are counted.

    Args:
        usage: An object with counts.
        input_fields: The fields to add up for the input, separated by spaces.
        output_fields: The same for the output.
    """
    fields = fields_of(usage)
    return tokens_of(_sum_of(fields, input_fields), _sum_of(fields, output_fields))


def _sum_of(usage: Fields, fields: str) -> int | None:
    counts = [count for name in names(fields) if (count := as_count(usage.get(name))) is not None]
    return sum(counts) if counts else None


_THOUGHT_FIELDS: Final = names("thinking reasoning reasoning_content text content summary")
_FILE_KINDS: Final = name_set("""
    audio binary computer_screenshot document document-url file image image-url image_url
    input_audio input_file input_image media video video-url video_url
""")
_FILE_NAMES: Final = ("filename", "file_name", "title", "name", "display_name", "displayName")
_MEDIA_TYPES: Final = ("media_type", "mime_type", "mimeType", "mediaType")
_TEXTS_IN_BEDROCK: Final = names("guardContent guard_content citationsContent citations_content")
_SOURCES: Final = ("file", "source", "inline_data", "inlineData", "file_data", "fileData")


def message_text(content: object) -> str:
    """Return the text of a message's content: a string, a part, a list of parts, or None.

    Parts are joined by newlines. A picture, sound or file becomes a note in brackets.
    """
    if isinstance(content, list):
        return "\n".join(map(_part_text, content))
    if isinstance(content, Mapping):
        return _part_text(content)
    return content_text(content)


def output_text(output: object) -> str:
    """Return the text of a tool's output, without the object or list around it."""
    if isinstance(output, Mapping):
        if "stdout" in output:
            return texts_in(output, "stdout", "stderr")
        if kind_of(output) in ("json", "error-json") and "value" in output:
            return dump_text(output["value"])
        if kind_of(output) == "content" and isinstance(output.get("value"), list):
            return message_text(output["value"])
        if kind_of(output) == "execution-denied":
            return as_text(output.get("reason")) or "[denied]"
        if not kind_of(output) and "text" not in output:
            return _only_value(output)
    return message_text(output)


def thought_text(thought: object) -> str:
    """Return the text of a reasoning block; a note in brackets where it is encrypted."""
    if isinstance(thought, list):
        texts = (
            thought_text(part) if isinstance(part, Mapping) else content_text([part])
            for part in thought
        )
        return "\n".join(text for text in texts if text)
    if not isinstance(thought, Mapping):
        return content_text(thought)
    for field in _THOUGHT_FIELDS:
        value = thought.get(field)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return content_text(value)
        if isinstance(value, Mapping) and value:
            return thought_text(value)
    if kind_of(thought) == "redacted_thinking":
        return "[redacted thinking]"
    hidden = ("encrypted_content", "encrypted", "data", "signature", "protectedData")
    if any(as_text(thought.get(field)) for field in hidden):
        return "[encrypted reasoning]"
    if any(field in thought for field in _THOUGHT_FIELDS):
        return ""
    return dump_text(thought)


def file_note(part: Fields) -> str | None:
    """``[image]`` or ``[file report.pdf]`` for a part that is no text; None for any other part."""
    kind = kind_of(part) or (name_in(part, "kind") or "")
    inner = next((fields_of(part[field]) for field in _SOURCES if field in part), None)
    if kind not in _FILE_KINDS and (kind or (inner is None and not _is_a2a_file(part))):
        return None
    holders = (part, inner or part)
    for fields in (_FILE_NAMES, _MEDIA_TYPES if kind in ("", "binary") else ()):
        for holder in holders:
            if name := name_in(holder, *fields):
                return f"[{kind or 'file'} {name}]"
    return f"[{kind or 'file'}]"


def _is_a2a_file(part: Fields) -> bool:
    """Tell a file of A2A 1.0, which is its address or its bytes beside the media type."""
    return "mediaType" in part and any(isinstance(part.get(name), str) for name in ("url", "raw"))


def _text_of_kind(part: Fields, kind: object) -> str | None:
    """Return the text of a part whose kind says where it is; None for other kinds."""
    match kind:
        case "web_search_result":
            return texts_in(part, "title", "url")
        case "tool_reference" | "search_result" if name := name_in(part, "tool_name", "title"):
            return f"[{name}]"
        case "source-url" | "source-document":
            return f"[source {name_in(part, 'title', 'url', 'sourceId') or ''}]"
        case "data" if "data" in part:
            return dump_text(part["data"])
        case "text" | "input_text" | "output_text":
            return content_text(part) if "content" in part or "value" in part else ""
        case _:
            return None


def known_part_text(part: Fields) -> str | None:
    """Return the text of a part, or a note such as ``[image]``; None for a part of another type."""
    text = part.get("text")
    if isinstance(text, Mapping) and isinstance(text.get("value"), str):
        return str(text["value"])  # as OpenAI's threads have it
    if any(isinstance(part.get(field), str) for field in ("text", "refusal", "transcript")):
        return as_text(part.get("transcript")) or content_text(part)
    if note := file_note(part):
        return note
    for field in _TEXTS_IN_BEDROCK:
        if isinstance(inner := part.get(field), Mapping):
            return message_text(first_in(inner, "content", "text"))
    kind = kind_of(part) or part.get("kind")
    if (of_kind := _text_of_kind(part, kind)) is not None:
        return of_kind
    if len(part) == 1 and (medium := next(iter(part))) in _FILE_KINDS:
        held = fields_of(part[medium])  # as Bedrock writes it
        return f"[{medium} {name_in(held, 'name', 'format') or ''}".rstrip() + "]"
    for field in ("json", "data"):
        if part.keys() <= {field, "mediaType", "metadata"} and field in part:
            return dump_text(part[field])
    if any(isinstance(part.get(field), str) for field in ("content", "thinking", "value")):
        return content_text(part)
    return f"[{kind}]" if isinstance(kind, str) and ("image" in kind or "audio" in kind) else None


def _part_text(part: object) -> str:
    text = known_part_text(part) if isinstance(part, Mapping) else None
    return content_text(part) if text is None else text


def _only_value(output: Fields) -> str:
    """Return the text in ``{"result": text}``; any other object as JSON."""
    if len(output) == 1:
        (name,) = output
        value = output[name]
        if name in ("result", "output", "content", "response", "error") and isinstance(value, str):
            return value
    return dump_text(output)
