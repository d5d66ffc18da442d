"""What an Inspect log tells about a run as a whole: its task, its setting, how it was scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mast_tui.traces.index.document import Step
from mast_tui.traces.io.json_values import as_number, as_text
from mast_tui.traces.model import Outcome, TraceMeta
from mast_tui.traces.readers.inspect.attachments import Attachments, json_text
from mast_tui.traces.readers.run_facts import task_of

_GRADES: Final[Mapping[str, float]] = {
    "C": 1.0,
    "I": 0.0,
    "P": 0.5,
    "N": 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}
_PLAIN_PLAN: Final = "plan"
_NO_MODEL: Final = "none/none"
_MOST_SCORES: Final = 200


def facts_of_sample(
    sample: Mapping[str, object],
    header: Mapping[str, object],
    steps: Sequence[Step],
    attachments: Attachments,
    grading: Sequence[str],
) -> TraceMeta:
    """The facts on one sample; ``grading`` is what the models of its scorers said."""
    spec = header.get("eval")
    spec = spec if isinstance(spec, Mapping) else {}
    values = list(_values(_scores(sample)))
    outcome = _outcome(values) if sample.get("error") is None else Outcome.UNKNOWN
    score = values[0] if values and all(value == values[0] for value in values) else None
    return TraceMeta(
        task=task_of(_task(sample, attachments), steps=steps),
        system=_system(header, spec),
        model=_model(sample, spec),
        benchmark=as_text(spec.get("task")),
        outcome=outcome,
        score=score,
        hidden=tuple(_hidden(sample, attachments, grading)),
    )


def _task(sample: Mapping[str, object], attachments: Attachments) -> str | None:
    """The sample's input: a text, or what the user says in its messages."""
    given = sample.get("input")
    if isinstance(given, str):
        return attachments.text(given)
    texts = [
        attachments.content(message.get("content"))
        for message in (given if isinstance(given, list) else ())
        if isinstance(message, Mapping) and message.get("role") == "user"
    ]
    return "\n".join(text for text in texts if text) or None


def _system(header: Mapping[str, object], spec: Mapping[str, object]) -> str | None:
    """The solver or agent by name; of a plan of several steps the last, which does the work."""
    plan = header.get("plan")
    plan = plan if isinstance(plan, Mapping) else {}
    name = as_text(plan.get("name"))
    steps = plan.get("steps")
    solvers = [
        solver
        for step in (steps if isinstance(steps, list) else ())
        if isinstance(step, Mapping) and (solver := as_text(step.get("solver")))
    ]
    named = name if name != _PLAIN_PLAN else None
    return as_text(spec.get("solver")) or named or (solvers[-1] if solvers else None)


def _model(sample: Mapping[str, object], spec: Mapping[str, object]) -> str | None:
    model = as_text(spec.get("model"))
    output = sample.get("output")
    if model in (None, _NO_MODEL) and isinstance(output, Mapping):
        return as_text(output.get("model")) or model
    return model


def _scores(sample: Mapping[str, object]) -> list[tuple[str, object]]:
    """The scores by the scorer's name; the oldest logs have a single one without a name."""
    scores = sample.get("scores")
    if isinstance(scores, Mapping):
        return list(scores.items())[:_MOST_SCORES]
    return [] if sample.get("score") is None else [("score", sample["score"])]


def _values(scores: list[tuple[str, object]]) -> Iterator[float | None]:
    """Each score's value in [0, 1], or None; a scorer may give several at once."""
    for _name, score in scores:
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            yield from map(_grade, value.values())
        elif isinstance(value, list):
            yield from map(_grade, value)
        else:
            yield _grade(value)


def _grade(value: object) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        grade = _GRADES.get(text)
        if grade is None:
            grade = _GRADES.get(text.lower())
        if grade is not None:
            return grade
        try:
            value = float(text)
        except ValueError:
            return None
    number = as_number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _outcome(values: Sequence[float | None]) -> Outcome:
    """Only where all scorers agree, and none says that the answer is partly right."""
    if values and all(value == 1 for value in values):
        return Outcome.SUCCEEDED
    if values and all(value == 0 for value in values):
        return Outcome.FAILED
    return Outcome.UNKNOWN


def _hidden(
    sample: Mapping[str, object], attachments: Attachments, grading: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """What somebody working blind must not see: scores, the target, the sample's metadata."""
    for name, score in _scores(sample):
        if not isinstance(score, Mapping):
            yield name, json_text(score)
            continue
        for field in ("value", "answer", "explanation"):
            if score.get(field) not in (None, ""):
                own_name = name if field == "value" else f"{name} {field}"
                yield own_name, attachments.dumped(score[field])
    target = sample.get("target")
    if target not in (None, "", []):
        yield "target", attachments.dumped(target)
    if sample.get("metadata"):
        yield "metadata", attachments.dumped(sample["metadata"])
    if grading:
        yield "grading", "\n\n".join(grading)
