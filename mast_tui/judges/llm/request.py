"""Requests to a model, their settings, replies and errors.

The message of an error is one sentence for the user.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final, Literal, Protocol, SupportsInt

from msgspec import Meta

from mast_tui.configuration import ANSWER_TOKENS, WINDOW_TOKENS
from mast_tui.errors import MastError
from mast_tui.workspace import Usage


class AskError(MastError):
    """A request without a usable answer."""


class TraceFails(AskError):
    """A request that cannot be answered; the run continues with other traces."""


class Unanswered(TraceFails):
    """A failure of a server to give a usable answer, which may affect other traces too.

    Attributes:
        cause: The reason without details of the trace, so that equal causes can be counted.
    """

    def __init__(self, message: str, cause: str | None = None) -> None:
        super().__init__(message)
        self.cause = message if cause is None else cause


class ContextOverflow(TraceFails):
    """A request that is too long for the model; smaller windows may fit.

    Attributes:
        answer_room: The token limit of an answer, if only the answer was too long.
        context_limit: The tokens of the server's context, if they are known.
        truncated_usage: The usage of a request that the server truncated without an error.
    """

    def __init__(
        self,
        message: str,
        *,
        answer_room: int | None = None,
        context_limit: int | None = None,
        truncated_usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.answer_room = answer_room
        self.context_limit = context_limit
        self.truncated_usage = truncated_usage


class Deferred(AskError):
    """A request that a later command will answer."""


class RunStops(AskError):
    """A failure of all requests: a wrong key, an unknown model, no server."""


class AllowanceSpent(RunStops):
    """An allowance of tokens or money that is used up."""


Finish = Literal["stop", "length", "refusal"]
Way = Literal["", "whole run", "step by step"]
"""The method to find the decisive step of a run; empty if the judge looks for modes."""

MOST_STEPS: Final = 60
"""The most spans of a run that may be judged step by step."""

Form = Literal["json_schema", "json_object_schema", "json_object", "text"]

MOST_TOKENS: Final = 10**9
"""The limit for a plausible count of tokens."""

TokenCount = Annotated[int, Meta(ge=0, lt=MOST_TOKENS)]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The settings that change the answers, except the texts of the prompt.

    Attributes:
        model: The name of the model.
        temperature: The temperature; None for the server's default.
        samples: The number of samples of each trace.
        window_tokens: The token limit of the trace data in one request.
        answer_tokens: The token limit of an answer.
        hints: The name of the rules that find facts for the prompt; empty for none.
        verify: True if a further request verifies each finding.
        artefacts: True if the model sees the final patch and the test results.
        decisive: The method to find the decisive step; empty if the judge looks for modes.
        mode_order: The seed of a random order of the modes; 0 for the taxonomy's own.
        first_number: The number of the first span.
        extra_body: Further fields of each request, such as ``reasoning_effort``.
    """

    model: str
    temperature: float | None = None
    samples: int = 1
    window_tokens: int = WINDOW_TOKENS
    answer_tokens: int = ANSWER_TOKENS
    hints: str = ""
    verify: bool = False
    artefacts: bool = False
    decisive: Way = ""
    mode_order: int = 0
    first_number: int = 1
    extra_body: tuple[tuple[str, object], ...] = ()

    def values(self) -> tuple[tuple[str, str], ...]:
        """Return the settings except the model as names and texts, for the record of a run."""
        values = {
            "samples": str(self.samples),
            "window_tokens": str(self.window_tokens),
            "answer_tokens": str(self.answer_tokens),
            "temperature": None if self.temperature is None else f"{self.temperature:g}",
            "hints": self.hints or None,
            "verify": "each finding" if self.verify else None,
            "artefacts": "patch and tests" if self.artefacts else None,
            "decisive": self.decisive or None,
            "mode_order": str(self.mode_order) if self.mode_order else None,
            "first_number": str(self.first_number) if self.first_number > 1 else None,
            **{name: json.dumps(value) for name, value in self.extra_body},
        }
        return tuple((name, value) for name, value in values.items() if value is not None)


@dataclass(frozen=True, slots=True)
class Window:
    """The spans of one request.

    Attributes:
        first: The index of the first span.
        last: The index of the last span, inclusive.
        final: True for a window at the end of the run.
        modes: The slugs of the modes to judge.
        tokens: The token limit of its data; None for the setting of the judge.
        step: The index of the span in question if the run is judged step by step.
    """

    first: int
    last: int
    final: bool
    modes: tuple[str, ...]
    tokens: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A finding of a rule for the prompt: the indices of its spans, its mode and its reason."""

    first: int
    last: int
    mode: str
    reason: str


@dataclass(frozen=True)
class Request:
    """A request to a model, complete except for its boundary.

    The boundary is a random text that separates the pieces of a message and occurs in none of them.

    Attributes:
        system: The pieces of the first message.
        user: The pieces of the second message.
        schema: The JSON schema of the answer.
        tokens: The estimated tokens of the whole request.
        remarks: Sentences on shortened texts.
        sample: The number of the sample, which distinguishes equal requests.
        about: The id of the trace. Requests on one trace share a boundary, so that servers can
            cache their common beginning.
    """

    system: tuple[str, ...]
    user: tuple[str, ...]
    schema: Mapping[str, object]
    tokens: int
    remarks: tuple[str, ...] = ()
    sample: int = 0
    about: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 (hex) of the sample and the pieces."""
        digest = hashlib.sha256(self.sample.to_bytes(4, "big"))
        for message in (self.system, self.user):
            digest.update(len(message).to_bytes(4, "big"))
            for piece in message:
                encoded = piece.encode("utf-8", "surrogatepass")
                digest.update(len(encoded).to_bytes(8, "big"))
                digest.update(encoded)
        return digest.hexdigest()


OVERSHOOT: Final = 1.6
"""A ratio of estimated to counted tokens that no text reaches; real traces had 0.8 to 1.35."""

_ESTIMATE_ERROR: Final = 0.1
"""The largest relative difference between the estimates of two requests with equal token counts."""

LEAST_CONTEXT: Final = 2_048
"""The tokens of the smallest context in use."""


def differ_clearly(tokens: int, other_tokens: int) -> bool:
    """Check whether the token counts of two requests differ beyond the error of their estimates.

    Args:
        tokens: The estimated tokens of the first request.
        other_tokens: The estimated tokens of the second request.
    """
    return abs(tokens - other_tokens) > _ESTIMATE_ERROR * max(tokens, other_tokens)


def is_context_size(tokens: int) -> bool:
    """Check whether a number of tokens is a usual context size: a power of two."""
    return tokens >= LEAST_CONTEXT and tokens.bit_count() == 1


def was_truncated(counted: int, estimated: int, truncated_estimate: int) -> bool:
    """Check whether a server truncated a request.

    ``counted`` is suspicious because a truncated request has the same count. A usual context size
    confirms the server's limit. Otherwise the two requests must differ clearly in length, because
    similar requests may have equal counts by chance.

    Args:
        counted: The server's token count of both requests.
        estimated: The estimated tokens of the request to check.
        truncated_estimate: The estimated tokens of the truncated request.
    """
    if estimated <= counted:
        return False
    return is_context_size(counted) or differ_clearly(estimated, truncated_estimate)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a server to one request.

    Attributes:
        text: The answer of the model, or its refusal.
        finish: The reason why the answer ended.
        form: The form of the answer.
        tokens_in: The tokens of the request.
        tokens_out: The tokens of the answer.
        counted: True if the server counted the tokens; False if they are estimates.
        tokens_cached: The part of ``tokens_in`` that was cached from an earlier request.
        tokens_thought: The part of ``tokens_out`` that is thinking.
        kept: True for an answer stored in the workspace.
    """

    text: str
    finish: Finish
    form: Form
    tokens_in: TokenCount
    tokens_out: TokenCount
    counted: bool = True
    tokens_cached: TokenCount = 0
    tokens_thought: TokenCount = 0
    kept: bool = False

    @property
    def usage(self) -> Usage:
        """The usage of the request."""
        return Usage(1, self.tokens_in, self.tokens_out, self.tokens_cached)


@dataclass(frozen=True, slots=True)
class Correction:
    """An unusable answer and its problem, for a second request."""

    answer: str
    problem: str


class ModelClient(Protocol):
    """A client that sends requests; many tasks of one event loop may share it."""

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Send a request.

        Args:
            request: The request.
            answer_tokens: The token limit of the answer. It is read when the request is sent,
                because other answers may change it before.
            correction: The previous unusable answer and its problem, if there is one.

        Raises:
            ContextOverflow: The request is too long for the model.
            TraceFails: This request got no answer; other requests may get one.
            RunStops: No request will get an answer, or the allowance is spent.
        """
        ...

    def record_problem(self, problem: str | None) -> None:
        """Record the problem of an answer, None for a usable one; clients may ignore it."""
        return
