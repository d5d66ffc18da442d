"""Runs of Google's kits and APIs: ADK evaluations, interactions, live sessions, AI Studio."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Outcome, Role, SpanKind, TraceMeta
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.chat.values import message_text
from mast_tui.traces.readers.exports.engine import ExportedRun, ExportFormat, Messages
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    kind_of,
    located_items,
    located_objects,
    mostly,
    name_set,
    names,
    snake_fields,
    text_in,
    texts_in,
    without,
)
from mast_tui.traces.readers.run_facts import AnswerKeyDraft, task_id_of

_OUTCOME_BY_EVAL_STATUS: Final = {
    "1": Outcome.SUCCEEDED,
    "2": Outcome.FAILED,
    "passed": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
}
_AFTER_UNDERSCORE: Final = re.compile(r"_([a-z])")


def _adk_eval_runs(document: object) -> Iterable[ExportedRun]:
    """Return the conversations in an evaluation set of Google's ADK, or in its results."""
    eval_set = snake_fields(document)
    for name in ("eval_cases", "eval_case_results"):
        is_in_snake_case = name in fields_of(document)
        for number, value in enumerate(items_of(eval_set.get(name))):
            case = snake_fields(value)
            case_pointer = f"/{name}/{number}"
            messages = list(_eval_case_messages(case))
            if not is_in_snake_case:  # A pointer has the names that are in the file.
                case_pointer = in_camel_case(case_pointer)
                messages = [(in_camel_case(pointer), message) for pointer, message in messages]
            # A case with only the user's questions is no run.
            if any(fields_of(message).get("role") != "user" for _pointer, message in messages):
                meta = _facts_of_eval_case(case, eval_set.get("eval_set_id"))
                yield ExportedRun(value, messages, case_pointer, meta=meta)


def in_camel_case(pointer: str) -> str:
    """Return a JSON pointer with its fields in camel case, except the name of an agent."""
    fields, separator, agent = pointer.partition("/agent_details/")
    return _AFTER_UNDERSCORE.sub(lambda letter: letter[1].upper(), fields + separator) + agent


def _eval_case_messages(case: Fields) -> Messages:
    """Yield the messages of a case, from the events of the session or from the invocations.

    An agent's instructions come before its first invocation, and again when they change.
    """
    events = items_of(snake_fields(case.get("session_details")).get("events"))
    yield from located_items(case.get("context_messages"), "/context_messages")

    shown_instructions: dict[str, object] = {}
    for pointer, invocation in _eval_invocations(case):
        app = snake_fields(invocation.get("app_details"))
        for agent, details in fields_of(app.get("agent_details")).items():
            instructions = as_text(fields_of(details).get("instructions"))
            if instructions and shown_instructions.get(agent) != instructions:
                shown_instructions[agent] = instructions
                prompt = {"role": "system", "name": agent, "content": instructions}
                yield f"{pointer}/app_details/agent_details/{agent}", prompt
        if not events:
            yield from _eval_invocation_messages(invocation, pointer)

    yield from located_items(events, "/session_details/events")


def _eval_invocations(case: Fields) -> Iterable[tuple[str, Fields]]:
    """Yield the actual invocations of a case, without the expected ones, and their pointers."""
    results = items_of(case.get("eval_metric_result_per_invocation"))
    for number, result in enumerate(map(snake_fields, results)):
        location = f"/eval_metric_result_per_invocation/{number}/actual_invocation"
        yield location, snake_fields(result.get("actual_invocation"))
    # Beside an ``actual_conversation``, the ``conversation`` is the expected one.
    name = "actual_conversation" if case.get("actual_conversation") else "conversation"
    for number, value in enumerate(items_of(case.get(name))):
        yield f"/{name}/{number}", snake_fields(value)


def _eval_invocation_messages(invocation: Fields, pointer: str) -> Messages:
    """Yield the user's question, the steps of the agents, and the answer of the last agent."""
    time = invocation.get("creation_timestamp") or None
    question = fields_of(invocation.get("user_content"))
    yield f"{pointer}/user_content", {**question, "role": "user", "timestamp": time}

    steps = snake_fields(invocation.get("intermediate_data"))
    last_agent: object = None
    for number, event in enumerate(items_of(steps.get("invocation_events"))):
        last_agent = fields_of(event).get("author")
        yield f"{pointer}/intermediate_data/invocation_events/{number}", event
    list_pointer = f"{pointer}/intermediate_data/intermediate_responses"
    for location, response in located_items(steps.get("intermediate_responses"), list_pointer):
        if isinstance(response, list) and len(response) == 2:
            author, parts = response
            yield location, {"role": "model", "name": author, "parts": parts}
        else:
            yield location, response
    for location, item in _eval_call_items(invocation):
        yield f"{pointer}{location}", item

    answer = fields_of(invocation.get("final_response"))
    if answer:
        yield f"{pointer}/final_response", {**answer, "role": "model", "name": last_agent}


def _eval_call_items(invocation: Fields) -> Messages:
    """Yield the calls of an invocation, each before its result; then all other results."""
    steps = snake_fields(invocation.get("intermediate_data"))
    open_results = dict(enumerate(map(fields_of, items_of(steps.get("tool_responses")))))
    list_pointer = "/intermediate_data/tool_uses"
    calls = items_of(steps.get("tool_uses"))
    if not calls:
        list_pointer = "/tools"
        calls = items_of(invocation.get("tools"))
    for location, call in located_objects(calls, list_pointer):
        facts = {"call_id": call.get("id"), "name": call.get("name")}
        arguments = first_in(call, "args", "arguments")
        yield location, {"type": "function_call", **facts, "arguments": arguments}
        if "result" in call:
            output = {"type": "function_call_output", **facts, "output": call["result"]}
            yield f"{location}/result", output
        identity = (call.get("id"), call.get("name"))
        for index, result in open_results.items():
            if (result.get("id"), result.get("name")) == identity:
                yield _eval_result_item(index, open_results.pop(index))
                break
    for index, result in open_results.items():
        yield _eval_result_item(index, result)


def _eval_result_item(index: int, result: Fields) -> tuple[str, object]:
    """Return the pointer and the message of the result with this index in an invocation."""
    output = result.get("response")
    has_only_error = fields_of(output).keys() == {"error"}
    return f"/intermediate_data/tool_responses/{index}", {
        "type": "function_call_output",
        "call_id": result.get("id"),
        "name": result.get("name"),
        "output": output,
        "is_error": True if has_only_error else None,
    }


def _facts_of_eval_case(case: Fields, eval_set_id: object) -> TraceMeta:
    """Return the facts of a case, with expectations and scores in the answer key."""
    draft = AnswerKeyDraft()
    for result in map(snake_fields, items_of(case.get("eval_metric_result_per_invocation"))):
        expected = _eval_invocation_messages(snake_fields(result.get("expected_invocation")), "")
        for _pointer, value in expected:
            for piece in turn_of(fields_of(value)).pieces:
                if piece.kind is SpanKind.TOOL_CALL:
                    draft.add("expected_actions", piece.name or "call", piece.text)
                elif piece.role is Role.AGENT:
                    draft.add("reference", "answer", piece.text)
    for metric in map(snake_fields, items_of(case.get("overall_eval_metric_results"))):
        name = text_in(metric, "metric_name") or "score"
        details = snake_fields(metric.get("details"))
        draft.add("scores", name, metric.get("score"))
        draft.add("explanations", name, first_in(details, "reason", "rubric_scores"))

    session = snake_fields(first_in(case, "session_input", "session_details"))
    status = dump_text(case.get("final_eval_status")).lower()
    return TraceMeta(
        system=text_in(session, "app_name"),
        benchmark=as_text(eval_set_id),
        task_id=task_id_of(case.get("eval_id")),
        outcome=_OUTCOME_BY_EVAL_STATUS.get(status, Outcome.UNKNOWN),
        answer_key=draft.key(),
    )


ADK_EVALS: Final = ExportFormat(
    name="adk-evals", system="Google ADK", marks=(b"eval", b"nvocation"), runs=_adk_eval_runs
)


_ROLE_BY_STEP_TYPE: Final = {"user_input": "user", "model_output": "assistant"}
_GOOD_STATUSES: Final = name_set("completed in_progress requires_action queued")


class Interaction(NamedTuple):
    """An interaction with Gemini.

    Attributes:
        pointer: The JSON pointer to its steps.
        request_pointer: The JSON pointer to its input.
        fields: Its fields, with those of its request.
    """

    pointer: str
    request_pointer: str
    fields: Fields


def _interaction_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the runs in a document with one or several interactions with Gemini.

    An interaction belongs to the run of its previous interaction.
    """
    interactions: dict[str, Interaction] = {}
    for number, interaction in enumerate(_interactions(document)):
        # A log of requests may have an interaction several times; the last one is complete.
        interactions[text_in(interaction.fields, "id") or str(number)] = interaction

    run_by_id: dict[str, list[Interaction]] = {}
    runs: list[list[Interaction]] = []
    for interaction_id, interaction in interactions.items():
        run = run_by_id.get(text_in(interaction.fields, "previous_interaction_id") or "")
        if run is None:
            run = []
            runs.append(run)
        run.append(interaction)
        run_by_id[interaction_id] = run

    for run in runs:
        messages: list[tuple[str, object]] = []
        last_instruction: str | None = None
        for interaction in run:
            instruction = text_in(interaction.fields, "system_instruction")
            if instruction is not None and instruction != last_instruction:
                last_instruction = instruction
                location = f"{interaction.request_pointer}/system_instruction"
                messages.append((location, {"role": "system", "content": instruction}))
            messages += _interaction_messages(interaction)
        meta = TraceMeta(model=text_in(run[0].fields, "model", "agent"))
        yield ExportedRun([interaction.fields for interaction in run], messages, meta=meta)


def _interactions(document: object) -> Iterable[Interaction]:
    """Yield the interactions of a document, each alone or as the response to a request."""
    root = fields_of(document).get("interactions", document)
    prefix = "" if root is document else "/interactions"
    is_list = isinstance(root, list)
    for pointer, record in (
        located_objects(root, prefix) if is_list else [(prefix, fields_of(root))]
    ):
        request = fields_of(record.get("request"))
        request_pointer = f"{pointer}/request" if request else pointer
        if _is_interaction(record):
            yield Interaction(pointer, request_pointer, {**request, **record})
        elif _is_interaction(response := fields_of(record.get("response"))):
            yield Interaction(f"{pointer}/response", request_pointer, {**request, **response})


def _is_interaction(record: Fields) -> bool:
    """Return whether a JSON object is an interaction; its first version has no ``steps``."""
    is_named = record.get("object") == "interaction"
    is_counted = "total_input_tokens" in fields_of(record.get("usage"))
    return (is_named or is_counted) and isinstance(first_in(record, "steps", "outputs"), list)


def _interaction_messages(interaction: Interaction) -> Messages:
    """Yield the input of an interaction, unless its steps repeat it, then its steps."""
    fields = interaction.fields
    steps_field = "steps" if "steps" in fields else "outputs"
    steps = items_of(fields.get(steps_field))
    has_input_as_step = any(kind_of(step) == "user_input" for step in steps)
    if not has_input_as_step:
        value = fields.get("input")
        location = f"{interaction.request_pointer}/input"
        for part_location, part in located_items(value, location):
            yield part_location, _step_message(part, "user")
        if value and not isinstance(value, list):
            yield location, _step_message(value, "user")

    for number, step in enumerate(steps):
        location = f"{interaction.pointer}/{steps_field}/{number}"
        message = _step_message(step, "assistant")
        if number == 0:
            message["created"] = fields.get("created")
        if number == len(steps) - 1:
            message["usage"] = fields.get("usage")
        yield location, message
        if error := fields_of(step).get("error"):
            yield f"{location}/error", _error_message(error)

    status = text_in(fields, "status")
    errors = items_of(fields.get("errors"))
    if errors or (status is not None and status not in _GOOD_STATUSES):
        yield f"{interaction.pointer}/status", _error_message(errors or status)


def _step_message(step: object, role: str) -> dict[str, object]:
    """Return a step, or a part of a content, as a message, a call or a result."""
    fields = dict(fields_of(step))
    kind = kind_of(step)
    if kind == "thought":
        return {**fields, "type": "reasoning", "encrypted_content": fields.get("signature")}
    if kind in _ROLE_BY_STEP_TYPE:
        return {"role": _ROLE_BY_STEP_TYPE[kind], "content": fields.get("content")}
    if kind.endswith("_call"):
        name = kind.removesuffix("_call")
        return {"name": name, **fields, "type": "function_call", "call_id": fields.get("id")}
    if kind.endswith("_result"):
        output = fields.get("result")
        return {**fields, "type": "function_call_output", "output": output}
    if "role" in fields:
        return fields
    return {"role": role, "content": [step] if fields else step}


def _error_message(error: object) -> dict[str, object]:
    text = texts_in(fields_of(error), "code", "message", between=": ") or dump_text(error)
    return {"role": "assistant", "content": [{"type": "error", "error": text}]}


GEMINI_INTERACTIONS: Final = ExportFormat(
    name="gemini-interactions", marks=(b'"status"', b'"type"'), runs=_interaction_runs
)


_LIVE_FIELDS: Final = names(
    "setup client_content realtime_input tool_response server_content tool_call"
)
_SOUND_FIELDS: Final = frozenset({"inline_data", "thought", "thought_signature"})


def _live_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the run in a log of the messages of a live session with Gemini."""
    records = list(map(_live_record, items_of(document)))
    are_live = mostly(
        lambda record: any(
            isinstance(fields_of(record).get(name), Mapping) for name in _LIVE_FIELDS
        ),
        records,
    )
    messages = list(_live_messages(records)) if are_live else ()
    if messages:
        setups = (fields_of(record.get("setup")) for record in records)
        model = next((name for setup in setups if (name := text_in(setup, "model"))), None)
        yield ExportedRun(document, messages, meta=TraceMeta(model=model))


def _live_record(value: object) -> Fields:
    """Return the message of a live session in a record of a log, or the record itself."""
    record = snake_fields(value)
    wrapped = first_in(record, "message", "data")
    return snake_fields(wrapped) if isinstance(wrapped, Mapping) else record


def _live_messages(records: Sequence[Fields]) -> Messages:
    """Yield the messages of a live session, without sound.

    The streamed texts of a speaker are joined until the turn ends or another kind of message
    follows.
    """
    spoken_texts = _SpokenTexts()
    for pointer, record in located_objects(records, ""):
        content = snake_fields(record.get("server_content"))
        for field, role in (("input_transcription", "user"), ("output_transcription", "model")):
            spoken_texts.add(pointer, role, fields_of(content.get(field)))
        other_parts: list[object] = []
        for part in items_of(fields_of(content.get("model_turn")).get("parts")):
            fields = {name: value for name, value in snake_fields(part).items() if value}
            is_text = spoken_texts.add(pointer, "model", fields)
            is_sound = fields.keys() <= _SOUND_FIELDS
            if not is_text and not is_sound:
                other_parts.append(part)
        items = list(_live_items(record, pointer))

        turn_ends = any(
            content.get(end) is True
            for end in ("turn_complete", "generation_complete", "interrupted")
        )
        if other_parts or items or turn_ends:
            yield from spoken_texts.pop_messages(record.get("usage_metadata"))
        if other_parts:
            yield pointer, {"role": "model", "parts": other_parts}
        yield from items
    yield from spoken_texts.pop_messages(None)


def _live_items(record: Fields, pointer: str) -> Messages:
    setup = snake_fields(record.get("setup"))
    if instruction := fields_of(setup.get("system_instruction")):
        yield f"{pointer}/setup/system_instruction", {**instruction, "role": "system"}
    turns = fields_of(record.get("client_content")).get("turns")
    for location, turn in located_objects(turns, f"{pointer}/client_content/turns"):
        yield location, {"role": "user", **turn}
    if text := text_in(fields_of(record.get("realtime_input")), "text"):
        yield f"{pointer}/realtime_input", {"role": "user", "content": text}
    calls = items_of(snake_fields(record.get("tool_call")).get("function_calls"))
    for location, call in located_objects(calls, f"{pointer}/tool_call/function_calls"):
        yield location, {**call, "type": "function_call", "arguments": call.get("args")}
    results = items_of(snake_fields(record.get("tool_response")).get("function_responses"))
    for location, result in located_items(results, f"{pointer}/tool_response/function_responses"):
        yield location, {"role": "user", "parts": [{"function_response": result}]}


class _SpokenTexts:
    """The texts of a live session since the last message, by speaker."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, bool], tuple[str, list[str]]] = {}
        """By role, and True for thoughts: the pointer to the first message, and the texts."""

    def add(self, pointer: str, role: str, part: Fields) -> bool:
        """Add the text of a part; return False if it has no text.

        Args:
            pointer: The JSON pointer to the message.
            role: The speaker.
            part: The part, or a transcription.
        """
        text = part.get("text")
        if not isinstance(text, str):
            return False
        is_thought = part.get("thought") is True
        _first_pointer, texts = self._texts.setdefault((role, is_thought), (pointer, []))
        texts.append(text)
        return True

    def pop_messages(self, usage: object) -> Messages:
        """Yield a message for each speaker, the last with the tokens; remove the texts."""
        texts_by_speaker = list(self._texts.items())
        self._texts.clear()
        for number, ((role, is_thought), (pointer, texts)) in enumerate(texts_by_speaker, start=1):
            part = {"text": "".join(texts), "thought": is_thought}
            message = {"role": role, "parts": [part]}
            location = f"{pointer}/{'thought' if is_thought else role}"
            yield location, {**message, "usage": usage if number == len(texts_by_speaker) else None}


GEMINI_LIVE: Final = ExportFormat(
    name="gemini-live", system="Gemini Live", marks=(b"server",), runs=_live_runs
)


_FILE_CHUNK_FIELDS: Final = name_set("""
    driveDocument driveImage driveAudio driveVideo inlineFile inlineImage inlineAudio youtubeVideo
""")
_CHUNK_FACTS: Final = name_set("""
    role text parts isThought tokenCount createTime finishReason thinkingBudget thoughtSignatures
    isEdited isGeneratedUsingApiKey branchParent branchChildren grounding
""")


def _studio_runs(document: object) -> Iterable[ExportedRun]:
    """Return the run in a prompt that AI Studio saved: a list of chunks, most of them texts."""
    prompt = fields_of(document)
    chunks = [
        fields_of(chunk) for chunk in items_of(fields_of(prompt.get("chunkedPrompt")).get("chunks"))
    ]
    if not chunks:
        return
    messages: list[tuple[str, object]] = []
    instruction = prompt.get("systemInstruction")
    if text := message_text(fields_of(instruction).get("parts", instruction)):
        messages.append(("/systemInstruction", {"role": "system", "content": text}))
    for number, chunk in enumerate(chunks):
        messages.append((f"/chunkedPrompt/chunks/{number}", _studio_message(chunk)))
    user_texts = (text_in(chunk, "text") for chunk in chunks if chunk.get("role") == "user")
    meta = TraceMeta(
        task=next(filter(None, user_texts), None),
        model=text_in(fields_of(prompt.get("runSettings")), "model"),
    )
    yield ExportedRun(document, messages, meta=meta)


def _studio_message(chunk: Fields) -> dict[str, object]:
    """Return a chunk as a message of Gemini, with the tokens that the model wrote."""
    parts: list[object] = []
    text = as_text(chunk.get("text")) or message_text(chunk.get("parts"))
    if text:
        parts.append({"text": text, "thought": chunk.get("isThought") is True})
    parts += [
        {field: chunk[field]}
        for field in ("executableCode", "codeExecutionResult")
        if field in chunk
    ]
    for field in sorted(_FILE_CHUNK_FIELDS & chunk.keys()):
        facts = fields_of(chunk[field])
        parts.append({"text": f"[{field} {first_in(facts, 'id', 'name', 'mimeType') or ''}]"})
    if error := chunk.get("errorMessage"):
        parts.append({"type": "error", "error": error})
    if not parts and (unknown_fields := without(chunk, _CHUNK_FACTS)):
        parts.append(unknown_fields)
    is_model = chunk.get("role") == "model"
    usage = {"output_tokens": chunk.get("tokenCount")} if is_model else None
    return {
        "role": chunk.get("role"),
        "parts": parts,
        "timestamp": chunk.get("createTime"),
        "usage": usage,
    }


AI_STUDIO: Final = ExportFormat(
    name="ai-studio",
    system="Google AI Studio",
    marks=(b'"chunkedPrompt"', b'"chunks"'),
    runs=_studio_runs,
)
