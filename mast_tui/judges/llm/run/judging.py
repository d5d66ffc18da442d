"""One trace put before a model: windows in order, answers kept, every quote looked for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, ParamSpec, TypeVar

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
from mast_tui.judges.llm.prompt.redaction import Redaction
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
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace

MOST_REMARKS: Final = 20
"""Of one trace at most so many remarks are kept."""

SMALL: Final = 20_000
"""Of a trace of so many tokens nothing but beginning to read it is done in a thread."""

_REMARK_CHARS: Final = 200

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """What came of one trace.

    ``quotes`` counts the quotes on which the findings rest, by how they were found in the trace.
    ``windows`` is how many one reading of the trace took. ``remarks`` are short, for a person.
    """

    judgement: Judgement
    quotes: QuoteCounts
    windows: int
    remarks: tuple[str, ...]


class _NothingSmaller(Unanswered):
    """The smallest window is still more than the model reads."""


class Reading:
    """A trace, read to its end, on its way through a model.

    The samples are read one after the other, and the windows of each in order: a trace that fails
    has then cost as little as it can, and many traces at once use the pace that a server allows.
    Answers that the ledger has are not asked for again; with all of them the result is the same,
    without a request. Making one takes as long as reading all of the trace does, and may be done
    in any thread: the windows are planned then, and the first question is ready to be sent.

    Raises:
        OSError: the trace's source could not be read.
    """

    def __init__(
        self, trace: Trace, prompt: Prompt, parameters: Parameters, redaction: Redaction
    ) -> None:
        self._trace = trace
        self._prompt = prompt
        self._parameters = parameters
        self._samples: list[list[WindowAnswer]] = []
        self._shortened: list[str] = []
        self._odd: list[str] = []
        self._view = RedactedView(trace, redaction, parameters.first_number)
        self._facts = _checked_facts(trace, self._view) if parameters.hints else ()
        self._small = sum(self._view.tokens) <= SMALL
        self._windows = plan(self._view, prompt, parameters)
        self.first: Request | None = None
        """The first question, until it is asked."""
        if self._windows:
            self.first = self._new_request(0, self._windows[0], "")
            _ = self.first.fingerprint  # so that it is at hand when the question is asked

    async def over(
        self,
        asks: ModelClient,
        ledger: AnswerStore,
        room: AnswerRoom,
        on_part: Callable[[Judgement], object] | None,
    ) -> TraceResult:
        """Ask about all samples, and say what they say together.

        Args:
            asks: Sends the requests.
            ledger: Keeps the answers.
            room: What an answer may take, as the run has learned it.
            on_part: Told after each window what was found by then.

        Raises:
            TraceFails: The trace cannot be judged, in words.
            RunStops: No trace can.
        """
        key_of = self._prompt.answer_key
        self._requests: RequestLoop[Answer] = RequestLoop(asks, ledger, room, key_of)
        windows = self._windows
        if not windows:
            raise TraceFails("the trace has no spans; there is nothing to judge")
        try:
            count = await self._all_samples(windows, on_part)
        except _NothingSmaller:
            # The notes of earlier runs led here, but the server may read more by now.
            if not self._requests.believed:
                raise
            self._requests.forget_limits()
            count = await self._all_samples(windows, on_part)
        found = await self._aside(self._found)
        if self._parameters.verify and found:
            found = await self._verified(found, asks, ledger, room)
        return await self._aside(self._result, count, found)

    async def _all_samples(
        self, windows: tuple[Window, ...], on_part: Callable[[Judgement], object] | None
    ) -> int:
        """Every sample, and how many windows the last one took."""
        self._locator = Locator(self._view)
        self._samples = []
        self._shortened, self._odd = [], []
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
        self, found: Sequence[Sighting], asks: ModelClient, ledger: AnswerStore, room: AnswerRoom
    ) -> list[Sighting]:
        """Have every finding looked at once more, those with altered quotes first; what holds."""
        key_of = self._prompt.answer_key
        requests: RequestLoop[Verification] = RequestLoop(asks, ledger, room, key_of)
        told: dict[int, Verification | None] = {}
        deferred: Deferred | None = None
        for place in sorted(range(len(found)), key=lambda place: by_doubt(found[place])):
            try:
                told[place] = await self._looked_at(found[place], requests)
            except Deferred as error:  # the others need not wait for this one
                deferred = error
        if deferred is not None:
            raise deferred
        holds = []
        for place, seen in enumerate(found):
            again = told[place]
            if again is None:
                self._odd.append("a finding was not looked at again: the model reads too little")
                holds.append(seen)
            elif again.verdict is not VerdictValue.ABSENT:
                finding = again.apply(seen.finding)
                if self._parameters.samples > 1:  # there it is the share of the samples
                    finding = replace(finding, confidence=seen.finding.confidence)
                holds.append(replace(seen, finding=finding))
        failed = len(found) - len(holds)
        if failed:
            self._odd.append(
                f"{_count(failed, 'finding', 'findings')} did not hold on a second look"
            )
        return holds

    async def _looked_at(
        self, seen: Sighting, requests: RequestLoop[Verification]
    ) -> Verification | None:
        """A second look at one finding, with as much around it as the model reads; or None."""
        shown = SHOWN_TOKENS
        while shown >= LEAST_SHOWN:
            request = await self._aside(
                self._prompt.verification.request, self._view, seen, self._samples, shown
            )
            try:
                return await requests.answer(
                    request,
                    partial(parse_verification, view=self._view),
                    f"a finding in {_at(seen)}",
                )
            except ContextOverflow:
                shown //= 2
        return None

    async def _aside(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """The result of work on the trace, done in a thread unless it takes no time to speak of.

        A thread that computes beside the loop's holds that up more than so little work does.
        """
        if self._small:
            return work(*args, **named)
        return await asyncio.to_thread(work, *args, **named)

    async def _sample(
        self,
        sample: int,
        windows: Iterable[Window],
        on_part: Callable[[Judgement], object] | None,
    ) -> tuple[Window, ...]:
        """Read the trace once; the windows with which that went, as some may have been too big."""
        left = deque(windows)
        parts: list[WindowAnswer] = []
        self._samples.append(parts)
        digest = ""
        while left:
            window = left.popleft()
            try:
                answer = await self._answer(sample, window, digest)
            except ContextOverflow as error:
                left.extendleft(reversed(await self._aside(self._split, window, error)))
                continue
            parts.append(await self._aside(self._part, sample, window, answer))
            digest = answer.digest or digest
            if window.step is not None and answer.findings:
                left.clear()  # the earliest counts
            if on_part is not None:
                on_part(await self._aside(self._so_far))
        return tuple(part.window for part in parts)

    async def _answer(self, sample: int, window: Window, digest: str) -> Answer:
        request = self.first
        self.first = None
        if request is None:
            request = await self._aside(self._new_request, sample, window, digest)

        read = partial(self._prompt.read, view=self._view, window=window)
        answer = await self._requests.answer(request, read, _about(window))
        self._shortened += request.remarks
        self._odd += answer.remarks
        return answer

    def _new_request(self, sample: int, window: Window, digest: str) -> Request:
        return self._prompt.request(self._view, window, digest, sample=sample, facts=self._facts)

    def _split(self, window: Window, overflow: ContextOverflow) -> tuple[Window, ...]:
        """Return smaller windows in the place of one that was too long.

        Raises:
            _NothingSmaller: The window cannot become smaller.
            RunStops: The server does not even read the instructions.
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

    def _found(self) -> list[Sighting]:
        if self._parameters.decisive:
            return decisive_sightings(self._samples)
        return merge_sightings(self._samples, self._prompt.modes)

    def _so_far(self) -> Judgement:
        return partial_judgement(self._found())

    def _part(self, sample: int, window: Window, answer: Answer) -> WindowAnswer:
        """What an answer says of its window, with a place for each quote."""
        shown = (window.first, window.last)
        locate = partial(self._locator.locate, around=shown)
        found = (
            anchored(finding, self._trace, self._view, locate)
            for finding in answer.findings
            if finding.mode in window.modes
        )
        sightings = (Sighting.of(finding, self._trace, shown, sample) for finding in found)
        return WindowAnswer(window, answer.verdicts, tuple(sightings))

    def _result(self, windows: int, holds: Sequence[Sighting]) -> TraceResult:
        if self._parameters.decisive:
            judgement = partial_judgement(holds)  # of other modes it says nothing
        else:
            judgement = judgement_of(self._samples, self._prompt.modes, holds)
        found, taxonomy = judgement.findings, self._prompt.taxonomy
        remarks = (
            *(() if self._parameters.decisive else _of_modes(self._samples, taxonomy)),
            *_of_places(found, self._locator.limited),
            *_of_forms(self._requests.forms),
            *self._shortened,
            *self._odd,
        )
        return TraceResult(
            judgement=judgement,
            quotes=QuoteCounts.of(finding.evidence for finding in found),
            windows=windows,
            remarks=_told(remarks),
        )


def _most_of_estimate(overflow: ContextOverflow) -> float:
    """Return the largest estimate of a text that a server may read whole.

    A limit that the server names, or that contexts have, is taken as it is. Other counts of cut
    requests may come from a server that counts little.
    """
    limit = overflow.context_limit or 0
    if overflow.truncated_usage is None or is_context_size(limit):
        return limit
    return limit * OVERSHOOT


def _checked_facts(trace: Trace, view: RedactedView) -> tuple[Fact, ...]:
    """What the rules that run by default find in a trace, as it may be sent."""
    facts = []
    for finding in RulesJudge().judge(trace).findings:
        first, last = (trace.index_of(key) for key in (finding.first or "", finding.last or ""))
        if first is not None and last is not None:
            words = view.redacted(view.with_numbers_sent(finding.rationale))
            facts.append(Fact(first, last, finding.mode, words))
    return tuple(facts)


def _told(remarks: Iterable[str]) -> tuple[str, ...]:
    """The first remarks, each once and on one line, and how many more there are."""
    said = tuple(dict.fromkeys(one_line(remark, _REMARK_CHARS) for remark in remarks))
    if len(said) <= MOST_REMARKS:
        return said
    more = len(said) - MOST_REMARKS + 1
    return (*said[: MOST_REMARKS - 1], f"and {more} remarks more")


def _at(seen: Sighting) -> str:
    return "the whole run" if seen.first is None else f"#{seen.first + 1}"


def _about(window: Window) -> str:
    if window.first == window.last:
        return f"#{window.first + 1}"
    return f"#{window.first + 1} to #{window.last + 1}"


def _of_places(findings: Iterable[Finding], limited: int) -> Iterable[str]:
    """How many places were mended, and how many quotes were altered or not found."""
    mended = altered = lost = 0
    for finding in findings:
        words = finding.evidence
        if words is not None:
            mended += words.named is not None
            altered += words.match is Match.ALTERED
            lost += not words.placed
    if mended:
        yield f"{_count(mended, 'quote stands', 'quotes stand')} elsewhere than the model named"
    if altered:
        yield f"{_count(altered, 'quote says', 'quotes say')} something else than the trace"
    if lost:
        yield f"{_count(lost, 'quote was', 'quotes were')} not found in the trace"
    if limited:
        yield (
            f"{_count(limited, 'quote was', 'quotes were')} looked for in the {MOST_SEARCHED:,}"
            " nearest characters only"
        )


def _of_modes(samples: Iterable[list[WindowAnswer]], taxonomy: Taxonomy) -> Iterable[str]:
    """Which modes a window was asked about and left out, so that there is no verdict."""
    samples = list(samples)
    open_modes = [
        mode.code
        for mode in taxonomy.modes
        if any(verdict_of(sample, mode.slug) is None for sample in samples)
    ]
    if open_modes:
        yield f"not answered everywhere: {', '.join(open_modes)}"


def _of_forms(forms: Iterable[str]) -> Iterable[str]:
    """In which forms answers came, but for the one that is asked for first."""
    for form in sorted(forms):
        if form != "json_schema":
            yield f"the server was asked for answers as {form}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
