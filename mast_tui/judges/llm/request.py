"""What is asked of a model, and what comes back: plain values that all of this package share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, Protocol, SupportsInt, get_args

from mast_tui.configuration import ANSWER_TOKENS, WINDOW_TOKENS
from mast_tui.workspace import Usage

Finish = Literal["stop", "length", "refusal"]
Way = Literal["", "whole run", "step by step"]
"""How the decisive step of a run is asked for; empty where it is not."""
MOST_STEPS: Final = 60
"""A run of more spans is not asked about step by step."""

Form = Literal["json_schema", "json_object_schema", "json_object", "text"]

MOST_TOKENS: Final = 10**9
"""No request or answer took so many; a server that says so has not counted."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What shapes the answers beside the prompt's words.

    ``window_tokens`` is the most that the data of one request may take, ``answer_tokens`` the
    most that its answer may, both in tokens. ``samples`` is how often each trace is asked about.
    ``temperature`` None leaves it to the server. ``hints`` names the rules whose findings are shown
    as facts, empty for none. ``verify`` puts each finding before the model once more, by itself.
    ``decisive`` asks for the decisive step in the place of all modes, and says how.
    ``mode_order`` is what another order of the modes is drawn from, 0 for the taxonomy's own, and
    ``first_number`` the number of the first span; neither should change what a judge says.
    ``extra_body`` holds what else is sent with each request, by name,
    such as ``reasoning_effort``.
    """

    model: str
    temperature: float | None = None
    samples: int = 1
    window_tokens: int = WINDOW_TOKENS
    answer_tokens: int = ANSWER_TOKENS
    hints: str = ""
    verify: bool = False
    decisive: Way = ""
    mode_order: int = 0
    first_number: int = 1
    extra_body: tuple[tuple[str, object], ...] = ()

    def values(self) -> tuple[tuple[str, str], ...]:
        """By name, as words, for the record of a run; without the model."""
        values = {
            "samples": str(self.samples),
            "window_tokens": str(self.window_tokens),
            "answer_tokens": str(self.answer_tokens),
            "temperature": None if self.temperature is None else f"{self.temperature:g}",
            "hints": self.hints or None,
            "verify": "each finding" if self.verify else None,
            "decisive": self.decisive or None,
            "mode_order": str(self.mode_order) if self.mode_order else None,
            "first_number": str(self.first_number) if self.first_number > 1 else None,
            **{name: json.dumps(value) for name, value in self.extra_body},
        }
        return tuple((name, value) for name, value in values.items() if value is not None)


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of spans that one request shows, ``first`` to ``last`` (indices, both shown).

    ``final`` says that it reaches the real end of the run; ``modes`` are the slugs that are judged
    on it. ``tokens`` is the most that its data may take where that is less than the parameters
    allow, since the model reads less. ``step`` is the one span that is asked about, if it is one.
    """

    first: int
    last: int
    final: bool
    modes: tuple[str, ...]
    tokens: int | None = None
    step: int | None = None

    @property
    def goes_on(self) -> bool:
        """Whether a request follows that shows what stands behind it."""
        return not self.final and self.step is None


@dataclass(frozen=True, slots=True)
class Fact:
    """What a rule has found in a trace, in words that may be sent.

    ``first`` and ``last`` are indices of spans; ``mode`` is the slug that the rule suggests.
    """

    first: int
    last: int
    mode: str
    words: str


@dataclass(frozen=True)
class Request:
    """One question to a model, complete but for its boundary.

    ``system`` and ``user`` are the pieces of the two messages; between two pieces stands the
    boundary, which is drawn anew for each run and trace and stands in no piece. ``schema`` is
    the JSON schema of the answer, ``tokens`` an estimate of all that is sent. ``remarks`` say what
    was shortened. ``sample`` tells apart questions that are asked several times. ``about`` is the
    trace's id: all requests about one trace have one boundary, so that servers need to read what
    they have in common only once.
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
        """The SHA-256 (hex) of what is asked, the same whatever the boundary."""
        digest = hashlib.sha256(self.sample.to_bytes(4, "big"))
        for message in (self.system, self.user):
            digest.update(len(message).to_bytes(4, "big"))
            for piece in message:
                encoded = piece.encode("utf-8", "surrogatepass")
                digest.update(len(encoded).to_bytes(8, "big"))
                digest.update(encoded)
        return digest.hexdigest()


OVERSHOOT: Final = 1.6
"""The estimate of a text's tokens is never so many times what a tokenizer makes of it: on real
traces it was 0.8 to 1.35 times that."""

_APART: Final = 0.1
"""The share by which estimates of two requests differ that cannot have equally many tokens."""

LEAST_CONTEXT: Final = 2_048
"""Tokens; no context in use is smaller."""


def differ_clearly(tokens: int, other_tokens: int) -> bool:
    """Return whether two requests cannot have equally many tokens.

    Args:
        tokens: The estimate of the first request's tokens.
        other_tokens: The estimate of the second request's tokens.

    Returns:
        True if the estimates are further apart than their error.
    """
    return abs(tokens - other_tokens) > _APART * max(tokens, other_tokens)


def is_context_size(tokens: int) -> bool:
    """Return whether a number of tokens is the size of a context: a power of two."""
    return tokens >= LEAST_CONTEXT and tokens.bit_count() == 1


def was_truncated(counted: int, estimated: int, noticed_by: int) -> bool:
    """Return whether a request was truncated, whose count a truncated request has too.

    Args:
        counted: The tokens that the server counted of both.
        estimated: The estimate of the tokens of the request.
        noticed_by: The same of the one that is known to be truncated. Where no context is of that
            size, only clearly longer or shorter requests were truncated too: others may have as
            many tokens by chance.
    """
    if estimated <= counted:
        return False
    return is_context_size(counted) or differ_clearly(estimated, noticed_by)


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer to one request.

    ``text`` is what the model said, or why it refused. Tokens are as the server counted them;
    ``counted`` is False where it did not and they are estimates. Of those in ``tokens_cached`` were
    known to the server from an earlier request, of those out ``tokens_thought`` are in no text.
    ``kept`` says that it came before and stands in the workspace already.
    """

    text: str
    finish: Finish
    form: Form
    tokens_in: int
    tokens_out: int
    counted: bool = True
    tokens_cached: int = 0
    tokens_thought: int = 0
    kept: bool = False

    @property
    def usage(self) -> Usage:
        """What the request took."""
        return Usage(1, self.tokens_in, self.tokens_out, self.tokens_cached)

    @classmethod
    def read(cls, value: object) -> Reply:
        """Read a reply that was written to a file as a JSON object of its fields.

        Raises:
            ValueError: A field is missing, unknown, or has a value that no reply has.
        """
        try:
            reply = cls(**value) if isinstance(value, dict) else None
        except TypeError as error:
            raise ValueError("fields are missing or unknown") from error
        if reply is None or not isinstance(reply.text, str):
            raise ValueError("no reply")
        if reply.finish not in get_args(Finish) or reply.form not in get_args(Form):
            raise ValueError("no such finish or form")
        counts = (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_thought)
        if not all(type(count) is int and 0 <= count < MOST_TOKENS for count in counts):
            raise ValueError("no such number of tokens")
        if type(reply.counted) is not bool or type(reply.kept) is not bool:
            raise ValueError("neither true nor false")
        return reply


@dataclass(frozen=True, slots=True)
class Correction:
    """An answer that could not be used, and why, for the model to do better."""

    answer: str
    problem: str


class ModelClient(Protocol):
    """Sends requests; may be used by many tasks of one event loop at once."""

    async def ask(
        self, request: Request, answer_tokens: SupportsInt, correction: Correction | None = None
    ) -> Reply:
        """Ask the model.

        Args:
            request: What is asked.
            answer_tokens: The most that the answer may take, in tokens; read when the request is
                sent, as other answers may have changed it while the request waited.
            correction: What was wrong with the answer before, if there was one.

        Returns:
            The model's answer.

        Raises:
            ContextOverflow: the request is too long for the model.
            TraceFails: this request got no answer, in words; others may.
            RunStops: no request will get an answer, in words, or the allowance is spent.
        """
        ...

    def note(self, problem: str | None) -> None:
        """Take in that the last answer could be used, or why not; nothing follows from it unless
        somebody says what."""
        return
