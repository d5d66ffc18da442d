"""The story of a run with several windows: summaries of the windows, merged by a further request.

All windows are summarised at once, and then judged at once with the story. So a long run takes only
a few requests in sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from mast_tui.judges.llm.answer.parsing import Malformed, as_text, find_object, object_schema
from mast_tui.judges.llm.prompt import prompt_text
from mast_tui.judges.llm.prompt.prompt_section import (
    Section,
    SystemMessage,
    data_section,
)
from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.llm.prompt.tokens import (
    FRAME_TOKENS,
    HEADER_TOKENS,
    allotted,
    estimate,
    shortened,
    task_room,
)
from mast_tui.judges.llm.request import Request, Window

SUMMARY_TOKENS: Final = 350
"""The approximate tokens of a summary."""

STORY_TOKENS: Final = 700
"""The approximate tokens of a story."""

MOST_CHARS: Final = 6_000
"""The most code points of a summary or story; a longer text is cut."""

SUMMARY_ROLE: Final = """\
You read one part of the record of a run of an AI agent, or of several agents that work together. \
Others read the other parts. You note what a reader must know of this part who cannot see it, so \
that failures which reach over several parts can be recognised."""

STORY_ROLE: Final = """\
A long run of an AI agent, or of several agents that work together, was read in parts. From the \
notes on its parts you tell the whole run, for readers who each see one part only."""

SUMMARY_ANSWER: Final = """\
# The answer

Answer with one JSON object and nothing else: {"summary": "<notes>"}. At most 200 words: the goal \
and the limits that were set, who has which role, what was done and found, what was promised or \
planned, what was concluded or ruled out, what failed, what was changed and how it was checked, \
each with its span numbers as #12. Facts only, no verdicts."""

STORY_ANSWER: Final = """\
# The answer

Answer with one JSON object and nothing else: {"story": "<the run in order>"}. At most 400 words: \
the goal and the limits, the roles, the turns of the run in their order, what was said in one part \
and forgotten, repeated, contradicted or left open in another, the last change and the checks \
after it, how the run ended; each with its span numbers as #12. Facts only, no verdicts."""

PARTS_RULES: Final = """\
Each part stands under a line such as `[MARK part 2: #41 to #80]`. MARK is a word that is new in \
each request and given at the end of this message."""

SUMMARY_ASKED: Final = "Summarise these spans. Answer with the JSON object."
STORY_ASKED: Final = "Tell the whole run. Answer with the JSON object."
PART: Final = "part {number}: {spans}"

_SUMMARY_SCHEMA: Final = object_schema(summary={"type": "string"})
_STORY_SCHEMA: Final = object_schema(story={"type": "string"})


def all_texts() -> tuple[str, ...]:
    """Return all prompt texts of this module, for the hash of the prompt."""
    return (
        SUMMARY_ROLE,
        STORY_ROLE,
        SUMMARY_ANSWER,
        STORY_ANSWER,
        PARTS_RULES,
        SUMMARY_ASKED,
        STORY_ASKED,
        PART,
    )


class StoryPrompt:
    """The prompts for summaries and for the story."""

    def __init__(self) -> None:
        self.summary_system = SystemMessage(
            SUMMARY_ROLE, prompt_text.DATA_RULES, prompt_text.HEADERS, SUMMARY_ANSWER
        )
        self.story_system = SystemMessage(
            STORY_ROLE, prompt_text.DATA_RULES, PARTS_RULES, STORY_ANSWER
        )

    def summary_request(self, view: RedactedView, window: Window, budget: int) -> Request:
        """Make the request for the summary of a window.

        Args:
            view: The trace as it is sent.
            window: The window.
            budget: The approximate token limit of the data.
        """
        data = data_section(
            view, window, story="", budget=window.tokens or budget, question=SUMMARY_ASKED
        )
        return self.summary_system.request(data, _SUMMARY_SCHEMA, view.trace_id)

    def story_request(
        self, view: RedactedView, summaries: Sequence[tuple[Window, str]], budget: int
    ) -> Request:
        """Make the request that merges the summaries of all windows into the story of the run.

        Args:
            view: The trace as it is sent.
            summaries: Pairs of a window and its summary, in the order of the run.
            budget: The approximate token limit of the data.
        """
        task_tokens = min(estimate(view.task), task_room(budget))
        room = max(0, budget - FRAME_TOKENS - task_tokens - HEADER_TOKENS * len(summaries))
        tokens = [estimate(summary) for _, summary in summaries]
        allotted_tokens = allotted(tokens, [1] * len(tokens), room)
        sections = []
        for index, (window, summary) in enumerate(summaries):
            text = summary
            if tokens[index] > allotted_tokens[index]:
                text, _ = shortened(summary, tokens[index], allotted_tokens[index])
            spans = view.range_name(window.first, window.last)
            sections.append(Section(PART.format(number=index + 1, spans=spans), text))
        data = data_section(
            view, window=None, story="", budget=budget, question=STORY_ASKED, sections=sections
        )
        return self.story_system.request(data, _STORY_SCHEMA, view.trace_id)


def read_notes(text: str, *, field: Literal["summary", "story"]) -> str:
    """Return the summary or story from an answer, cut to ``MOST_CHARS``.

    Args:
        text: The answer.
        field: The name of the field.

    Raises:
        Malformed: The field is missing or empty.
    """
    fields = find_object(text, lambda value: field in value, content=field).value
    notes = as_text(fields.get(field)).strip()
    if not notes:
        raise Malformed(f"the {field} is empty")
    return notes[:MOST_CHARS]
