"""The capabilities of a server: the accepted form of requests, learned from its refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from mast_tui.judges.llm.client.endpoint import AZURE_HOSTS
from mast_tui.judges.llm.request import Form, Parameters

Limit = Literal["max_completion_tokens", "max_tokens"]
Part = Literal["answer_format", "limit", "temperature", "system"]
"""The parts of a request that a server may refuse."""

ANSWER_NAME: Final = "judgement"

_NEXT_FORM: Final[Mapping[Form, tuple[Form, str]]] = {
    "json_schema": (
        "json_object_schema",
        "does not accept a JSON schema in the usual place; it is sent elsewhere",
    ),
    "json_object_schema": (
        "json_object",
        "does not accept a JSON schema; its answers are checked without one",
    ),
    "json_object": (
        "text",
        "does not accept a request for JSON; its answers are read as plain text",
    ),
}
"""The format of answers after one that a server refuses, and a remark."""

_LEFT_OUT: Final[Mapping[Part, tuple[bool | None, str]]] = {
    "limit": (None, "does not accept a limit for answers; they may have any length"),
    "temperature": (False, "does not accept a temperature; the server sets it"),
    "system": (
        False,
        "does not accept a system message; its text is added to the user message",
    ),
}
"""The value of a part that a server refuses, and a remark."""

_NEWER_NAMES: Final = ("api.openai.com", *AZURE_HOSTS)
"""The servers that know the newer name of the token limit. Others may ignore it silently."""


@dataclass(frozen=True, slots=True)
class RequestForm:
    """The form of requests.

    Attributes:
        answer_format: The format of the answer.
        limit: The name of the parameter for the token limit of an answer; None to send no limit.
        temperature: True if the temperature is sent.
        system: True if the instructions are a system message, False if they begin the user's
            message.
    """

    answer_format: Form = "json_schema"
    limit: Limit | None = "max_tokens"
    temperature: bool = True
    system: bool = True


class ApiCapabilities:
    """The form of requests that a server accepts, shared by all tasks."""

    def __init__(self, parameters: Parameters, host: str, on_remark: Callable[[str], None]) -> None:
        """Begin with the form that the host is likely to accept.

        Args:
            parameters: The model and its settings.
            host: The host and port of the server.
            on_remark: Receives a message about each refused part of requests.
        """
        self._parameters = parameters
        self._host = host
        name = host.partition(":")[0]
        self._preferred_limit: Limit = (
            "max_completion_tokens" if name.endswith(_NEWER_NAMES) else "max_tokens"
        )
        self._on_remark = on_remark
        self.request_form = RequestForm(
            limit=self._preferred_limit, temperature=parameters.temperature is not None
        )
        self._longest_answer: int | None = None

    def body(
        self,
        request_form: RequestForm,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, object],
        answer_tokens: int,
    ) -> dict[str, object]:
        """Return the body of a request.

        Args:
            request_form: The form of the request.
            messages: The messages.
            schema: The JSON schema of the answer.
            answer_tokens: The token limit of the answer, unless the server's limit is lower.
        """
        if not request_form.system:
            messages = _join_system_message(messages)
        body: dict[str, object] = {"model": self._parameters.model, "messages": messages}
        if request_form.limit is not None:
            if self._longest_answer is not None:
                answer_tokens = min(answer_tokens, self._longest_answer)
            body[request_form.limit] = answer_tokens  # the value of ``limit`` is a parameter's name
        if request_form.temperature:
            body["temperature"] = self._parameters.temperature
        if request_form.answer_format == "json_schema":
            named_schema = {"name": ANSWER_NAME, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named_schema}
        elif request_form.answer_format == "json_object_schema":
            body["response_format"] = {"type": "json_object", "schema": schema}
        elif request_form.answer_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body | dict(self._parameters.extra_body)

    def change_form(self, request_form: RequestForm, part: Part) -> bool:
        """Change the form of requests after a refusal, unless another task changed it before.

        Args:
            request_form: The form of the refused request.
            part: The refused part.

        Returns:
            True if the request may be sent in another form.
        """
        current = self.request_form
        if getattr(request_form, part) != getattr(current, part):
            return True
        value: Form | Limit | bool | None
        if part == "answer_format":
            value, remark = _NEXT_FORM.get(current.answer_format, (current.answer_format, ""))
        elif part == "limit" and current.limit == self._preferred_limit:
            # Try the other name of the limit before leaving the limit out.
            is_newer = current.limit == "max_completion_tokens"
            value = "max_tokens" if is_newer else "max_completion_tokens"
            remark = ""
        else:
            value, remark = _LEFT_OUT[part]
        if value == getattr(current, part):
            return False
        change: dict[str, Any] = {part: value}
        self.request_form = replace(current, **change)
        if remark:
            self._on_remark(f"{self._host} {remark}")
        return True

    def lower_answer_limit(self, sent_limit: object, allowed_tokens: int | None) -> bool:
        """Lower the token limit of answers to the limit that the server names.

        Args:
            sent_limit: The limit in the refused request.
            allowed_tokens: The limit that the server names, or None.

        Returns:
            True if the request may be sent with a lower limit.
        """
        if (
            allowed_tokens is None
            or not isinstance(sent_limit, int)
            or sent_limit <= allowed_tokens
        ):
            return False
        if self._longest_answer is None or allowed_tokens < self._longest_answer:
            self._longest_answer = allowed_tokens
            self._on_remark(f"{self._host} gives answers of at most {allowed_tokens:,} tokens")
        return True


def _join_system_message(messages: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Join the system message and the user's message into one user message."""
    system, user, *further = messages
    return [{"role": "user", "content": f"{system['content']}\n\n{user['content']}"}, *further]
