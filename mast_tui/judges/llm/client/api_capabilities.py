"""How a server wants to be asked: the form of answers, and the names that parameters go by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from mast_tui.judges.llm.client.hosts import AZURE_HOSTS
from mast_tui.judges.llm.request import Form, Parameters

Limit = Literal["max_completion_tokens", "max_tokens"]
Part = Literal["form", "limit", "temperature", "system"]
"""What of a request a server can refuse without refusing the question."""

ANSWER_NAME: Final = "judgement"

_NEXT_FORM: Final[Mapping[Form, Form]] = {
    "json_schema": "json_object_schema",
    "json_object_schema": "json_object",
    "json_object": "text",
}
_NEWER_NAMES: Final = ("api.openai.com", *AZURE_HOSTS)
"""Where the newer name of the answer's limit is known; elsewhere some pass over it in silence."""

_FORM_WORDS: Final[Mapping[Form, str]] = {
    "json_object_schema": "takes no JSON schema in the usual place; it is given another way",
    "json_object": "takes no JSON schema; its answers are checked without one",
    "text": "takes no wish for JSON; its answers are read as plain text",
}


@dataclass(frozen=True, slots=True)
class RequestForm:
    """One way to ask: the form, the limit's name (None: none is sent), a temperature or none.

    Without ``system`` its words stand before the user's, in one message.
    """

    form: Form = "json_schema"
    limit: Limit | None = "max_tokens"
    temperature: bool = True
    system: bool = True


class ApiCapabilities:
    """What one server takes, learned from what it refuses, for all tasks that ask it.

    ``on_remark`` is told, once each, what was given up.
    """

    def __init__(self, parameters: Parameters, host: str, on_remark: Callable[[str], None]) -> None:
        self._parameters = parameters
        self._host = host
        name = host.partition(":")[0]
        self._first_limit: Limit = (
            "max_completion_tokens" if name.endswith(_NEWER_NAMES) else "max_tokens"
        )
        self._on_remark = on_remark
        self.request_form = RequestForm(
            limit=self._first_limit, temperature=parameters.temperature is not None
        )
        self._longest_answer: int | None = None

    def body(
        self,
        request_form: RequestForm,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, object],
        answer_tokens: int,
    ) -> dict[str, object]:
        """What is sent, as a JSON object."""
        if not request_form.system:
            messages = _in_one(messages)
        body: dict[str, object] = {"model": self._parameters.model, "messages": messages}
        if request_form.limit is not None:
            most = self._longest_answer
            body[request_form.limit] = answer_tokens if most is None else min(answer_tokens, most)
        if request_form.temperature:
            body["temperature"] = self._parameters.temperature
        if request_form.form == "json_schema":
            named = {"name": ANSWER_NAME, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif request_form.form == "json_object_schema":
            body["response_format"] = {"type": "json_object", "schema": schema}
        elif request_form.form == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body | dict(self._parameters.extra_body)

    def refused(self, request_form: RequestForm, part: Part) -> bool:
        """A part of a request in that manner was refused; whether there is another manner.

        Where another task has learned the same meanwhile nothing changes.
        """
        now = self.request_form
        if getattr(request_form, part) != getattr(now, part):
            return True
        other = self._other(now, part)
        if other is None:
            return False
        self.request_form, remark = other
        if remark:
            self._on_remark(f"{self._host} {remark}")
        return True

    def answer_was_too_long(self, sent: object, most: int | None) -> bool:
        """Take in that the server gives no answers so long.

        Args:
            sent: The limit in the request that was refused.
            most: The limit that the server names; None where it names none.

        Returns:
            Whether a request with that limit may be sent.
        """
        if most is None or not isinstance(sent, int) or sent <= most:
            return False
        if self._longest_answer is None or most < self._longest_answer:
            self._longest_answer = most
            self._on_remark(f"{self._host} gives answers of at most {most:,} tokens")
        return True

    def _other(self, now: RequestForm, part: Part) -> tuple[RequestForm, str] | None:
        """What to try in the place of a refused part, and what is given up by that, in words."""
        if part == "form":
            form = _NEXT_FORM.get(now.form)
            return None if form is None else (replace(now, form=form), _FORM_WORDS[form])
        if part == "limit" and now.limit == self._first_limit:
            newer = now.limit == "max_completion_tokens"
            return replace(now, limit="max_tokens" if newer else "max_completion_tokens"), ""
        if not getattr(now, part):
            return None
        if part == "limit":
            return replace(now, limit=None), "takes no limit for answers; they may be of any length"
        if part == "system":
            words = "takes no system message; its words go to the user's"
            return replace(now, system=False), words
        return replace(now, temperature=False), "takes no temperature; it is left to the server"


def _in_one(messages: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The messages with the first one's words before those of the second."""
    system, user, *rest = messages
    return [{"role": "user", "content": f"{system['content']}\n\n{user['content']}"}, *rest]
