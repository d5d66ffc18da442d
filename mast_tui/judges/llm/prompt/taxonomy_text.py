"""The definitions of a taxonomy in the form for a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Mode, Taxonomy

Guidelines = Mapping[str, Sequence[str]]
"""The guidelines of a team, by slug of the mode."""

AGREED: Final = "As this team has agreed:"
"""The heading of the guidelines in a mode's section."""

NO_GUIDELINES: Final[Guidelines] = MappingProxyType({})

ASK: Final = "Ask; present where all is yes:"
"""The heading of a checklist in a mode's section."""

CHECKLISTS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "disobey_task_specification": (
            "Does the task state the rule or the part in words? Evidence: that sentence.",
            "Does a step or the result break it or leave it undone? Evidence: that step.",
            "Could the agent have kept to it, with no failed tool in the way?",
        ),
        "disobey_role_specification": (
            "Is the role written down? Evidence: a system prompt or team description.",
            "Does the step do another's job, or what the role excludes? Evidence: the step.",
            "Did nobody allow it or hand the work over?",
        ),
        "step_repetition": (
            "Are two steps the same in tool, arguments, object and purpose? Evidence: both.",
            "Did nothing in between change the result? Evidence: the same answer.",
            "Is it neither polling, nor a retry after a time-out, nor a check after a change?",
        ),
        "loss_of_conversation_history": (
            "Did an earlier step of this run settle or rule out something? Evidence: that step.",
            "Does a later one deny it, ask for it or plan it as if new? Evidence: the later step.",
            "Is there no reason for going back, such as new evidence or a failed attempt?",
        ),
        "unaware_of_termination_conditions": (
            "Was the goal met, declared met, or plainly out of reach? Or did a limit end the run "
            "while the agent explored? Evidence: that step.",
            "Does work on the same task go on after it, or is no attempt made to close? Evidence: "
            "the steps that follow, or the last ones.",
            "Is it more than a last check or a summary, and no new request?",
        ),
        "conversation_reset": (
            "Does a greeting, the opening plan or the task come again? Evidence: both places.",
            "Do the steps after it begin from the top? Evidence: these steps.",
            "Is earlier progress neither used nor mentioned, and no cause given for it?",
        ),
        "fail_to_ask_for_clarification": (
            "Was something needed unclear, contradictory or missing? Evidence: the words.",
            "Could a user or an agent have been asked, and no tool have told it?",
            "Did the agent go on with a guess that mattered? Evidence: 'I assume', or a value that "
            "no earlier step supplied.",
        ),
        "task_derailment": (
            "Does a stretch of steps serve no part of the task? Evidence: its first and last step.",
            "Is it more than a detour that serves the goal and ends?",
            "Does the run not come back to the goal, or too late? Evidence: what follows.",
        ),
        "information_withholding": (
            "Did an agent learn what another one or the user needs? Evidence: where it learned it.",
            "Does its later message to them leave it out? Evidence: that message.",
            "Could they not see it themselves?",
        ),
        "ignored_other_agents_input": (
            "Did another agent or the user say what bears on the work? Evidence: their words.",
            "Do the next steps of the one addressed show no effect? Evidence: these steps.",
            "Was it neither rejected with a reason nor lost from the context?",
        ),
        "reasoning_action_mismatch": (
            "Does the agent state an intent, a conclusion or what a result says? Evidence: that.",
            "Does its next act or claim differ in tool, object or sense? Evidence: that act.",
            "Is there neither a word of why nor new output in between?",
        ),
        "premature_termination": (
            "Is a part of the objective openly unmet at the end? Evidence: the last state shown.",
            "Was there a next step, and room for it? Evidence: an announced or obvious step.",
            "Did the agent itself end the run, not a crash, a limit or a person?",
        ),
        "no_or_incomplete_verification": (
            "Was there a change or a claim that could be checked? Evidence: the last one.",
            "Is there no look at the result after it, or at a part that matters? Evidence: the "
            "steps from there to 'done'.",
            "Does the agent not say that no check was possible?",
        ),
        "incorrect_verification": (
            "Was a check made? Evidence: its output, or the words that grade the work.",
            "Does it test the wrong thing or too little, or contradict the verdict? Evidence: its "
            "output beside the verdict.",
            "Is the result called right all the same? Evidence: that claim.",
        ),
    }
)
"""The questions that decide on each mode of MAST, with the evidence that they need.

They replace the examples and the hint of the taxonomy.
"""


def reordered(taxonomy: Taxonomy, seed: int) -> Taxonomy:
    """Return a taxonomy with its categories, and the modes of each category, in random order.

    Args:
        taxonomy: The taxonomy.
        seed: The seed of the order.
    """

    def random_key(name: str) -> bytes:
        """Return a sort key that depends only on the seed, so that all machines have one order."""
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    categories = sorted(taxonomy.categories, key=lambda category: random_key(category.id))
    position = {category.id: number for number, category in enumerate(categories)}
    modes = sorted(
        taxonomy.modes, key=lambda mode: (position[mode.category], random_key(mode.slug))
    )
    return replace(taxonomy, categories=tuple(categories), modes=tuple(modes))


def taxonomy_text(taxonomy: Taxonomy, guidelines: Guidelines = NO_GUIDELINES) -> str:
    """Return the definitions of all modes under the headings of their categories.

    Args:
        taxonomy: The taxonomy.
        guidelines: The guidelines of the team.
    """
    parts: list[str] = []
    for category in taxonomy.categories:
        modes = [mode for mode in taxonomy.modes if mode.category == category.id]
        if modes:
            parts.append(f"## {taxonomy.title(category.id)}")
            parts.extend(mode_text(mode, taxonomy, guidelines) for mode in modes)
    return "\n\n".join(parts)


def mode_text(mode: Mode, taxonomy: Taxonomy, guidelines: Guidelines = NO_GUIDELINES) -> str:
    """Return the section on a mode: name, definition, boundaries and guidelines.

    Args:
        mode: The mode.
        taxonomy: The taxonomy of the mode.
        guidelines: The guidelines of the team.
    """
    lines = [f"### {mode.code} {mode.name}"]
    if mode.definition:
        lines.append(mode.definition)
    checklist = _checklist_of(mode, taxonomy)
    lines.extend(
        _bullet_lines(ASK, checklist) if checklist else _bullet_lines("It is this:", mode.applies)
    )
    lines.extend(_bullet_lines("It is not this:", mode.applies_not))
    lines.extend(_bullet_lines("Easily confused with it:", _boundary_notes(mode, taxonomy)))
    if mode.detection and not checklist:
        lines.append(f"How to look: {mode.detection}")
    guideline_lines = (" ".join(text.split()) for text in guidelines.get(mode.slug, ()))
    lines.extend(_bullet_lines(AGREED, guideline_lines))
    return "\n".join(lines)


def _checklist_of(mode: Mode, taxonomy: Taxonomy) -> Sequence[str]:
    """Return the checklist of a mode of MAST; empty for other modes and for changed definitions."""
    mast = load_mast()
    if taxonomy.ref != mast.ref or mode not in mast.modes:
        return ()
    return CHECKLISTS.get(mode.slug, ())


def _bullet_lines(heading: str, points: Iterable[str]) -> list[str]:
    """Return a heading and a line for each point, or nothing without points."""
    bullets = [f"- {point}" for point in points]
    return [heading, *bullets] if bullets else []


def _boundary_notes(mode: Mode, taxonomy: Taxonomy) -> list[str]:
    """Return the difference from each confusable mode, with the code of that mode."""
    notes = []
    for confusable in mode.confusable:
        code = taxonomy.mode(confusable.slug).code
        has_code = code in confusable.difference
        notes.append(confusable.difference if has_code else f"{code}: {confusable.difference}")
    return notes
