"""The keys in messages, hints and empty screens: those that the user has set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

import mast_tui
from mast_tui.ui.actions.registry import ACTIONS, find_action, key_of, key_while_typing
from mast_tui.ui.widgets.bars import HintBar
from tests.cli.conftest import configure
from tests.ui.stage import Stage, finding, shown_key, stage, suggest
from tests.ui.team_dir import TeamDir

PACKAGE: Final = Path(mast_tui.__file__).parent
BELOW: Final = ("session", "adjudication", "labels.py", "gold", "study")
"""Parts under the screens whose messages are shown there."""

LETTER: Final = re.compile(
    r"\([A-Za-z]\)"
    r"|(?:^|[\s(·:;,.])(?![aAI] )[A-Za-z\[\]{}<>?/+_^] [a-z]+s\b"
    r"|(?:^|[·:;.] )[aA] (?:accepts|counts|opens|shows|keeps|sets|takes|adds)\b"
    r"|\bpress [A-Za-z]\b"
    r"|(?<![\w'-])[B-HJ-Z](?![\w'-])"
    r"|\^[a-z]\b"
)
"""A key of one character in a message, such as ``(D)``, ``J runs`` or ``press x``."""

NAMED: Final = re.compile(r"\b(?:Enter|Esc|Tab|Space|PgUp|PgDn|F\d\d?)\b|⌫|[←→↑↓]")
"""A key with a name in a message."""

OWN_LETTERS: Final = frozenset(
    {
        "/ finds · y copies · Esc closes",
        "\0 of \0 · n N · Esc ends",
        "n N",
        "\0\nx clears · Enter keeps · Esc shows all",
        "\0 undoes all of it · \0, then w shows hidden ones again",
        "\0 hidden: \0, then w shows them",
        "\0 hidden, not answered: \0, then w shows them again",
        "/ searches · Esc closes",
        "g G",
        "\0 · ^g or F2: in your editor",
    }
)
"""Messages with keys of a dialog, which nobody can set."""

NO_KEYS: Final = frozenset(
    {
        "only B",
        "B \0",
        "B  \0",
        "A → B: B first occurs after A. A+B: both first occur at the same span.",
        "No trace that was chosen as most worth labelling is left for you."
        "\n\nThe owner of a study chooses them: mast-tui study add --sample N --judge NAME.",
    }
)
"""Messages with letters that are no keys."""

OWN_NAMES: Final = frozenset(
    {
        "Enter saves · Esc leaves the decision without a reason",
        "Enter saves · Esc \0",
        "no match for “\0” · Esc ends the search",
        "\0Esc closes",
        "Enter labels  \0 folds",
        "Enter \0s, two digits \0 as another mode",
        "Enter goes there  \0 edit  \0 remove",
        "\0 · Enter keeps\0",
        "Text in all traces · Enter finds it\0\0",
        "Name, task or model · Enter keeps\0\0",
        "Enter draws · Esc cancels",
        "Enter begins · Esc cancels",
        "Enter begins · Esc quits",
        "Enter \0 · ↑ ↓ scroll · Esc back to the fields",
        "Nothing is changed yet; Esc leaves the study as it is",
        "\0: \0 → \0",
        "\0 → ",
        "\0 → \0",
    }
)
"""Messages outside ``dialogs`` with named keys of a dialog or of a line of text."""


def messages_in(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of several words in a file with their lines; ``\\0`` stands for values."""
    tree = ast.parse(path.read_text("utf-8"))
    passed_over: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed_over.add(id(node.value))  # a docstring
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed_over.update(map(id, node.values))
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values
            )
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in passed_over:
                continue
            text = node.value
        else:
            continue
        if " " in text.strip() and "\\" not in text and "%" not in text:
            yield node.lineno, text


def source_files() -> Iterator[Path]:
    """Yield the files whose strings may reach the screen, without the registry of actions."""
    for name in ("ui", *BELOW):
        path = PACKAGE / name
        paths = [path] if path.suffix else sorted(path.rglob("*.py"))
        yield from (path for path in paths if path.parent.name != "actions")


def test_no_message_names_a_key_that_can_be_set() -> None:
    for text in (
        "finish it (D)",
        "J runs a judge",
        "none · u undoes it",
        "press x",
        "Esc goes back",
    ):
        assert LETTER.search(text) or NAMED.search(text)
    wrong = []
    for path in source_files():
        dialogs = path.parent.name == "dialogs"
        for line, text in messages_in(path):
            letter = LETTER.search(text) and text not in OWN_LETTERS | NO_KEYS
            named = (
                not dialogs and NAMED.search(text) and text not in OWN_NAMES | OWN_LETTERS | NO_KEYS
            )
            if letter or named:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line}: {text!r}")
    assert not wrong, "take the key from key_of():\n" + "\n".join(wrong)
    assert not [a.id for a in ACTIONS if NAMED.search(a.help) or LETTER.search(a.help)]


def test_keys_are_looked_up_for_known_actions() -> None:
    asked = set()
    for path in source_files():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            argument = node.args[0]
            if name.lstrip("_") not in ("key_of", "key_while_typing"):
                continue
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                asked.add(argument.value)
    assert len(asked) > 50
    assert not {name for name in asked if find_action(name) is None}


def test_plain_keys_are_named_first() -> None:
    expected = {"annotate.follow": "O", "everywhere.redo": "U", "everywhere.quit": "^q"}
    assert {name: shown_key(name) for name in expected} == expected
    assert shown_key("everywhere.theme") == "F9"
    assert key_of("annotate.follow", {"annotate.follow": ("f6",)}) == "F6"
    assert key_while_typing("library.other_search", {}) == "Tab"
    assert key_while_typing("library.other_search", {"library.other_search": ("F",)}) == ""
    with pytest.raises(ValueError, match=r"annotate\.fly"):
        shown_key("annotate.fly")


@pytest.fixture
def keys() -> dict[str, str]:
    """Set every key of every action to an unused one; return them by the ids of the actions."""
    letters = filter(str.isalpha, map(chr, (*range(0x0400, 0x0530), *range(0x0100, 0x0250))))
    chosen = {action.id: letter for action, letter in zip(ACTIONS, letters, strict=False)}
    assert len(chosen) == len(ACTIONS)
    rows = "\n".join(f'"{name}" = "{key}"' for name, key in chosen.items())
    configure(f"[keys]\n{rows}\n")
    return chosen


def texts_on(screen: Screen[object]) -> Iterator[str]:
    """Yield the messages, hints and titles of a screen that is no dialog."""
    for bar in screen.query(HintBar):
        yield bar.message
        yield from (f"{key} {title}" for key, title, _ in bar._key_hints())
    for widget in screen.walk_children(Widget):
        if widget.display and widget.is_on_screen:
            for title in (widget.border_title, widget.border_subtitle):
                yield Content.from_text(title, markup=False).plain if title else ""


NOT_SET: Final = re.compile(
    r"Enter (?:keeps|saves|accepts|goes there|finds it|labels)|^\S+ does nothing|\bas [A-Z]\b"
)
"""Enter where a line or a list of its own takes it, the key that was pressed, a side's letter."""


async def check_key_names(on: Stage, keys: dict[str, str], *names: str) -> str:
    """Run actions by their set keys and check what the screen names.

    Args:
        on: The running app.
        keys: The keys that are set.
        names: The ids of the actions.

    Returns:
        All that the screen shows.
    """
    for name in names:
        await on.press(keys.get(name, name))
        screen = on.app.screen
        if screen.is_modal:
            continue
        for text in texts_on(screen):
            text = NOT_SET.sub("", text)
            default_key = LETTER.search(text) or NAMED.search(text)
            assert not default_key, f"after {name}: {text!r}"
    return on.text


async def test_a_trace_names_the_keys_that_are_set(keys: dict[str, str], tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "runs")
    trace = team.trace("one")
    team.file("two")
    spans = (("1.3", 3, 5), ("1.3", 7, 8), ("2.6", 9, 9))
    suggest(team.workspace, trace, [finding(trace, *labelled) for labelled in spans])
    async with stage(team.folder / "one.json", workspace=team.workspace) as on:
        text = await check_key_names(on, keys)
        assert f" {keys['annotate.next_suggestion']} goes to" in text
        for steps in (
            ("annotate.accept", "annotate.accept", "annotate.reject"),
            ("annotate.edit", "1", "3"),
            ("annotate.range", "annotate.down", "annotate.other_end", "everywhere.back"),
            ("annotate.other_end",),
            ("annotate.quote", "annotate.range", "everywhere.back"),
            ("annotate.whole", "1", "1", "everywhere.back"),
            ("1", "1", "1", "2", "annotate.severity", "annotate.pane", "everywhere.back"),
            ("annotate.my_labels", "annotate.my_labels"),
            ("annotate.read", "annotate.next_split", "annotate.read"),
            ("annotate.wrap", "annotate.word_right", "annotate.wrap", "annotate.raw"),
            ("annotate.raw", "annotate.search_regex", "escape"),
            ("annotate.search", *"checkout", "enter", "annotate.search_next", "everywhere.back"),
            ("annotate.filter", "1", "enter", "everywhere.back"),
            ("annotate.answer_many", "h", "annotate.answer_many", "w"),
            ("annotate.answer_many", "x", "everywhere.undo", "annotate.reveal"),
            ("annotate.answer_key", "annotate.next_trace", "annotate.finish", "j"),
            ("annotate.finish", "annotate.reveal", "y", "annotate.answer_key", "escape"),
        ):
            await check_key_names(on, keys, *steps)
