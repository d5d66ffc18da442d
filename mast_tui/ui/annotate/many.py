"""Answering many suggestions at once: those of a rule, a mode or a judge, by confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.dialog import KeyDialog
from mast_tui.ui.suggestion_wording import judge_name, rule_words
from mast_tui.ui.wording import counted, plain_title

if TYPE_CHECKING:
    from mast_tui.session import Suggestion


REJECT: Final = "x"
"""The key that rejects the suggestions."""

ACCEPT: Final = "a"
"""The key that accepts the suggestions."""

HIDE: Final = "h"
"""The key that hides the suggestions on all traces, without an answer."""

SHOW_ALL: Final = "w"
"""The key that shows hidden suggestions again and ends all answers for later traces."""


class Breadth(StrEnum):
    """The property that suggestions share to be answered together."""

    RULE = "r"
    MODE = "m"
    JUDGE = "j"
    ALL = "s"


@dataclass(frozen=True, slots=True)
class SuggestionScope:
    """The suggestions of a trace that share a property with the suggestion ``like``.

    Attributes:
        like: The suggestion to compare others with.
        breadth: The property that the suggestions share.
        least: The lowest confidence of the judge; excludes suggestions without a confidence.
        most: The highest confidence of the judge; excludes suggestions without a confidence.
    """

    like: Suggestion
    breadth: Breadth
    least: float | None = None
    most: float | None = None

    def covers(self, other: Suggestion) -> bool:
        """Check if a suggestion is in the scope."""
        confidence = other.confidence
        if self.least is not None and (confidence is None or confidence < self.least):
            return False
        if self.most is not None and (confidence is None or confidence > self.most):
            return False
        like = self.like
        if self.breadth is Breadth.ALL:
            return True
        if other.judge != like.judge:
            return False
        if self.breadth is Breadth.JUDGE:
            return True
        if other.mode != like.mode:
            return False
        if self.breadth is Breadth.MODE or other.id == like.id:
            return True
        rule = rule_words(like.rationale)
        return bool(rule) and rule_words(other.rationale) == rule

    def select(self, suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
        """Return the suggestions that are in the scope."""
        return tuple(filter(self.covers, suggestions))

    def next_confidence(self) -> SuggestionScope:
        """Return the scope with the next limit on the confidence.

        The limits follow each other in a circle:

        - no limit
        - at most the confidence of ``like``
        - at least the confidence of ``like``
        """
        confidence = self.like.confidence
        if self.most is not None:
            return replace(self, least=confidence, most=None)
        if self.least is not None:
            return replace(self, least=None)
        return replace(self, most=confidence)


@dataclass(frozen=True, slots=True)
class ManyAnswered:
    """The answer to the suggestions of a scope.

    Attributes:
        scope: The suggestions.
        answer: The key of the answer: ``REJECT``, ``ACCEPT``, ``HIDE`` or ``SHOW_ALL``.
        onward: True if the answer also applies to each trace that is opened from now on.
    """

    scope: SuggestionScope
    answer: str
    onward: bool = False


class ManyScreen(KeyDialog[ManyAnswered]):
    """The dialog that asks which suggestions to answer, and how. It returns None after Escape."""

    dialog_keys: ClassVar = (
        *((REJECT, "rejects"), (ACCEPT, "accepts"), (HIDE, "hides"), ("Esc", "leaves")),
    )

    def __init__(
        self,
        example: Suggestion,
        pending: Sequence[Suggestion],
        mode_title: str,
        hidden_count: int,
        standing_count: int,
    ) -> None:
        """Begin with the suggestions of one rule, or of the mode if the rule has one suggestion.

        Args:
            example: The suggestion under the cursor.
            pending: The visible suggestions that wait for an answer.
            mode_title: The code and name of its mode.
            hidden_count: The number of hidden suggestions that wait for an answer.
            standing_count: The number of answers that apply to later traces.
        """
        super().__init__()
        self.scope = SuggestionScope(example, Breadth.RULE)
        if len(self.scope.select(pending)) <= 1:
            self.scope = SuggestionScope(example, Breadth.MODE)
        self._example = example
        self._pending = pending
        self._mode_title = mode_title
        self._hidden_count = hidden_count
        self._standing_count = standing_count
        self._lasting = False
        """True if the answer also applies to similar suggestions on later traces."""

    def compose(self) -> ComposeResult:
        """Yield the scopes and the answers."""
        key_of = context_of(self).key_of
        undo_key = key_of("everywhere.undo")
        dialog_key = key_of("annotate.answer_many")
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Answer many suggestions")
            yield Static(id="scopes", classes="question")
            yield Static(id="answers")
            yield Static(
                Content(
                    f"{undo_key} undoes all of it · {dialog_key}, then w shows hidden ones again"
                ),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Show the choice."""
        self._show_choice()

    def _scope_rows(self) -> list[tuple[str, str]]:
        """Return the key of each breadth, and its description with the number of suggestions."""
        code = self._mode_title.partition(" ")[0]
        names = {
            Breadth.RULE: f"{code}, same rule: “{rule_words(self._example.rationale)} …”",
            Breadth.MODE: f"{self._mode_title}, by {judge_name(self._example.judge)}",
            Breadth.JUDGE: f"all by {judge_name(self._example.judge)}",
            Breadth.ALL: "all, of every judge" if self._lasting else "all on this trace",
        }
        rows = []
        for breadth, name in names.items():
            scope = replace(self.scope, breadth=breadth)
            count = len(scope.select(self._pending))
            radio_dot = "●" if breadth is self.scope.breadth else " "
            rows.append((breadth.value, f"({radio_dot}) ×{count} {name}"))
        return rows

    def _confidence_text(self) -> str:
        """Return the text of the present limit on the confidence."""
        if self.scope.most is not None:
            return f"only those with at most its confidence ({self.scope.most:.2f})"
        if self.scope.least is not None:
            return f"only those with at least its confidence ({self.scope.least:.2f})"
        return "with any confidence"

    def _show_choice(self) -> None:
        """Show the scopes, limits and answers with the present choice."""
        selected_text = counted(len(self.scope.select(self._pending)), "suggestion")
        rows = self._scope_rows()
        if self._example.confidence is not None:
            rows.append(("c", self._confidence_text()))
        traces = "here and on each trace you open from now on" if self._lasting else "on this trace"
        rows.append(("q", traces))
        self._show_key_rows("#scopes", rows)
        addition = " and similar ones on later traces" if self._lasting else ""
        answers = [
            (REJECT, f"reject {selected_text}{addition}"),
            (ACCEPT, f"accept {selected_text}{addition}"),
            (HIDE, f"hide {selected_text} and similar ones on all traces, without an answer"),
        ]
        if self._can_show_all:
            answers.append((SHOW_ALL, self._show_all_text))
        self._show_key_rows("#answers", answers)

    @property
    def _can_show_all(self) -> bool:
        return bool(self._hidden_count or self._standing_count)

    @property
    def _show_all_text(self) -> str:
        """The effect of the key ``SHOW_ALL`` in words; empty if it has none."""
        effects = []
        if self._hidden_count:
            effects.append(f"show hidden ones again ({self._hidden_count} here)")
        if self._standing_count:
            effects.append("stop answering on later traces")
        return ", ".join(effects)

    def _show_key_rows(self, selector: str, rows: Sequence[tuple[str, str]]) -> None:
        """Show keys with their texts in the widget that a selector names."""
        lines = [Content.assemble((f" {key} ", "bold"), f" {text}") for key, text in rows]
        self.query_one(selector, Static).update(Content("\n").join(lines))

    def take(self, key: str) -> bool:
        """Change the scope or a limit, or close the dialog with an answer.

        An answer to no suggestion is ignored. Return False if the key has no meaning here.
        """
        if key in (REJECT, ACCEPT, HIDE):
            if self.scope.select(self._pending):
                self.dismiss(ManyAnswered(self.scope, key, self._lasting))
            return True
        if key == SHOW_ALL and self._can_show_all:
            self.dismiss(ManyAnswered(self.scope, key, self._lasting))
            return True
        if key in tuple(Breadth):
            self.scope = replace(self.scope, breadth=Breadth(key))
        elif key == "c" and self._example.confidence is not None:
            self.scope = self.scope.next_confidence()
        elif key == "q":
            self._lasting = not self._lasting
        else:
            return False
        self._show_choice()
        return True
