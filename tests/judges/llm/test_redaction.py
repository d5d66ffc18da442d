"""Redaction: rules for secrets, offsets, pattern files."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Final

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.llm.prompt.prompt import Example
from mast_tui.labels import VerdictValue
from mast_tui.redaction.engine import (
    MOST_RULES,
    Redaction,
    RedactionTooSlow,
    SecretNumbers,
    file_rule,
)
from mast_tui.redaction.rules import DEFAULT_RULES, RedactionError
from mast_tui.traces.search.pattern import in_re2

DEFAULT = Redaction.default()

LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8z"
JWT = f"eyJ{LETTERS}.eyJ{LETTERS}{LETTERS}.{LETTERS}-_{LETTERS}"
PRIVATE_KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join((LETTERS * 3)[:64] for _ in range(6))
    + "\nabc=\n-----END RSA PRIVATE KEY-----"
)

SECRETS = {
    "openai": f"sk-{LETTERS}", "openai project": f"sk-proj-{LETTERS}_{LETTERS}",
    "anthropic": f"sk-ant-api03-{LETTERS}-{LETTERS}", "stripe": f"sk_live_{LETTERS}",
    "aws": "AKIA" + "ABCDEFGH23456789", "github": f"ghp_{LETTERS}{LETTERS}",
    "github fine": f"github_pat_{LETTERS}_{LETTERS}", "gitlab": f"glpat-{LETTERS}",
    "slack": f"xoxb-1234567890-{LETTERS}", "google": "AIza" + (LETTERS * 2)[:35],
    "hugging face": f"hf_{LETTERS}{LETTERS}", "jwt": JWT, "private key": PRIVATE_KEY,
    "private key in JSON": PRIVATE_KEY.replace("\n", "\\n"),
    "e-mail": "ada.lovelace+ops@mail.example.org",
}  # fmt: skip

IN_CONTEXT = [
    ('curl -H "Authorization: Bearer {}" host', f"{LETTERS}=="),
    ('{{"authorization": "Basic {}"}}', "dXNlcjpwYXNzd29yZA=="),
    ("'X-Api-Key': '{}'", LETTERS),
    ("export AWS_SECRET_ACCESS_KEY={}", LETTERS + LETTERS[:12]),
    ('{{"cmd": "x\\nauthorization: bearer {}\\n"}}', LETTERS),
    ("postgres://shop:{}@db.internal:5432/orders", "hunter2!x"),
]

HARMLESS = [
    "task-queue-worker-sk-learn and risk-free-rate-of-return-is-low",
    "import the decorator @pytest.mark.parametrize and run it",
    "react@18.2.0 and actions/checkout@v4",
    "the bearer of this message; authorization: denied",
    "http://localhost:8080/health and redis://cache:6379/0",
    "sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "9f8e7d6c-5b4a-3928-1706-f5e4d3c2b1a0",
    "-----BEGIN PRIVATE KEY----- is how such a file begins",
    "kubectl get pods -n otel-demo -o jsonpath='{.items[*].metadata.name}'",
]


FRAMES = ("{}", "key={}", '"{}",', "see {} there", "({})", "x\n{}\ny", '"x\\n{}\\ny"')


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_redacted_in_any_context(kind: str) -> None:
    secret = SECRETS[kind]
    for frame in FRAMES:
        redacted = DEFAULT.apply(frame.format(secret)).text
        assert secret not in redacted
        assert secret[8:24] not in redacted
        prefix, suffix = frame.split("{}")
        assert redacted.startswith(prefix + "[redacted ")
        assert redacted.endswith("1]" + suffix)


def test_a_secret_is_recognised_by_its_context_and_harmless_text_is_kept() -> None:
    for text, secret in IN_CONTEXT:
        whole = text.format(secret)
        redacted = DEFAULT.apply(whole).text
        assert secret not in redacted, text
        assert redacted.startswith(whole[: whole.index(secret)])
    for text in HARMLESS:
        assert DEFAULT.apply(text).text == text
        assert Redaction.none().apply(f"{text} {JWT}").text == f"{text} {JWT}"


def test_values_are_numbered_in_a_trace_and_an_example() -> None:
    numbers = SecretNumbers()
    first = DEFAULT.apply("a@x.org wrote to b@x.org", numbers).text
    second = DEFAULT.apply("b@x.org answered, and c@x.org too", numbers).text
    assert first == "[redacted e-mail 1] wrote to [redacted e-mail 2]"
    assert second == "[redacted e-mail 2] answered, and [redacted e-mail 3] too"
    example = Example(
        "t", "m", VerdictValue.PRESENT, "to a@x.org and b@x.org", "b@x.org", "b@x.org twice"
    )
    redacted = example.redacted(DEFAULT)
    assert redacted.quote == "[redacted e-mail 2]"
    assert redacted.quote in redacted.excerpt
    assert redacted.rationale == "[redacted e-mail 2] twice"


def test_a_literal_secret_is_redacted() -> None:
    for secret, text, redacted in [
        ("correct-horse", "xcorrect-horsex correct-horse", "x[redacted key 1]x [redacted key 1]"),
        ("hello ada@x", "so: hello ada@x.org", "so: [redacted key 1]"),  # they overlap
        ("none", "none of them", "none of them"),  # the text that means no key
    ]:
        redaction = DEFAULT.with_secret(secret)
        assert redaction.apply(text).text == redacted
        assert secret not in repr(redaction)


def test_pickling_keeps_rules_and_drops_secrets(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("order = [A-Z]{2}\\d{6}\n")
    redaction = Redaction.default().with_secret("hunter2hunter2").with_file(tmp_path / "own")
    sent = pickle.dumps(redaction)
    assert b"hunter2" not in sent
    other: Redaction = pickle.loads(sent)
    assert (other.identity, other.secrets) == (redaction.identity, ())
    assert other.apply("by a@b.org, AB123456").text == redaction.apply("by a@b.org, AB123456").text
    for plain in (Redaction.default(), Redaction.none()):
        assert pickle.loads(pickle.dumps(plain)).identity == plain.identity


PIECES = [*SECRETS.values(), "[redacted e-mail 1]", "@", "://u:p@h", "sk-"]
PIECES += [" ", "\\n", "\\u0040", "\x1b[31m", "\u200b", "＠"]
pieces = st.lists(st.one_of(st.text(max_size=12), st.sampled_from(PIECES)), max_size=12)


@given(pieces)
def test_cuts_describe_the_redacted_text(parts: list[str]) -> None:
    text = " ".join(parts)
    redacted = DEFAULT.apply(text)
    position = source = 0
    for cut in redacted.cuts:
        unchanged = redacted.text[position : cut.shown.start]
        assert unchanged == text[source : cut.original.start]
        if unchanged:
            assert redacted.to_original(position, cut.shown.start) == (source, cut.original.start)
        assert redacted.to_original(cut.shown.start, cut.shown.stop) == (
            cut.original.start,
            cut.original.stop,
        )
        position = cut.shown.stop
        source = cut.original.stop
    assert redacted.text[position:] == text[source:]


@given(pieces, st.data())
def test_offsets_map_back_to_the_original(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts)
    numbers = SecretNumbers()
    redacted = DEFAULT.apply(text, numbers)
    start = data.draw(st.integers(0, len(redacted.text)))
    end = data.draw(st.integers(start, len(redacted.text)))
    first, last = redacted.to_original(start, end)
    assert 0 <= first <= last <= len(text)
    overlapping = [cut for cut in redacted.cuts if cut.shown.start < end and start < cut.shown.stop]
    if not overlapping:
        assert text[first:last] == redacted.text[start:end]
    for cut in overlapping:
        assert first <= cut.original.start
        assert last >= cut.original.stop


BEGINNINGS: Final = [
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----" + " " * 500,
    "-----BEGIN PRIVATE KEY-----\nA: a\n",
    *("eyJaaaaaaaaaa.", "eyJaaaaaaaaaaeyJ", "sk-", "\\nsk-", "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "),
    *("a.", "@a", "a@a.", "://", ":a", "bearer ", "bearer aaaaaaaaaaaaaaaaaaaa\t"),
    *("authorization:", "authorization: a ", "api-key:", "apikey=", "aws_secret_access_key="),
    *(need for rule in DEFAULT_RULES for need in rule.keywords),
]

SEARCH_SCRIPT: Final = """
import json, sys
from pathlib import Path
from mast_tui.redaction.engine import Redaction
units, patterns = json.loads(sys.stdin.readline())
redaction = Redaction.default() if patterns is None else Redaction.none().with_file(Path(patterns))
for unit in units:
    print(len(redaction.apply(unit * (250_000 // len(unit))).text), flush=True)
"""


def count_searched(units: list[str], patterns: Path | None = None) -> int:
    """Return the number of long texts, each a repeated unit, that are searched to the end."""
    process = subprocess.run(
        [sys.executable, "-c", SEARCH_SCRIPT],
        input=json.dumps([units, None if patterns is None else str(patterns)]) + "\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert process.stderr == ""
    return len(process.stdout.splitlines())


NEVER_ENDING: Final = [
    *("tag = (<+)+>", '("+)+;', r"(\x3c|\x3c\x3c)+>", "(a+)+$", "name = (x+x+)+y", "(a|a)*b"),
    *("(.*)*=", r"(\w+\s?)+!"),
]


@pytest.mark.slow
def test_searching_takes_linear_time(tmp_path: Path) -> None:
    assert count_searched(BEGINNINGS) == len(BEGINNINGS)
    path = tmp_path / "patterns.txt"
    path.write_text("\n".join(NEVER_ENDING))
    units = ["<", '"', "a", "x", "=", "a ", "\u00e9"]
    assert count_searched(units, path) == len(units)


@pytest.mark.slow
def test_a_search_can_be_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "patterns.txt"
    path.write_text("x.*?y|x")  # each of so many matches looks through the whole text
    request = json.dumps([["x"], str(path)]) + "\n"
    # A shell makes its background processes ignore the signal.
    prelude = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script = prelude + SEARCH_SCRIPT.replace("for unit", "print('begun', flush=True)\nfor unit")
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        assert process.stdout.readline() == "begun\n"
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors


PATTERNS: Final = [
    *(r"cust-[0-9]{6}", r"\d+", r"\D+", r"\w+@\w+", r"[\w.+-]+@[\w-]+\.[\w.]+", r"\s{2,}"),
    *(r"\S+=\S+", r"[^\W\d_]+", r"[\s\S]{3}", r"[^\s\w]+", r"(?i)bearer\s+(?P<secret>\S+)"),
    *(r"(?i)straße|ÄPFEL", r"^.{3,}$", r"a{,3}b", r"[]x-]+", r"[^]x]+", r"[[a]+"),
    *(r"\u00e9|\U0001F642|\xe9", r"\\u0041", r"e\Z", r"\é+", r"\.\-\_\ \@", r"(?s:k.+?)[A-Z]"),
    *(r"(sk|rk)-(?:[a-z]+-)*[A-Za-z0-9]+", r"a|ab|abc", r"(?P<secret>x)|y"),
]

CORPUS: Final = [
    *SECRETS.values(),
    *(text.format(secret) for text, secret in IN_CONTEXT),
    *HARMLESS,
    "Straße STRASSE äpfel Ärger\nnächste Zeile\r\n\x1f\x85 \xa0 end",
    "٣٤٥ Ⅷ ½ ² 🙂 é\u0301 中文 cust-123456 ___ \u2028 x",
    "[a][x]]-]aaab \\u0041 .-_ @ kxyzA\nline\n",
]


def spans(pattern: str, text: str) -> list[tuple[int, int]]:
    """Return the ranges at which Python's engine finds a pattern, or its group for the secret."""
    compiled = re.compile(pattern, re.MULTILINE)
    group = compiled.groupindex.get("secret", 0)
    matches = (match.span(group) for match in compiled.finditer(text))
    return [(start, end) for start, end in matches if start < end]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_patterns_match_as_in_python(tmp_path: Path) -> None:
    path = tmp_path / "patterns.txt"
    for pattern in PATTERNS:
        path.write_text(pattern, "utf-8")
        (rule,) = Redaction.none().with_file(path).rules
        for text in CORPUS:
            assert list(rule.ranges(text)) == spans(pattern, text), (pattern, text)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@given(st.sampled_from(PATTERNS), st.text(max_size=60))
def test_patterns_match_any_text_as_in_python(pattern: str, text: str) -> None:
    rule = file_rule("text", pattern, re2.compile(f"(?m){in_re2(pattern)}"))
    assert list(rule.ranges(text)) == spans(pattern, text)


@pytest.mark.slow
def test_character_classes_match_python() -> None:
    for escape in [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"]:
        characters = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
        rule = file_rule("text", escape, re2.compile(f"{in_re2(escape)}+"))
        assert list(rule.ranges(characters)) == spans(f"{escape}+", characters)


# Pattern files


def pattern_file(folder: Path, text: str) -> Path:
    path = folder / "redact.txt"
    path.write_text(text, "utf-8")
    return path


def test_a_pattern_file_has_patterns_names_and_comments(tmp_path: Path) -> None:
    lines = ["# ours", "", "customer = cust-[0-9]+", "ACME[0-9]{4}"]
    lines.append("(?i)pin: (?P<secret>[0-9]{4})")
    redaction = DEFAULT.with_file(pattern_file(tmp_path, "\n".join(lines)))
    redacted = redaction.apply("cust-17, Cust-17, ACME1234, acme1234, PIN: 4711, a@x.org").text
    assert redacted == (
        "[redacted customer 1], Cust-17, [redacted text 1], acme1234, PIN: [redacted text 2],"
        " [redacted e-mail 1]"
    )
    half = redaction.apply("é\ud83d cust-17\udc00").text  # of a character
    assert half == "é\ud83d [redacted customer 1]\udc00"


MANY = "\n".join(f"cust-{n}" for n in range(MOST_RULES + 1))
LARGE = "\n".join([r"\w{1,200}x"] * 10)
BAD_LINES = [
    ("ok\n(a", "line 2: .*missing"), ("ok\n\n# x\n(?<!a)b", r"line 4: .*“\(\?<!” is a look-around"),
    ("a(?=b)", r"“\(\?=” is a look-around"), ("a(?!b)", r"“\(\?!” is a look-around"),
    ("(?<=a)b", r"“\(\?<=” is a look-around"), (r"name = (a)x\1", r"“\\1” is a back-reference"),
    ("(?P<a>a)x(?P=a)", "reference"), ("a++", "bad repetition"), ("a{1001}", "repetition size"),
    ("((a{100}){100}){100}", "repetition size|too large"),
    (r"(\w{500}){2}", "repetition size|too large"), (r"\bMüller\b", "only with the letters a to z"),
    (r"a\C", "not supported"), ("a*", "empty"), ("^", "empty"),
    (MANY, f"line {MOST_RULES + 1}: .*too many or too large"),
    (LARGE, "line 4: .*too many or too large"),
]  # fmt: skip


def test_bad_slow_and_unreadable_patterns_are_reported(tmp_path: Path) -> None:
    for text, message in BAD_LINES:
        with pytest.raises(RedactionError, match=message) as caught:
            Redaction.none().with_file(pattern_file(tmp_path, text))
        assert "redact.txt: line" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400
    rule = file_rule("text", "[0-9]", re2.compile("[0-9]"), now=count(0.0, 10.0).__next__)
    slow = r"“\[0-9\]” takes too long on a text of 12 characters"
    with pytest.raises(RedactionTooSlow, match=slow):
        Redaction((rule,)).apply("123456789012")
    with pytest.raises(RedactionError, match=r"missing\.txt"):
        Redaction.none().with_file(tmp_path / "missing.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RedactionError, match="UTF-8"):
        Redaction.none().with_file(tmp_path / "bytes.txt")
