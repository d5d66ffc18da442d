"""Hostile, wide and long texts in a real terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from mast_tui.labels import AnnotatorKind, Label, PassKind, Target
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import NewEvent, TraceRecord, Workspace
from mast_tui.workspace.events.types import Fact, LabelAdded, PassStarted, SpanNoteSet
from tests.terminal.forking import Apps
from tests.terminal.hostile import CLEAR, HOSTILE, TITLE, broken_rows, forbidden, gone, until_whole
from tests.ui.stage import MAST, SLUGS, call, finding, result, store_findings

PASTED = f"\x1b[200~{CLEAR}pasted\x1b[201~"
HOME = "\x01"
"""The key that moves to the start of an input line."""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace with hostile texts in every field and in the name of its file."""
    folder = tmp_path / "runs"
    folder.mkdir()
    path = folder / "a\x1b]0;PWNED\x07b\u202ec\x9b2J[@click=app.quit].json"
    messages = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "name": f"agent {HOSTILE}", "content": HOSTILE},
        {"role": "assistant", "name": "other", "content": f"short {TITLE}"},
        call(1, f"tool {HOSTILE}", json.dumps({"x": HOSTILE})),
        result(1, HOSTILE * 40),
    ]
    record = {"model": HOSTILE, "system": HOSTILE, "messages": messages}
    path.write_text(json.dumps(record), "utf-8")
    return path


@pytest.fixture
def workspace(trace: Path, tmp_path: Path) -> Path:
    """A workspace with hostile notes, labels and suggestions on the trace."""
    path = tmp_path / "w.db"
    (read,) = read_file(trace, named=True).traces
    read_fully(read)
    key = read.span(1).key
    with closing(Workspace.open(path)) as store:
        store.add_taxonomy(MAST)
        trace_id = store.register_trace(TraceRecord.from_trace(read))
        store.add_annotator("alice", AnnotatorKind.HUMAN)
        label = Label(
            store.new_id(),
            "alice",
            trace_id,
            MAST.ref,
            SLUGS["1.3"],
            Target(key, key, read.text(1)[:9], 0, 9),
            note=HOSTILE,
        )
        facts: list[Fact] = [PassStarted(PassKind.ASSISTED), LabelAdded(label)]
        facts.append(SpanNoteSet(read.span(2).key, "", HOSTILE))
        store.append([NewEvent("alice", trace_id, MAST.ref, 1, fact) for fact in facts])
        findings = [finding(read, "2.6", 1, 2, quote=TITLE, why=HOSTILE * 3)]
        store_findings(store, trace_id, findings, "judge:\x1b]0;PWNED\x07@1")
    return path


def test_hostile_texts_are_only_shown(apps: Apps, home: Path, trace: Path, workspace: Path) -> None:
    arguments = (str(trace.parent), "--workspace", str(workspace), "--annotator", "alice")
    with apps.terminal(*arguments, home=home) as terminal:
        terminal.until(r"0 of 1 finished")
        until_whole(terminal)
        steps: list[tuple[tuple[str, ...], str | Callable[[str], bool], str]] = [
            (("enter",), r"#1 message", ""),
            (("down",), r"#2 message", ""),
            (("down",), r"#3 message", ""),
            (("down",), r"#4 message", ""),
            (("down",), r"#5 tool", ""),
            (("down",), r"#6 tool", ""),
            (("]",), r"Suggestion 1 of 1", ""),
            (("m",), r"the end", "Note on 1.3"),
            ((HOME,), r"PWNED.*52;c", "Note on 1.3"),
            (("escape",), gone("Note on"), ""),
            (("down", "m"), r"the end", "Note on #3"),
            (("escape",), gone("Note on"), ""),
            (("/", "PWNED"), r"\d of \d", ""),
            (("enter",), r"n next", ""),
            (("/", PASTED), r"pasted", ""),
            (("escape",), gone("pasted"), ""),
            (("y",), r"Copied", ""),
            (("l",), r"Disobey", "Label with"),
            (("escape",), gone("Label with"), ""),
            (("]", "a"), r"answered", ""),
            (("D", "up"), r"✓ .*sugg. shown", ""),  # its message covers the borders
        ]
        for keys, expected, dialog in steps:
            terminal.press(*keys)
            terminal.until(expected)
            until_whole(terminal, dialog)
        # A notice covers the borders, so it comes last.
        terminal.press(":", "nowhere[/red]", "enter")
        terminal.until(r"Nothing here has the number or name “nowhere\[/red\]")
        terminal.press("Q")
        assert terminal.ended() == 0
        assert not forbidden(bytes(terminal.raw))
        # The text was shown, with its control characters replaced.
        assert "␛]0;PWNED␇".encode() in terminal.raw


TEXTS: Final = {
    "arabic": "مرحبا بالعالم، هذا اختبار طويل بعض الشيء للنص العربي مع التَّشْكِيل وأرقام ١٢٣ "
    "وكلمات English داخل السطر",
    "hebrew": "שלום עולם, זהו טקסט ארוך עם ניקוד: בְּרֵאשִׁית בָּרָא אֱלֹהִים",
    "persian": "می‌خواهم کتاب‌ها را ببینم",
    "chinese": "你好，世界。这一行很长，用来检查边框是否对齐，因为每个字占两个单元格。" * 2,
    "japanese": "こんにちは世界、ﾊﾝｶｸとゼンカクが混ざった行",
    "korean": "안녕하세요 세계 그리고 각",
    "thai": "สวัสดีชาวโลก นี่คือข้อความที่มีสระและวรรณยุกต์",
    "hindi": "नमस्ते दुनिया, क्षत्रिय और ज्ञान की परीक्षा",
    "khmer": "ខ្ញុំចង់ដឹងថាហេតុអ្វីបានជាសេវាកម្មយឺត",
    "myanmar": "ဘာကြောင့် ဝန်ဆောင်မှု နှေးနေသလဲ",
    "emoji": "🎉 party 🚀🚀🚀 ❤️ heart ☎️ ✂︎ ©️ 1️⃣2️⃣#️⃣ ⚠️ ✅",
    "flags": "🇩🇪🇫🇷🇯🇵 🇺🇳 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏳️‍🌈 🏴‍☠️",
    "families": "👨‍👩‍👧‍👦 👩🏽‍💻👨🏿‍🚒 🧑🏻‍🤝‍🧑🏾 👁️‍🗨️ 🐻‍❄️",
    "skin": "👋👋🏻👋🏼👋🏽👋🏾👋🏿 end",
    "combining": "e\u0301 a\u0308o\u0302\u0323 Z̷͉̀a̴̧̛l̵̡g̶̢ó̸̧ " + "x" + "\u0300" * 40,
    "symbols": "①②③ ½ ™ → ⇒ ∑ ░▒▓ ┌─┐ ｆｕｌｌ ﷽ 𝔘𝔫𝔦 ㏂ ꧁꧂",
}


def test_borders_stay_in_their_column(apps: Apps, home: Path) -> None:
    messages: list[object] = []
    for number, (name, text) in enumerate(TEXTS.items()):
        messages += [
            {"role": "assistant", "name": f"{name} {text[:9]}", "content": f"{text}\n" * 12},
            call(number, text[:12], json.dumps({"x": text}, ensure_ascii=False)),
            result(number, text),
        ]
    path = home / f"{TEXTS['chinese'][:9]}{TEXTS['emoji'][:9]}{TEXTS['arabic'][:9]}.json"
    path.write_text(json.dumps({"messages": messages}, ensure_ascii=False), "utf-8")
    arguments = (str(path), "--workspace", str(home / "w.db"), "--annotator", "alice")
    with apps.terminal(*arguments, home=home, columns=80, rows=24) as terminal:
        terminal.until(r"alice")
        for number in range(1, len(messages) + 1):
            terminal.until(rf"─ #{number} ")
            until_whole(terminal)
            if number % 3 == 1:
                terminal.press("w", "v", "w", "1", "3")
                terminal.until(rf"1\.3 Step repetition on a quote in #{number} ")
                until_whole(terminal)
            terminal.press("down")
        terminal.press("m")
        terminal.until(r"Note on")
        terminal.press(TEXTS["families"], TEXTS["arabic"][:20])
        terminal.until(lambda text: "│" in text and not broken_rows(terminal, "Note on"))
        terminal.press("enter")
        terminal.until(r"✎")
        until_whole(terminal)
        terminal.press("/", TEXTS["emoji"][:7], "enter")
        terminal.until(r"n next")
        until_whole(terminal)


MEGABYTES: Final = 10


def test_spans_of_ten_megabytes_are_read_to_their_end(apps: Apps, home: Path) -> None:
    size = MEGABYTES * 1_000_000
    texts = ["x" * size + "§", "word " * (size // 5) + "¶", "short"]
    path = home / "big.json"
    path.write_text(json.dumps([{"role": "assistant", "content": text} for text in texts]))
    options = ("--workspace", str(home / "w.db"), "--annotator", "alice")
    with apps.terminal(str(path), *options, home=home) as app:
        app.until(r"─ #1 message")
        app.until(r"alice")
        for number, end in ((1, "§"), (2, "¶")):
            app.until(rf"─ #{number} message")
            app.press("tab", "G")
            app.until(end)
            until_whole(app)
            # The text at the end can be quoted, and the cursor still moves.
            app.press("w", "v", "w", "1", "3")
            app.until(rf"1\.3 Step repetition on a quote in #{number} ")
            app.press("g")
            app.until(gone(end))
            app.press("tab", "tab", "down")
        app.until(r"─ #3 message")
        app.press("/", "word ¶", "enter")
        app.until(r"“word ¶”: 1 of 1")
        app.until(r"word ¶ ")
        until_whole(app)
        app.press("Q")
        assert app.ended() == 0
