"""Values in foreign messages, under the field names of each vendor."""

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
    time_in,
)

_BILLING_MARK: Final = "x-anthropic-billing-header:"
_TIME_FIELDS: Final = names("timestamp created_at createdAt time created startedDateTime")
_USAGE_FIELDS: Final = names("usage usage_metadata usageMetadata models_usage token_usage tokens")
_MODEL_FIELDS: Final = (
    "model",
    "model_name",
    "model_version",
    "modelVersion",
    "model_id",
    "modelId",
)
_METADATA_FIELDS: Final = ("response_metadata", "metadata", "meta")
_INPUT_COUNT_FIELDS: Final = names(
    "input_tokens prompt_tokens request_tokens prompt_token_count promptTokenCount"
    " inputTokens inputTokenCount promptTokens total_input_tokens"
)
_OUTPUT_COUNT_FIELDS: Final = names(
    "output_tokens completion_tokens response_tokens candidates_token_count candidatesTokenCount"
    " outputTokens outputTokenCount completionTokens total_output_tokens response_token_count"
    " responseTokenCount"
)
_CACHE_COUNT_FIELDS: Final = names(
    "cache_read_input_tokens cache_creation_input_tokens cacheReadInputTokens"
    " cacheCreationInputTokens cacheWriteInputTokens"
)
_THOUGHT_COUNT_FIELDS: Final = (
    "thoughts_token_count",
    "thoughtsTokenCount",
    "total_thought_tokens",
)


def lasting_text(text: str) -> str:
    """Return a text without the first line of Claude Code's prompt, which each request changes."""
    return text.partition("\n")[2] if text.startswith(_BILLING_MARK) else text


def start_of(message: Fields) -> float | None:
    """Return the time at which a message was written, in Unix seconds."""
    return time_in(message, *_TIME_FIELDS)


def model_of(message: Fields) -> str | None:
    """Return the model that wrote a message or answered a request."""
    nested_objects = (fields_of(message.get(field)) for field in (*_METADATA_FIELDS, "usage"))
    for fields in (message, *nested_objects):
        if fields and (model := name_in(fields, *_MODEL_FIELDS)):
            return model
    return None


def usage_of(message: Fields) -> Tokens | None:
    """Return the tokens of the model call that made a message or response.

    The input includes cached tokens, and the output includes hidden thoughts.
    """
    nested_objects = (fields_of(message.get(field)) for field in _METADATA_FIELDS)
    for fields in (message, *nested_objects):
        for field in _USAGE_FIELDS if fields else ():
            usage = fields.get(field)
            # None is the usual value, and tested faster than the type ``Mapping``.
            if usage is not None and isinstance(usage, Mapping):
                return _tokens_of_usage(usage)
    return None


def _tokens_of_usage(usage: Fields) -> Tokens | None:
    usage = fields_of(usage.get("tokens")) or usage  # Cohere nests the counts
    return tokens_of(
        _total_count(usage, first_in(usage, *_INPUT_COUNT_FIELDS), _CACHE_COUNT_FIELDS),
        _total_count(usage, first_in(usage, *_OUTPUT_COUNT_FIELDS), _THOUGHT_COUNT_FIELDS),
    )


def _total_count(usage: Fields, base_count: object, added_fields: tuple[str, ...]) -> int | None:
    """Return a count plus the counts in the added fields; None without a base count."""
    count = as_count(base_count)
    if count is None:
        return None
    return count + sum(as_count(usage.get(field)) or 0 for field in added_fields)


def usage_tokens(usage: object, input_fields: str, output_fields: str) -> Tokens | None:
    """Return the tokens of a model call; None if no tokens are counted.

    Args:
        usage: An object with counts.
        input_fields: The fields to add up for the input, separated by spaces.
        output_fields: The fields to add up for the output, separated by spaces.
    """
    fields = fields_of(usage)
    return tokens_of(_sum_of_fields(fields, input_fields), _sum_of_fields(fields, output_fields))


def _sum_of_fields(usage: Fields, field_names: str) -> int | None:
    """Return the sum of the counts in fields, named in a text with spaces; None without counts."""
    counts = [
        count for name in names(field_names) if (count := as_count(usage.get(name))) is not None
    ]
    return sum(counts) if counts else None


_THOUGHT_FIELDS: Final = names(
    "think thinking reasoning reasoning_content reasoning_text text content summary"
)
_FILE_TYPES: Final = name_set("""
    audio binary computer_screenshot document document-url file image image-url image_url
    input_audio input_file input_image media video video-url video_url
""")
_FILE_NAME_FIELDS: Final = ("filename", "file_name", "title", "name", "display_name", "displayName")
_MEDIA_TYPE_FIELDS: Final = ("media_type", "mime_type", "mimeType", "mediaType")
_BEDROCK_TEXT_FIELDS: Final = names("guardContent guard_content citationsContent citations_content")
_FILE_SOURCE_FIELDS: Final = names("file source inline_data inlineData file_data fileData")
_SINGLE_TEXT_FIELDS: Final = names("result output content response error message")


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
    """Return the text of a tool's output without the objects around it."""
    if isinstance(output, Mapping):
        if "stdout" in output:
            return texts_in(output, "stdout", "stderr")
        # The types of Vercel's AI SDK.
        output_type = kind_of(output)
        match output_type:
            case "json" | "error-json" if "value" in output:
                return dump_text(output["value"])
            case "content" if isinstance(output.get("value"), list):
                return message_text(output["value"])
            case "execution-denied":
                return as_text(output.get("reason")) or "[denied]"

        if "output" in output and output.keys() <= {"output", "exitCode"}:
            return dump_text(output["output"])
        if not output_type and "text" not in output:
            return _single_value_text(output)
    return message_text(output)


def thought_text(thought: object) -> str:
    """Return the text of a thought in any vendor's form, or a note if it is encrypted."""
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
    encrypted_fields = ("encrypted_content", "encrypted", "data", "signature", "protectedData")
    if any(as_text(thought.get(field)) for field in encrypted_fields):
        return "[encrypted reasoning]"
    if any(field in thought for field in _THOUGHT_FIELDS):  # all of them are empty
        return ""
    return dump_text(thought)


def file_note(part: Fields) -> str | None:
    """Return ``[image]`` or ``[file report.pdf]`` for a part that is a file."""
    part_type = kind_of(part) or name_in(part, "kind") or ""
    if part_type in ("blob", "uri"):  # OpenTelemetry has the type of the file in ``modality``
        part_type = name_in(part, "modality") or "file"
    source = next((fields_of(part[field]) for field in _FILE_SOURCE_FIELDS if field in part), None)
    if part_type and part_type not in _FILE_TYPES:
        return None
    # A file of A2A 1.0 has a media type, and an address or bytes.
    is_a2a = "mediaType" in part and any(isinstance(part.get(name), str) for name in ("url", "raw"))
    if not part_type and source is None and not is_a2a:
        return None
    # Without a name, the media type says more than these types.
    media_type_fields = _MEDIA_TYPE_FIELDS if part_type in ("", "binary") else ()
    for name_fields in (_FILE_NAME_FIELDS, media_type_fields):
        for fields in (part, source or part):
            if name := name_in(fields, *name_fields):
                return f"[{part_type or 'file'} {name}]"
    return f"[{part_type or 'file'}]"


def _text_by_type(part: Fields, part_type: object) -> str | None:
    """Return the text of a part of a type with fields of its own."""
    match part_type:
        case "web_search_result":
            return texts_in(part, "title", "url")
        case "shell_command_output":
            return texts_in(part, "stdout", "stderr")
        case "tool_reference" | "search_result" if name := name_in(part, "tool_name", "title"):
            return "\n".join(filter(None, (f"[{name}]", message_text(part.get("content")))))
        case "source-url" | "source-document":
            return f"[source {name_in(part, 'title', 'url', 'sourceId') or ''}]"
        case "data" if "data" in part:
            return dump_text(part["data"])
        case "text" | "input_text" | "output_text":
            return content_text(part) if "content" in part or "value" in part else ""
        case _:
            return None


def known_part_text(part: Fields) -> str | None:
    """Return a part's text or a note such as ``[image]``; None for an unknown type."""
    text = part.get("text")
    if isinstance(text, Mapping) and isinstance(text.get("value"), str):
        return str(text["value"])  # as in OpenAI's threads
    if any(isinstance(part.get(field), str) for field in ("text", "refusal", "transcript")):
        return as_text(part.get("transcript")) or content_text(part)

    document = fields_of(part.get("document"))
    if "data" in document and document.keys() <= {"data", "id"}:  # Cohere's results
        return dump_text(document["data"])
    if note := file_note(part):
        source = fields_of(part.get("source"))
        has_text = kind_of(source) in ("text", "content")  # Anthropic's text documents
        document_text = message_text(first_in(source, "data", "content")) if has_text else ""
        return "\n".join(filter(None, (note, document_text)))
    for field in _BEDROCK_TEXT_FIELDS:
        bedrock_part = part.get(field)
        if isinstance(bedrock_part, Mapping):
            return message_text(first_in(bedrock_part, "content", "text"))

    part_type = kind_of(part) or part.get("kind")
    text_by_type = _text_by_type(part, part_type)
    if text_by_type is not None:
        return text_by_type

    if len(part) == 1:
        (file_type,) = part
        if file_type in _FILE_TYPES:  # Bedrock writes the type as the only field
            file_name = name_in(fields_of(part[file_type]), "name", "format") or ""
            return f"[{file_type} {file_name}".rstrip() + "]"
    for field in ("json", "data"):  # Bedrock's and A2A's values
        if part.keys() <= {field, "mediaType", "metadata"} and field in part:
            return dump_text(part[field])
    if any(isinstance(part.get(field), str) for field in ("content", "thinking", "value")):
        return content_text(part)
    is_media = isinstance(part_type, str) and ("image" in part_type or "audio" in part_type)
    return f"[{part_type}]" if is_media else None


def _part_text(part: object) -> str:
    """Return the text of a part; a part of an unknown type may have it anywhere."""
    text = known_part_text(part) if isinstance(part, Mapping) else None
    return content_text(part) if text is None else text


def _single_value_text(output: Fields) -> str:
    """Return the only text of an object such as ``{"result": text}``, or the object as JSON."""
    if len(output) == 1:
        (name,) = output
        value = output[name]
        if name in _SINGLE_TEXT_FIELDS and isinstance(value, str):
            return value
    return dump_text(output)
