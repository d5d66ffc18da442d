"""The judging of one trace by a model: its windows in order, its stored answers, its quotes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, ParamSpec, TypeVar

from mast_tui.counts import counted
from mast_tui.judges.llm.answer.merging import (
    Sighting,
    WindowAnswer,
    decisive_sightings,
    judgement_of,
    merge_sightings,
    partial_judgement,
    verdict_of,
)
from mast_tui.judges.llm.answer.parsing import Answer
from mast_tui.judges.llm.errors import (
    ContextOverflow,
    Deferred,
    RunStops,
    TraceFails,
    Unanswered,
)
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.verification import (
    LEAST_SHOWN,
    SHOWN_TOKENS,
    Verification,
    by_doubt,
    parse_verification,
)
from mast_tui.judges.llm.prompt.windows import LEAST_TOKENS, plan, split
from mast_tui.judges.llm.request import (
    OVERSHOOT,
    Fact,
    ModelClient,
    Parameters,
    Request,
    Window,
    is_context_size,
)
from mast_tui.judges.llm.run.request_loop import AnswerRoom, AnswerStore, RequestLoop
from mast_tui.judges.protocol import Judgement
from mast_tui.judges.quote_anchoring import MOST_SEARCHED, Locator, anchored
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Finding, Match, QuoteCounts, VerdictValue
from mast_tui.redaction.engine import Redaction
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace

MOST_REMARKS: Final = 20
"""The most remarks on one trace."""

SMALL: Final = 20_000
"""The most tokens of a trace whose work is done on the event loop's thread once it is read."""

_REMARK_CHARS: Final = 200

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The result of judging one trace.

    ``quotes`` counts the quotes of the findings by their matches. ``windows`` is the number of
    windows of the last sample. ``remarks`` are short sentences.
    """

    judgement: Judgement
    quotes: QuoteCounts
    windows: int
    remarks: tuple[str, ...]


class _NothingSmaller(Unanswered):
    """The smallest window is longer than the model's context."""


class TraceJudge:
    """The judging of a trace that was read to its end.

    Samples and their windows are judged in order, so that a trace that fails costs little; several
    traces are judged at once. Stored answers are not requested again. The constructor plans the
    windows and prepares the first request; it takes as long as trace_judge the whole trace, and may
    run in any thread.

    Raises:
        OSError: The source of the trace could not be read.
    """

    def __init__(
        self, trace: Trace, prompt: Prompt, parameters: Parameters, redaction: Redaction
    ) -> None:
        self._trace = trace
        self._prompt = prompt
        self._parameters = parameters
        self._samples: list[list[WindowAnswer]] = []
        self._shortened: list[str] = []
        self._problems: list[str] = []
        self._view = RedactedView(trace, redaction, parameters.first_number)
        self._facts = _checked_facts(trace, self._view) if parameters.hints else ()
        self._small = sum(self._view.tokens) <= SMALL
        self._windows = plan(self._view, prompt, parameters)
        self.first: Request | None = None
        """The first request, until it is sent."""
        if self._windows:
            self.first = self._new_request(0, self._windows[0], "")
            _ = self.first.fingerprint  # computed here, not on the event loop

    async def judge(
        self,
        client: ModelClient,
        store: AnswerStore,
        room: AnswerRoom,
        on_part: Callable[[Judgement], object] | None,
    ) -> TraceResult:
        """Request the answers of all samples, and merge them.

        Args:
            client: Sends the requests.
            store: Stores the answers.
            room: The tokens of an answer, shared by the run.
            on_part: Called after each window with the findings so far.

        Raises:
            TraceFails: The trace cannot be judged; the message says why.
            RunStops: No trace can be judged.
        """
        key_of = self._prompt.answer_key
        self._requests: RequestLoop[Answer] = RequestLoop(client, store, room, key_of)
        windows = self._windows
        if not windows:
            raise TraceFails("the trace has no spans; there is nothing to judge")
        try:
            count = await self._all_samples(windows, on_part)
        except _NothingSmaller:
            # Stored refusals led here, but the server may accept longer requests by now.
            if not self._requests.believed:
                raise
            self._requests.forget_limits()
            count = await self._all_samples(windows, on_part)
        sightings = await self._aside(self._sightings)
        if self._parameters.verify and sightings:
            sightings = await self._verified(sightings, client, store, room)
        return await self._aside(self._result, count, sightings)

    async def _all_samples(
        self, windows: tuple[Window, ...], on_part: Callable[[Judgement], object] | None
    ) -> int:
        """Judge all samples, and return the number of windows of the last one."""
        self._locator = Locator(self._view)
        self._samples = []
        self._shortened = []
        self._problems = []
        deferred: Deferred | None = None
        for sample in range(self._parameters.samples):
            try:
                windows = await self._sample(sample, windows, on_part)
            except Deferred as error:  # the other samples need not wait for this one
                deferred = error
        if deferred is not None:
            raise deferred
        return len(windows)

    async def _verified(
        self,
        sightings: Sequence[Sighting],
        client: ModelClient,
        store: AnswerStore,
        room: AnswerRoom,
    ) -> list[Sighting]:
        """Verify the findings, those with altered quotes first; return those that hold."""
        key_of = self._prompt.answer_key
        requests: RequestLoop[Verification] = RequestLoop(client, store, room, key_of)
        verifications: dict[int, Verification | None] = {}
        deferred: Deferred | None = None
        for number, sighting in sorted(enumerate(sightings), key=lambda pair: by_doubt(pair[1])):
            try:
                verifications[number] = await self._verify(sighting, requests)
            except Deferred as error:  # the others need not wait for this one
                deferred = error
        if deferred is not None:
            raise deferred
        confirmed = []
        for number, sighting in enumerate(sightings):
            verification = verifications[number]
            if verification is None:
                self._problems.append(
                    "a finding was not looked at again: the model reads too little"
                )
                confirmed.append(sighting)
            elif verification.verdict is not VerdictValue.ABSENT:
                finding = verification.apply(sighting.finding)
                if self._parameters.samples > 1:  # there it is the share of the samples
                    finding = replace(finding, confidence=sighting.finding.confidence)
                confirmed.append(replace(sighting, finding=finding))
        failed = len(sightings) - len(confirmed)
        if failed:
            self._problems.append(f"{counted(failed, 'finding')} did not hold on a second look")
        return confirmed

    async def _verify(
        self, sighting: Sighting, requests: RequestLoop[Verification]
    ) -> Verification | None:
        """Verify a finding with as many spans around it as fit; None if too few do."""
        shown = SHOWN_TOKENS
        while shown >= LEAST_SHOWN:
            request = await self._aside(
                self._prompt.verification.request, self._view, sighting, self._samples, shown
            )
            try:
                return await requests.answer(
                    request,
                    partial(parse_verification, view=self._view),
                    f"a finding in {_location(sighting)}",
                )
            except ContextOverflow:
                shown //= 2
        return None

    async def _aside(self, work: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Do work on the trace, in a thread unless the trace is small.

        For a small trace the switch of threads delays the event loop more than the work.
        """
        if self._small:
            return work(*args, **keywords)
        return await asyncio.to_thread(work, *args, **keywords)

    async def _sample(
        self,
        sample: int,
        windows: Iterable[Window],
        on_part: Callable[[Judgement], object] | None,
    ) -> tuple[Window, ...]:
        """Judge one sample, and return its windows, which may be smaller than the planned ones."""
        pending = deque(windows)
        answers: list[WindowAnswer] = []
        self._samples.append(answers)
        digest = ""
        while pending:
            window = pending.popleft()
            try:
                answer = await self._answer(sample, window, digest)
            except ContextOverflow as error:
                pending.extendleft(reversed(await self._aside(self._split, window, error)))
                continue
            answers.append(await self._aside(self._window_answer, sample, window, answer))
            digest = answer.digest or digest
            if window.step is not None and answer.findings:
                pending.clear()  # the earliest step counts
            if on_part is not None:
                on_part(await self._aside(self._partial_judgement))
        return tuple(answer.window for answer in answers)

    async def _answer(self, sample: int, window: Window, digest: str) -> Answer:
        request = self.first
        self.first = None
        if request is None:
            request = await self._aside(self._new_request, sample, window, digest)

        read = partial(self._prompt.read, view=self._view, window=window)
        answer = await self._requests.answer(request, read, _about(window))
        self._shortened += request.remarks
        self._problems += answer.remarks
        return answer

    def _new_request(self, sample: int, window: Window, digest: str) -> Request:
        return self._prompt.request(self._view, window, digest, sample=sample, facts=self._facts)

    def _split(self, window: Window, overflow: ContextOverflow) -> tuple[Window, ...]:
        """Split a window that was too long.

        Raises:
            _NothingSmaller: The window cannot become smaller.
            RunStops: The instructions alone are too long for the server.
        """
        instructions = self._prompt.system.tokens
        answer = self._parameters.answer_tokens
        limit = overflow.context_limit
        reads = "" if limit is None else f"the server reads {limit:,} tokens, and "
        sizes = (
            f"{reads}the instructions take about {instructions:,}, an answer up to {answer:,}"
            f" (--answer-tokens), a window up to {self._parameters.window_tokens:,}"
            f" (--window-tokens) and at least {LEAST_TOKENS}; give the model a larger context"
            " (llama.cpp -c, vLLM --max-model-len, Ollama OLLAMA_CONTEXT_LENGTH) or ask about"
            " fewer modes (--taxonomy)"
        )
        if limit is not None and instructions > _most_of_estimate(overflow):
            raise RunStops(f"{overflow}; {sizes}") from overflow
        try:
            return split(window, self._view, self._prompt, self._parameters)
        except TraceFails as error:
            raise _NothingSmaller(f"{error}; at last: {overflow}; {sizes}") from error

    def _sightings(self) -> list[Sighting]:
        if self._parameters.decisive:
            return decisive_sightings(self._samples)
        return merge_sightings(self._samples, self._prompt.modes)

    def _partial_judgement(self) -> Judgement:
        return partial_judgement(self._sightings())

    def _window_answer(self, sample: int, window: Window, answer: Answer) -> WindowAnswer:
        """Return the answer on a window with its findings anchored."""
        shown = (window.first, window.last)
        locate = partial(self._locator.locate, around=shown)
        findings = (
            anchored(finding, self._trace, self._view, locate)
            for finding in answer.findings
            if finding.mode in window.modes
        )
        sightings = (Sighting.of(finding, self._trace, shown, sample) for finding in findings)
        return WindowAnswer(window, answer.verdicts, tuple(sightings))

    def _result(self, windows: int, confirmed: Sequence[Sighting]) -> TraceResult:
        remarks: list[str] = []
        if self._parameters.decisive:
            judgement = partial_judgement(confirmed)  # without verdicts on other modes
        else:
            judgement = judgement_of(self._samples, self._prompt.modes, confirmed)
            remarks += _missing_verdicts(self._samples, self._prompt.taxonomy)
        remarks += _quote_remarks(judgement.findings, self._locator.limited)
        remarks += _form_remarks(self._requests.forms)
        remarks += self._shortened
        remarks += self._problems
        return TraceResult(
            judgement=judgement,
            quotes=QuoteCounts.count(finding.evidence for finding in judgement.findings),
            windows=windows,
            remarks=_first_remarks(remarks),
        )


def _most_of_estimate(overflow: ContextOverflow) -> float:
    """Return the largest estimate of a text that fits into the context of a server.

    A limit that the server names, or that is a common size, is taken as it is. Other counts of
    truncated requests may come from a server that counts fewer tokens.
    """
    limit = overflow.context_limit or 0
    if overflow.truncated_usage is None or is_context_size(limit):
        return limit
    return limit * OVERSHOOT


def _checked_facts(trace: Trace, view: RedactedView) -> tuple[Fact, ...]:
    """Return the findings of the default rules in a trace, redacted."""
    facts = []
    for finding in RulesJudge().judge(trace).findings:
        first, last = (trace.index_of(key) for key in (finding.first or "", finding.last or ""))
        if first is not None and last is not None:
            rationale = view.redacted(view.with_numbers_sent(finding.rationale))
            facts.append(Fact(first, last, finding.mode, rationale))
    return tuple(facts)


def _first_remarks(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return the first remarks, each once and on one line, and the number of further ones."""
    distinct = tuple(dict.fromkeys(one_line(remark, _REMARK_CHARS) for remark in remarks))
    if len(distinct) <= MOST_REMARKS:
        return distinct
    more = len(distinct) - MOST_REMARKS + 1
    return (*distinct[: MOST_REMARKS - 1], f"and {more} remarks more")


def _location(sighting: Sighting) -> str:
    return "the whole run" if sighting.first is None else f"#{sighting.first + 1}"


def _about(window: Window) -> str:
    if window.first == window.last:
        return f"#{window.first + 1}"
    return f"#{window.first + 1} to #{window.last + 1}"


def _quote_remarks(findings: Iterable[Finding], limited: int) -> Iterable[str]:
    """Yield remarks on quotes that were elsewhere, altered or not found."""
    elsewhere = 0
    altered = 0
    missing = 0
    for finding in findings:
        evidence = finding.evidence
        if evidence is not None:
            elsewhere += evidence.named is not None
            altered += evidence.match is Match.ALTERED
            missing += not evidence.placed
    if elsewhere:
        quotes = counted(elsewhere, "quote stands", "quotes stand")
        yield f"{quotes} elsewhere than the model named"
    if altered:
        yield f"{counted(altered, 'quote says', 'quotes say')} something else than the trace"
    if missing:
        yield f"{counted(missing, 'quote was', 'quotes were')} not found in the trace"
    if limited:
        quotes = counted(limited, "quote was", "quotes were")
        yield f"{quotes} looked for in the {MOST_SEARCHED:,} nearest characters only"


def _missing_verdicts(samples: Sequence[list[WindowAnswer]], taxonomy: Taxonomy) -> Iterable[str]:
    """Yield a remark on the modes without a verdict, as a window's answer leaves them out."""
    open_modes = [
        mode.code
        for mode in taxonomy.modes
        if any(verdict_of(sample, mode.slug) is None for sample in samples)
    ]
    if open_modes:
        yield f"not answered everywhere: {', '.join(open_modes)}"


def _form_remarks(forms: Iterable[str]) -> Iterable[str]:
    """Yield a remark for each form of answers but the first choice."""
    for form in sorted(forms):
        if form != "json_schema":
            yield f"the server was asked for answers as {form}"
