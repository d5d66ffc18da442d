"""Answering many suggestions at once: those of a rule, a mode or a judge, by confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

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


class Breadth(StrEnum):
    """The property that suggestions share to be answered together."""

    RULE = "r"
    MODE = "m"
    JUDGE = "j"
    ALL = "s"


@dataclass(frozen=True, slots=True)
class SuggestionScope:
    """The suggestions of a trace that share a property with the suggestion ``like``.

    ``least`` and ``most`` limit the judge's confidence, both included. A suggestion without a
    confidence passes neither limit.
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

        After no limit comes that of ``like`` as the highest, then as the lowest.
        """
        confidence = self.like.confidence
        if self.most is not None:
            return replace(self, least=confidence, most=None)
        return replace(self, least=None, most=None if self.least is not None else confidence)


@dataclass(frozen=True, slots=True)
class ManyAnswered:
    """The answer to the suggestions of a scope: ``x`` reject, ``a`` accept, ``h`` hide.

    ``w`` shows hidden suggestions again and ends all answers for later traces. With ``onward`` the
    answer also applies to each trace that is opened from now on.
    """

    scope: SuggestionScope
    answer: str
    onward: bool = False


class ManyScreen(KeyDialog[ManyAnswered]):
    """The dialog that asks which suggestions to answer, and how. It returns None after Escape."""

    dialog_keys: ClassVar = (
        *(("x", "rejects"), ("a", "accepts"), ("h", "hides"), ("Esc", "leaves")),
    )

    def __init__(
        self,
        like: Suggestion,
        pending: Sequence[Suggestion],
        mode: str,
        hidden: int,
        standing: int,
    ) -> None:
        """Begin with the suggestions of one rule, or of the mode if the rule has only one.

        Args:
            like: The suggestion under the cursor.
            pending: The visible suggestions that wait for an answer.
            mode: The name of its mode.
            hidden: The number of hidden suggestions that wait.
            standing: The number of answers that apply to later traces.
        """
        super().__init__()
        by_rule = SuggestionScope(like, Breadth.RULE)
        self.scope = (
            by_rule if len(by_rule.select(pending)) > 1 else SuggestionScope(like, Breadth.MODE)
        )
        self._like = like
        self._pending = pending
        self._mode = mode
        self._hidden = hidden
        self._standing = standing
        self._onward = False

    def compose(self) -> ComposeResult:
        """Yield the scopes and the answers."""
        key_of = context_of(self).key_of
        undo = key_of("everywhere.undo")
        many = key_of("annotate.answer_many")
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Answer many suggestions")
            yield Static(id="scopes", classes="question")
            yield Static(id="answers")
            yield Static(
                Content(f"{undo} undoes all of it · {many}, then w shows hidden ones again"),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Show the choice."""
        self._show()

    def _rows(self) -> list[tuple[str, str]]:
        """Return key and text of each scope, with the number of its suggestions."""
        code = self._mode.partition(" ")[0]
        names = {
            Breadth.RULE: f"{code}, same rule: “{rule_words(self._like.rationale)} …”",
            Breadth.MODE: f"{self._mode}, by {judge_name(self._like.judge)}",
            Breadth.JUDGE: f"all by {judge_name(self._like.judge)}",
            Breadth.ALL: "all, of every judge" if self._onward else "all on this trace",
        }
        rows = []
        for breadth, name in names.items():
            scope = replace(self.scope, breadth=breadth)
            count = len(scope.select(self._pending))
            sign = "●" if breadth is self.scope.breadth else " "
            rows.append((breadth.value, f"({sign}) ×{count} {name}"))
        return rows

    def _confidence(self) -> str:
        if self.scope.most is not None:
            return f"only those with at most its confidence ({self.scope.most:.2f})"
        if self.scope.least is not None:
            return f"only those with at least its confidence ({self.scope.least:.2f})"
        return "with any confidence"

    def _show(self) -> None:
        """Show the scopes, limits and answers with the present choice."""
        count = counted(len(self.scope.select(self._pending)), "suggestion")
        rows = self._rows()
        if self._like.confidence is not None:
            rows.append(("c", self._confidence()))
        traces = "here and on each trace you open from now on" if self._onward else "on this trace"
        rows.append(("q", traces))
        self._fill("#scopes", rows)
        onward = " and similar ones on later traces" if self._onward else ""
        answers = [
            ("x", f"reject {count}{onward}"),
            ("a", f"accept {count}{onward}"),
            ("h", f"hide {count} and similar ones on all traces, without an answer"),
        ]
        if self._reversible:
            answers.append(("w", self._reversal))
        self._fill("#answers", answers)

    @property
    def _reversible(self) -> bool:
        return bool(self._hidden or self._standing)

    @property
    def _reversal(self) -> str:
        """The effect of ``w``."""
        parts = []
        if self._hidden:
            parts.append(f"show hidden ones again ({self._hidden} here)")
        if self._standing:
            parts.append("stop answering on later traces")
        return ", ".join(parts)

    def _fill(self, selector: str, rows: Sequence[tuple[str, str]]) -> None:
        lines = [Content.assemble((f" {key} ", "bold"), f" {label}") for key, label in rows]
        self.query_one(selector, Static).update(Content("\n").join(lines))

    def take(self, key: str) -> bool:
        """Take a scope, a limit or an answer."""
        if key in ("x", "a", "h") or (key == "w" and self._reversible):
            if key == "w" or self.scope.select(self._pending):
                self.dismiss(ManyAnswered(self.scope, key, self._onward))
            return True
        if key in tuple(Breadth):
            self.scope = replace(self.scope, breadth=Breadth(key))
        elif key == "c" and self._like.confidence is not None:
            self.scope = self.scope.next_confidence()
        elif key == "q":
            self._onward = not self._onward
        else:
            return False
        self._show()
        return True
