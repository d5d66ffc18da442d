"""Scripts and emoji of disputed width in a real terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.terminal.forking import Apps
from tests.terminal.hostile import broken_rows, until_whole
from tests.ui.stage import call, result

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
