"""ATIF, the Agent Trajectory Interchange Format, as Harbor, VS Code and others write it.

Versions 1.0 to 1.8 are read, and files that only resemble them. A file holds one trajectory, a list
or bundle of them, or one a line; a trajectory that another of the file refers to is its sub-agent.
"""

from __future__ import annotations

from collections import ChainMap, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.index.document import More, Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import (
    as_text,
    canonical_bytes,
    content_text,
    dump_text,
    identifier,
    tokens_of,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    Tokens,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.answer_keys import answer_key_of
from mast_tui.traces.readers.document_traces import (
    Record,
    records_by_line,
    records_listed,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    mostly,
    names,
    one_line,
)
from mast_tui.traces.readers.run_facts import facts_of_record, task_of
from mast_tui.traces.result_status import status_of_code
from mast_tui.traces.times import unix_seconds

AGENT_SOURCES: Final = frozenset({"agent", "assistant", "model"})
TOOL_SOURCES: Final = frozenset({"tool", "environment", "observation"})
SOURCES: Final = AGENT_SOURCES | TOOL_SOURCES | {"system", "user"}
"""Who a step may come from."""

_CALL_IDS: Final = ("tool_call_id", "source_call_id", "call_id")
_ANY_IDS: Final = (*_CALL_IDS, "id")

_CAMEL_CASE: Final[Mapping[str, str]] = {
    "".join(("_" + char.lower()) if char.isupper() else char for char in name): name
    for name in names("""
        callId completionTokens continuedTrajectoryRef exitCode functionName inputTokens
        isCopiedContext isError llmCallCount modelName outputTokens promptTokens
        reasoningContent schemaVersion sessionId sourceCallId stepId subagentTrajectories
        subagentTrajectoryRef toolCallId toolCalls trajectoryId trajectoryPath
    """)
}

# Most records have none of these fields: that is seen at once, not name by name.
_HAVE_ID: Final = frozenset({*_ANY_IDS, *(_CAMEL_CASE[name] for name in _CALL_IDS)})
_HAVE_STATUS: Final = frozenset({"is_error", "isError", "exit_code", "exitCode"})


def field(record: Fields, name: str) -> object:
    """The field under its name or its name in camel case; None where there is neither."""
    value = record.get(name)
    if value is None and (other := _CAMEL_CASE.get(name)) is not None:
        return record.get(other)
    return value


def is_trajectory(value: object) -> bool:
    """Whether a JSON value is an ATIF trajectory, by its version or by its steps."""
    if not isinstance(value, dict) or not isinstance(steps := value.get("steps"), list):
        return False
    return follows_the_standard(value) or (
        isinstance(value.get("agent"), dict | str) and mostly(_is_step, steps)
    )


def _is_step(step: object) -> bool:
    return (
        isinstance(step, dict) and field(step, "step_id") is not None and source_of(step) in SOURCES
    )


def follows_the_standard(record: Fields) -> bool:
    """Whether a trajectory says that it is ATIF, of whatever version."""
    return "ATIF" in (as_text(field(record, "schema_version")) or "").upper()


def steps_of(record: Fields) -> Sequence[object]:
    """The steps of a trajectory."""
    return items_of(record.get("steps"))


def source_of(step: Fields) -> str:
    """Who a step comes from; empty where that is not told."""
    told = step.get("source")
    if type(told) is str and told in SOURCES:
        return told
    source = as_text(told) or as_text(step.get("role")) or ""
    return preview(source)[0].lower()


def calls_of(step: Fields) -> Sequence[object]:
    """The tool calls of a step."""
    calls = field(step, "tool_calls")
    return (calls,) if isinstance(calls, dict) else items_of(calls)


def results_of(step: Fields) -> list[tuple[str, object]]:
    """The results of a step, each under its JSON pointer within the step."""
    observation = step.get("observation")
    if isinstance(observation, dict):
        results = observation.get("results")
        if isinstance(results, list):
            return [(f"/observation/results/{n}", one) for n, one in enumerate(results)]
        return [("/observation", observation)] if observation else []
    if isinstance(observation, list):
        return [(f"/observation/{number}", one) for number, one in enumerate(observation)]
    return [("/observation", observation)] if observation not in (None, "") else []


def call_id_of(value: object) -> str | None:
    """The id of a tool call, or that of the call which a result names."""
    if not isinstance(value, dict) or _HAVE_ID.isdisjoint(value):
        return None
    for name in _CALL_IDS if "content" in value or "source" in value else _ANY_IDS:
        told = field(value, name)
        if told is not None and (found := identifier(told)):
            return found
    return None


def ids_of(record: Fields) -> list[str]:
    """The ids that a trajectory goes by: its own before that of its session."""
    found = (identifier(field(record, name)) for name in ("trajectory_id", "session_id"))
    return [one for one in found if one]


@dataclass(frozen=True, slots=True)
class Reference:
    """The ids by which a result refers to a sub-agent's trajectory, and the path of its file."""

    ids: list[str]
    path: str | None = None


def refers_to(result: Fields) -> list[Reference]:
    """The sub-agents that a result refers to."""
    refs = field(result, "subagent_trajectory_ref")
    if refs is None:
        return []
    found = []
    for ref in refs if isinstance(refs, list) else [refs]:
        if isinstance(ref, dict):
            found.append(Reference(ids_of(ref), as_text(field(ref, "trajectory_path"))))
        elif ref is not None:
            found.append(Reference([one] if (one := identifier(ref)) else []))
    return found


def agent_name(record: Fields) -> str | None:
    """The name of the agent whose trajectory this is."""
    agent = record.get("agent")
    return one_line(agent.get("name") if isinstance(agent, dict) else agent)


def extra_of(record: Fields) -> Fields:
    """What a record holds beside the fields of the standard."""
    return fields_of(record.get("extra"))


def is_log(step: Fields) -> bool:
    """Whether a step is a line of a log, which ``mast-tui convert`` writes as of the system."""
    return source_of(step) == "system" and extra_of(step).get("kind") == "log"


def status_of(result: Fields) -> SpanStatus:
    """Whether a result went well: only what its record says outright."""
    for holder in (result, extra_of(result)):
        if _HAVE_STATUS.isdisjoint(holder):
            continue
        flag = field(holder, "is_error")
        if isinstance(flag, bool):
            return SpanStatus.ERROR if flag else SpanStatus.OK
        if (told := status_of_code(field(holder, "exit_code"))) is not SpanStatus.UNKNOWN:
            return told
    return SpanStatus.UNKNOWN


_ROLES: Final[Mapping[str, Role]] = {"system": Role.SYSTEM, "user": Role.USER}
_DEEPEST: Final = 16
"""How many levels of sub-agents are followed."""


@dataclass(frozen=True, slots=True)
class Located:
    """A trajectory and where it stands in its file.

    ``number`` counts those of a file from 0; None where the file is that trajectory, or another is
    around it.
    """

    record: Fields
    place: str
    number: int | None = None


Scope = ChainMap[str, Located]
"""The trajectories that can be referred to from some place, by their ids."""


@dataclass(slots=True)
class _Result:
    """A tool result before it is known which call it answers."""

    value: Fields
    text: str
    pointer: str
    start: float | None
    call_id: str | None


class TrajectorySpans:
    """Adds the spans of a trajectory, and of the sub-agents that it refers to, to those of a trace.

    ``shown`` holds the places of the trajectories that were read, so that each is shown once;
    ``thread`` is the id of a sub-agent.
    """

    def __init__(
        self,
        found: Located,
        scope: Scope,
        steps: StepList,
        problems: list[Problem],
        shown: set[str],
        thread: str | None = None,
        depth: int = 0,
    ) -> None:
        self._found = found
        self._steps = steps
        self._problems = problems
        self._shown = shown
        self._thread = thread
        self._depth = depth
        self._agent = agent_name(found.record) or thread or "agent"
        self._children = _children(found)
        self._scope = scope.new_child(by_id(self._children, ids_of(found.record)))
        self._late = LateResults(found.record, steps_of(found.record))
        self._calls: dict[str, str] = {}
        self._made: dict[str, Step] = {}
        self._open: OrderedDict[str, None] = OrderedDict()
        self._postponed: dict[str, list[_Result]] = {}

    def read(self) -> None:
        """Add every step, then what no step refers to."""
        self._shown.add(self._found.place)
        record = self._found.record
        copied = 0
        for number, step in enumerate(steps_of(record)):
            pointer = f"/steps/{number}"
            if not isinstance(step, dict):
                self._log(pointer, step)
                self._complain(pointer, "not a step but a bare value")
            elif field(step, "is_copied_context") is True:
                copied += 1
            elif number not in self._late.moved:
                self._step(number, step, pointer)
        for result in (one for waiting in self._postponed.values() for one in waiting):
            self._result(result, None)
        for child in self._children:
            if child.place not in self._shown:
                self._complain_at(child.place, "no result refers to this sub-agent; shown last")
                self._sub_agent(child)
        if notes := as_text(record.get("notes")):
            self._log("/notes", notes, "notes")
        if copied:
            words = "step is" if copied == 1 else "steps are"
            self._complain("/steps", f"{copied} {words} copied from an earlier context; not shown")
        if refs := field(record, "continued_trajectory_ref"):
            line, _whole = preview(dump_text(refs))
            self._complain("/continued_trajectory_ref", f"the run goes on in {line}")

    def _step(self, number: int, step: Fields, pointer: str) -> None:
        before = len(self._steps)
        start = unix_seconds(step.get("timestamp"))
        source = source_of(step)
        message = field(step, "message")
        text = content_text(step.get("content") if message is None else message)
        call_id = call_id_of(step)
        if source in TOOL_SOURCES or (call_id and source == "system"):
            self._answer_later(_Result(step, text, pointer, start, call_id), number)
            return
        own = self._said(step, text, pointer, start)
        calls = [
            self._call(call, f"{pointer}/tool_calls/{place}", start, _beside(step, "agent"))
            for place, call in enumerate(calls_of(step))
        ]
        results = results_of(step)
        if len(self._steps) == before and (not results or step.get("metrics") is not None):
            own = self._say(pointer, SpanKind.MESSAGE, step, text, start)
        if len(self._steps) > before and (tokens := _tokens(step)):
            self._steps.amend(self._steps.steps[-1].key, tokens=tokens)
        self._flush(step, calls, number)
        self._results(step, results, pointer, start, calls, number, own)

    def _said(self, step: Fields, text: str, pointer: str, start: float | None) -> str | None:
        """Add what the step says; the key of its first span."""
        first = None
        thought = field(step, "reasoning_content")
        if thought is None:
            thought = step.get("reasoning")
        if isinstance(thought, str | list) and (reasoning := content_text(thought)).strip():
            at = f"{pointer}/reasoning_content"
            first = self._say(at, SpanKind.REASONING, step, reasoning, start)
        if text.strip():
            said = self._say(pointer, SpanKind.MESSAGE, step, text, start)
            first = first or said
        return first

    def _say(
        self, pointer: str, kind: SpanKind, step: Fields, text: str, start: float | None
    ) -> str:
        source = source_of(step)
        role = _ROLES.get(source, Role.AGENT)
        agent = source if role is not Role.AGENT else self._agent
        if role is Role.AGENT and source not in AGENT_SOURCES:
            agent = source or self._agent
        more = More(place=self._place(pointer), start=start)
        if is_log(step):
            kind, role, more["name"] = SpanKind.LOG, Role.LOG, _beside(step, "name")
        agent = _beside(step, "agent") or agent
        return self._steps.add(self._key(pointer), kind, role, agent, text, **more)

    def _call(
        self, call: object, pointer: str, start: float | None, agent: str | None
    ) -> str | None:
        if not isinstance(call, dict):
            self._log(pointer, call)
            self._complain(pointer, "not a tool call but a bare value")
            return None
        function = call.get("function")
        asked = function if isinstance(function, dict) else call
        name = one_line(field(asked, "function_name")) or one_line(asked.get("name"))
        arguments = dump_text(first_in(asked, "arguments", "args", "input"))
        call_id = call_id_of(call)
        own = self._id_key(call_id, "call") if call_id else self._key(pointer)
        more = More(place=self._place(pointer), name=name, start=start)
        key = self._steps.call(own, agent or self._agent, arguments, **more)
        if call_id:
            self._calls[call_id] = key
        self._made[key] = self._steps.steps[-1]
        self._open[key] = None
        return key

    def _flush(self, step: Fields, calls: Sequence[str | None], number: int) -> None:
        """Add the results that stand before these calls in the file."""
        for call_id in map(call_id_of, calls_of(step)):
            for result in self._postponed.pop(call_id, ()) if call_id else ():
                self._result(result, self._calls.get(result.call_id or ""))
        for key, (place, earlier) in zip(calls, self._late.before.get(number, ()), strict=False):
            text = content_text(field(earlier, "message"))
            start = unix_seconds(earlier.get("timestamp"))
            self._result(_Result(earlier, text, f"/steps/{place}", start, None), key)

    def _results(
        self,
        step: Fields,
        values: Sequence[tuple[str, object]],
        pointer: str,
        start: float | None,
        calls: Sequence[str | None],
        number: int,
        own: str | None,
    ) -> None:
        """Add a step's results; those that name no call answer its calls in turn, if they can."""
        results = []
        for where, value in values:
            record = value if isinstance(value, dict) else {"content": value}
            content = record.get("content")
            text = content_text(record.get("output") if content is None else content)
            results.append(_Result(record, text, pointer + where, start, call_id_of(record)))
        named = {self._calls.get(result.call_id) for result in results if result.call_id}
        waiting = [key for key in calls if key is not None and key not in named]
        nameless = [result for result in results if not result.call_id]
        in_turn = iter(waiting if len(waiting) == len(nameless) else ())
        for result in results:
            if result.call_id:
                self._answer_later(result, number)
                continue
            call = next(in_turn, None) or (waiting[0] if len(waiting) == 1 else None)
            if call is None and source_of(step) not in AGENT_SOURCES:
                call = self._only_open()
            self._result(result, call, own, source_of(step))
        if nameless:  # a result of the step as a whole answers all of its calls
            for key in waiting:
                self._open.pop(key, None)

    def _answer_later(self, result: _Result, number: int) -> None:
        """Add a result after its call, which may come in a later step."""
        call = self._calls.get(result.call_id) if result.call_id else None
        if call is None and result.call_id and self._late.comes_later(result.call_id, number):
            self._postponed.setdefault(result.call_id, []).append(result)
            return
        if call is None and result.call_id is None:
            call = self._only_open()
        self._result(result, call)

    def _only_open(self) -> str | None:
        """The call that waits for its result, where it is the only one."""
        return next(iter(self._open)) if len(self._open) == 1 else None

    def _result(
        self, result: _Result, call: str | None, step: str | None = None, source: str = ""
    ) -> None:
        """Add a result behind the sub-agents that it refers to."""
        refs = refers_to(result.value)
        for ref in refs:
            self._refer(ref, result.pointer)
        if refs and not result.text and not result.call_id and call is None:
            return
        of_tool = call is not None or source not in ("system", "user")
        made = self._made[call] if call else None
        more = More(
            place=self._place(result.pointer),
            name=_beside(result.value, "name") or (made.name if made else None),
            parent=call or step,
            start=result.start,
            status=status_of(result.value),
        )
        id_key = self._id_key(result.call_id, "result") if result.call_id else None
        key = id_key or self._key(result.pointer)
        if of_tool:
            agent = _beside(result.value, "agent") or (made.agent if made else self._agent)
            self._steps.result(key, agent, result.text, **more)
        else:
            self._steps.add(key, SpanKind.LOG, Role.LOG, source, result.text, **more)
        if made:
            self._open.pop(made.key, None)
            if made.start is not None and result.start is not None and result.start > made.start:
                made.end = result.start

    def _refer(self, ref: Reference, pointer: str) -> None:
        """Show the sub-agent that is referred to, unless it has been shown."""
        own = ids_of(self._found.record)
        for name in ref.ids:
            found = self._scope.get(name) if name not in own else None
            if found is not None:
                if found.place not in self._shown:
                    self._sub_agent(found)
                return
        line, _whole = preview(ref.path or "".join(ref.ids[:1]) or "?")
        self._complain(pointer, f"the sub-agent's trajectory is not in this file: {line}")

    def _sub_agent(self, found: Located) -> None:
        if self._depth >= _DEEPEST:
            self._complain_at(found.place, "sub-agents nested too deeply; left out")
            return
        ids = ids_of(found.record)
        thread = preview(ids[0])[0] if ids else f"sub-agent {found.place}"
        shared = (self._scope, self._steps, self._problems, self._shown)
        TrajectorySpans(found, *shared, thread, self._depth + 1).read()

    def _log(self, pointer: str, value: object, name: str | None = None) -> None:
        place = self._place(pointer)
        self._steps.log(self._key(pointer), dump_text(value), place=place, name=name)

    def _key(self, pointer: str) -> str:
        return (self._thread or "") + pointer

    def _id_key(self, call_id: str, part: str) -> str:
        own = f"{call_id}:{part}"
        return f"{self._thread}/{own}" if self._thread else own

    def _place(self, pointer: str) -> str:
        return self._found.place + pointer

    def _complain(self, pointer: str, message: str) -> None:
        self._complain_at(self._place(pointer), message)

    def _complain_at(self, place: str, message: str) -> None:
        self._problems.append(Problem(place, message))


def _children(found: Located) -> list[Located]:
    """The trajectories that are embedded in another."""
    return [
        Located(record, f"{found.place}/subagent_trajectories/{number}")
        for number, record in enumerate(items_of(field(found.record, "subagent_trajectories")))
        if isinstance(record, dict)
    ]


def by_id(trajectories: Sequence[Located], without: Sequence[str] = ()) -> dict[str, Located]:
    """Trajectories under each of their ids, the first that has an id; none ``without``.

    A sub-agent may bear the id of the session that it shares with who called it.
    """
    found: dict[str, Located] = {}
    for one in trajectories:
        for name in ids_of(one.record):
            if name not in without:
                found.setdefault(name, one)
    return found


def _beside(record: Fields, name: str) -> str | None:
    """A name that a record tells beside the standard, which has one agent for all steps."""
    return one_line(extra_of(record).get(name))


def _tokens(step: Fields) -> Tokens | None:
    """The tokens of the step's model calls; None where no model was called."""
    metrics = step.get("metrics")
    if not isinstance(metrics, dict) or field(step, "llm_call_count") == 0:
        return None
    return tokens_of(
        field(metrics, "prompt_tokens"), field(metrics, "completion_tokens")
    ) or tokens_of(field(metrics, "input_tokens"), field(metrics, "output_tokens"))


class LateResults:
    """Which steps of a trajectory are results of calls that come after them.

    A result that names its call belongs to it wherever it stands. One that names none belongs to a
    later call only where nothing else can be meant: in a file that does not say it is ATIF, as many
    steps of the system as the next step has calls stand directly before it, after some other step,
    and no other result answers those calls. ``before`` holds those steps with their numbers, one
    for each call, by the number of the step that calls; ``moved`` holds their numbers.
    """

    def __init__(self, record: Fields, steps: Sequence[object]) -> None:
        self._steps = steps
        self._made = dict(_calls_by_id(steps))
        self.before: dict[int, list[tuple[int, Fields]]] = {}
        if not follows_the_standard(record):
            self._pair()
        self.moved = {place for found in self.before.values() for place, _step in found}

    def comes_later(self, call_id: str, number: int) -> bool:
        """Whether the call with this id is made in a step after ``number``."""
        return self._made.get(call_id, -1) > number

    def _pair(self) -> None:
        answered = set(_answered(self._steps))
        for number, step in enumerate(self._steps):
            if not isinstance(step, dict) or source_of(step) not in AGENT_SOURCES:
                continue
            calls = calls_of(step)
            if not calls or results_of(step) or any(call_id_of(call) in answered for call in calls):
                continue
            first = number - len(calls)
            if first > 0 and not self._loose(first - 1, first):
                found = self._loose(first, number)
                if len(found) == len(calls):
                    self.before[number] = found

    def _loose(self, first: int, end: int) -> list[tuple[int, Fields]]:
        """The steps from ``first`` up to ``end`` that are words of the system and name no call."""
        return [
            (number, step)
            for number, step in enumerate(self._steps[first:end], first)
            if isinstance(step, dict)
            and source_of(step) == "system"
            and call_id_of(step) is None
            and not calls_of(step)
            and not results_of(step)
            and field(step, "is_copied_context") is not True
        ]


def _calls_by_id(steps: Sequence[object]) -> Iterator[tuple[str, int]]:
    """The id of each call and the step that makes it last, of those that are shown."""
    for number, step in enumerate(steps):
        if isinstance(step, dict) and field(step, "is_copied_context") is not True:
            for call in calls_of(step):
                if call_id := call_id_of(call):
                    yield call_id, number


def _answered(steps: Sequence[object]) -> Iterator[str]:
    for step in steps:
        if not isinstance(step, dict):
            continue
        for value in (step, *(result for _place, result in results_of(step))):
            if call_id := call_id_of(value):
                yield call_id


_MARKS: Final = (b"ATIF", b'"steps"', b'"schema_version"', b'"schemaVersion"')
_LOOKED_AT: Final = 20
_PART: Final = "-cont-"
"""Stands in the id of a session which Terminus goes on with in another file."""


class AtifReader:
    """Reads ATIF; keys are JSON pointers within the trajectory, calls and results go by their id.

    The keys of a sub-agent's spans begin with its trajectory's id, or that of its session.
    """

    name: Final = "atif"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file holds trajectories of the format, most of its first records."""
        head = as_utf8(source.head)
        if head.lstrip()[:1] not in (b"{", b"[") or not any(mark in head for mark in _MARKS):
            return False
        lines = source.json_lines
        if len(lines) > 1 or source.json is None:
            return mostly(is_trajectory, lines)
        return mostly(is_trajectory, (one.value for one in _contained(source.json)))

    def read(self, source: Source) -> FileReport:
        """One trace per trajectory that no other refers to."""
        problems: list[Problem] = []
        records = _records(source, problems)
        scope = ChainMap(by_id(records))
        referred = {name for found in records for name in _referred(found.record)}
        shown: set[str] = set()
        traces: dict[int, Trace] = {}
        roots = [referred.isdisjoint(ids_of(found.record)) for found in records]
        for wanted in (True, False):  # those that only refer to each other are left for the end
            for place, found in enumerate(records):
                if roots[place] is wanted and found.place not in shown:
                    traces[place] = self._trace(source, found, scope, shown)
        return report_of(self, source, [traces[place] for place in sorted(traces)], problems)

    def _trace(self, source: Source, found: Located, scope: Scope, shown: set[str]) -> Trace:
        value, steps, problems = found.record, StepList(), list[Problem]()
        TrajectorySpans(found, scope, steps, problems, shown).read()
        return trace_of_steps(
            self,
            source.path,
            source.data if found.number is None else canonical_bytes(value),
            steps,
            meta=_facts(value, steps.steps),
            record=found.number,
            native=_own_id(value),
            problems=problems,
        )


READER: Final = AtifReader()


def _own_id(record: Fields) -> str | None:
    """The trajectory's own id; that of its session only where one file has the session.

    A file that begins with copied steps goes on with a session which another file began, unless
    the session's id says which part it is.
    """
    ids = ids_of(record)
    continues = field(record, "trajectory_id") is None and any(
        field(fields_of(step), "is_copied_context") is True for step in steps_of(record)
    )
    return None if not ids or (continues and _PART not in ids[0]) else ids[0]


def _contained(document: object) -> Iterator[Record]:
    """The trajectories of a document: itself, or those in a list."""
    bundle = fields_of(document).get("trajectories")
    if isinstance(document, list):
        yield from records_listed(document)
    elif isinstance(bundle, list) and not is_trajectory(document):
        yield from records_listed(bundle, "/trajectories")
    else:
        yield Record(document)


def _records(source: Source, problems: list[Problem]) -> list[Located]:
    """The trajectories of a file; what is none of them goes to ``problems``."""
    document = source.json if len(source.json_lines) < 2 else None
    found = records_by_line(source, problems) if document is None else _contained(document)
    records = []
    for record in found:
        if isinstance(record.value, dict) and is_trajectory(record.value):
            records.append(Located(record.value, record.prefix, record.number))
        else:
            place = record.prefix.strip() or "whole file"
            problems.append(Problem(place, "no trajectory, left out"))
    return records


def _referred(record: Fields) -> set[str]:
    """The ids of the sub-agents that a trajectory refers to, its own ids left out."""
    names = {
        name
        for step in steps_of(record)
        if isinstance(step, dict)
        for _place, result in results_of(step)
        if isinstance(result, dict)
        for ref in refers_to(result)
        for name in ref.ids
    }
    return names.difference(ids_of(record))


def _facts(record: Fields, steps: Sequence[Step]) -> TraceMeta:
    """What a trajectory and its ``extra`` tell about the run."""
    extra = record.get("extra")
    meta = facts_of_record(extra if isinstance(extra, dict) else record, steps)
    own = answer_key_of(record) if isinstance(extra, dict) else AnswerKey()
    return meta._replace(
        task=task_of(steps=steps),
        system=agent_name(record),
        model=_model(record),
        version=_agent_version(record),
        answer_key=own.with_all_of(meta.answer_key),
    )


def _agent_version(record: Fields) -> str | None:
    """Return the version of the agent; ``unknown`` is what writers put where they have none."""
    version = as_text(fields_of(record.get("agent")).get("version"))
    return None if version == "unknown" else version


def _model(record: Fields) -> str | None:
    """The model of the agent, or of the first step that names one."""
    for holder in map(fields_of, (record.get("agent"), *steps_of(record)[:_LOOKED_AT])):
        if name := as_text(field(holder, "model_name")) or as_text(holder.get("model")):
            return name
    return None
