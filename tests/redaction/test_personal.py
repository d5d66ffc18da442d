"""Masks of personal data and secrets planted by another library."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest
from faker import Faker

from mast_tui.redaction.engine import Redaction
from mast_tui.redaction.masked_trace import Masks
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import AnswerKey, TraceMeta
from tests.cli.conftest import Cli

SAMPLES = Path(__file__).parent.parent.parent / "sample_traces"
KEY = b"k" * 32
HEXADECIMAL = "0123456789abcdef"
LETTERS = string.ascii_letters + string.digits

FAKE = Faker("en_US")
GERMAN = Faker("de_DE")
FRENCH = Faker("fr_FR")
RANDOM = random.Random(20261128)


def drawn(length: int, letters: str = LETTERS) -> str:
    """Return random letters."""
    return "".join(RANDOM.choices(letters, k=length))


SECRETS: dict[str, Callable[[], str]] = {
    "e-mail": lambda: RANDOM.choice((FAKE, GERMAN, FRENCH)).email(),
    "phone": lambda: FAKE.numerify("(212) 5##-####"),
    "phone abroad": lambda: GERMAN.numerify("+49 30 ########"),
    "card": FAKE.credit_card_number,
    "IBAN": lambda: RANDOM.choice((GERMAN, FRENCH)).iban(),
    "IPv4": FAKE.ipv4_public,
    "IPv4 within": lambda: FAKE.ipv4_private(address_class="b"),
    "IPv6": FAKE.ipv6,
    "OpenAI": lambda: f"sk-{drawn(20)}T3BlbkFJ{drawn(20)}",
    "AWS": lambda: f"AKIA{drawn(16, string.ascii_uppercase + '234567')}",
    "GitHub": lambda: f"ghp_{drawn(36)}",
    "GitLab": lambda: f"glpat-{drawn(20)}",
    "Slack": lambda: f"xoxb-{drawn(12, string.digits)}-{drawn(24)}",
    "Stripe": lambda: f"sk_live_{drawn(24)}",
    "Google": lambda: f"AIza{drawn(35)}",
    "SendGrid": lambda: f"SG.{drawn(22)}.{drawn(43)}",
    "Twilio": lambda: f"SK{drawn(32, HEXADECIMAL)}",
    "Mailchimp": lambda: f"{drawn(32, HEXADECIMAL)}-us12",
    "bearer": lambda: f"{drawn(29)}7",
    "password": lambda: f"a1{drawn(12)}",
}
TEXTS = {"bearer": "Authorization: Bearer {}", "password": "password={}"}


HARMLESS: dict[str, Callable[[], str]] = {
    "UUID": lambda: str(UUID(int=RANDOM.getrandbits(128))),
    "SHA-1": lambda: drawn(40, HEXADECIMAL),
    "SHA-256": lambda: drawn(64, HEXADECIMAL),
    "Unix time": lambda: str(RANDOM.randrange(1_600_000_000, 1_800_000_000)),
    "milliseconds": lambda: str(RANDOM.randrange(1_600_000_000_000, 1_800_000_000_000)),
    "ISO time": FAKE.iso8601,
    "time": lambda: FAKE.date("%Y-%m-%d %H:%M:%S"),
    "version": lambda: ".".join(str(RANDOM.randrange(30)) for _ in range(3)),
    "version of four": lambda: "v" + ".".join(str(RANDOM.randrange(30)) for _ in range(4)),
    "long number": lambda: drawn(16, string.digits),
    "id": lambda: drawn(12, string.digits),
    "number": lambda: str(RANDOM.random() * 1e6),
    "path": lambda: FAKE.file_path(depth=4),
    "range": lambda: f"{RANDOM.randrange(900)}-{RANDOM.randrange(900)}",
    "pod": lambda: f"ad-{drawn(9, HEXADECIMAL)}-{drawn(5, HEXADECIMAL)}",
    "call": lambda: f"call_{drawn(24)}",
    "C++": lambda: f"std::{FAKE.word()}::{FAKE.word()}",
    "decorator": lambda: f"@{FAKE.word()}.setter",
    "this machine": lambda: f"127.0.0.1:{RANDOM.randrange(9999)}",
    "thousands": lambda: f"{RANDOM.randrange(9999999):,}",
    "place on earth": lambda: f"{FAKE.latitude()}, {FAKE.longitude()}",
    "ISBN": FAKE.isbn13,
    "EAN": FAKE.ean13,
    "clone": lambda: f"git@github.com:{FAKE.word()}/{FAKE.word()}.git",
    "password by name": lambda: f"password: see {FAKE.word()}",
}


@cache
def masks() -> Masks:
    return Masks(Redaction.personal(), KEY)


@cache
def planted() -> tuple[tuple[str, str, str], ...]:
    """200 secrets of 20 kinds: the kind, a text with the secret, and what must go."""
    for number, fake in enumerate((FAKE, GERMAN, FRENCH)):
        fake.seed_instance(number)
    made = [(kind, make()) for kind, make in SECRETS.items() for _ in range(10)]
    return tuple((kind, TEXTS.get(kind, "{}").format(secret), secret) for kind, secret in made)


def test_planted_secrets_are_masked_and_few_look_alikes() -> None:
    assert len(planted()) == 200
    left = [
        (kind, secret)
        for kind, text, secret in planted()
        for shown in (
            *(
                f"It is {text} now.",
                f"({text})",
                f"+{text}\n",
                f"见{text}。",
                f"\x1b[31m{text}\x1b[0m",
            ),
            *(json.dumps(f"\n{text}\t"), json.dumps(json.dumps(f"é{text}\n"))),
        )
        if secret in masks().text(shown)
    ]
    assert left == []
    texts = [f"It is {make()} now." for make in HARMLESS.values() for _ in range(40)]
    assert len(texts) == 1000
    masked = [text for text in texts if masks().text(text) != text]
    assert len(masked) <= 20, masked


@pytest.mark.parametrize(
    "text",
    [
        *("token={}", '{{"access_token": "{}"}}', "AccountKey={}==;", 'secret_key = "{}"'),
        *("--token {} -v", "mysql -u root -p'{}' shop", "curl -sS -u bob:{} https://x.example"),
        *("cookie: theme=dark; session={}", "sshpass -p {} ssh shop", "token={}."),
        *("Cookie: session={}; theme=dark", r"{{\"refresh_token\":\"{}\"}}"),
    ],
)
def test_secrets_are_masked_by_what_stands_before_them(text: str) -> None:
    secret = "52a1850806116d13af96f0d4214d29a5"
    assert secret not in masks().text(text.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        *("max_tokens=4096", "token: see the vault", "--password $DB_PASSWORD", "mysql -p shop"),
        *("--token <your-token1>", "cookie: none", "Smartphone: 1801728040", "the primary key=id1"),
        *("f(token: Token2[TypeVariable1])", "token = tokenizer.encode(text1)[0]"),
        *("access_key=settings.AWS_KEY1", "private_key = load_pem_private_key(data1)"),
        *("token: /home/user/project1/src/a.py", "token: https://example.com/a/b/c/1"),
        *("token: 2024-01-01T00:00:00", "token: CancellationToken2 = None"),
        *("phone: 2024-01-02 10:20", "cell: 12.5 13.5 14.5 15", "mobile=1920-1080-2000"),
        *("docker build --secret id=foo,src=a.txt", "mysql -u root -p db_1 -h 10x"),
    ],
)
def test_words_and_placeholders_are_no_secrets(text: str) -> None:
    assert masks().text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("password=" * 20_000, "sk-" * 40_000, "eyJ" * 40_000, "1.1.1." * 40_000, "+1-" * 40_000),
        *("0 1" * 40_000, "a:" * 40_000, "a@" * 40_000, "AB12 " * 40_000, "xoxb-" * 40_000),
        *("-----BEGIN PRIVATE KEY-----" * 5_000, "//:_authToken=" * 10_000, "key=1a" * 40_000),
        *("token=1a" * 40_000, "cookie: a=" * 20_000, "mysql " * 40_000, "curl -u a" * 20_000),
        *("--pass -" * 40_000, "tel: 1 " * 40_000),
    ],
    ids=lambda text: text[:8],
)
def test_masking_takes_linear_time(text: str) -> None:
    """A quadratic pattern would exceed the time limit of a test."""
    masks().apply(text)


def test_equal_secrets_have_equal_masks_in_a_workspace() -> None:
    first = masks().text("ada@example.org and bob@example.org")
    assert first.count("[email ") == 2
    assert first.split(" and ")[0] != first.split(" and ")[1]
    again = Masks(Redaction.personal(), KEY)
    assert again.text("From bob@example.org") == f"From {first.split(' and ')[1]}"
    assert Masks(Redaction.personal(), b"x" * 32).text("bob@example.org") not in first


FILES = (
    "ad-restart-loop.jsonl", "appworld_rota_and_shelf.json", "chatdev_routelat.json",
    "groupchat_checkout_p99.json", "incident_crew_cart_valkey.json",
    "magentic_downtime_report.json", "support_desk_exchange.json",
)  # fmt: skip


TARGETS = ("mast-tui", "atif", "agentdebugx")


@pytest.mark.parametrize(
    ("name", "target"), [*zip(FILES, cycle(TARGETS)), *((FILES[0], one) for one in TARGETS[1:])]
)
def test_convert_masks_traces_of_any_format(
    cli: Cli, tmp_path: Path, name: str, target: str
) -> None:
    """Secrets that stand in place of a common word are in no part of the converted trace."""
    secrets = [secret for _, text, secret in planted() if text == secret]
    parts = (SAMPLES / name).read_text("utf-8").split(" the ")
    pieces = [parts[0]]
    for number, part in enumerate(parts[1:]):
        pieces += [f" {secrets[number % len(secrets)]} ", part]
    planted_file = tmp_path / name
    planted_file.write_text("".join(pieces), "utf-8")
    plain = cli("convert", planted_file, "-o", "plain.jsonl", "--to", target)
    assert plain.code == 0, plain.err
    assert cli("convert", planted_file, "-o", "out.jsonl", "--to", target, "--redact").code == 0
    written = Path("out.jsonl").read_text("utf-8")
    in_plain = [one for one in secrets if one in Path("plain.jsonl").read_text("utf-8")]
    assert len(in_plain) > 3, "nothing was planted where it is read"
    assert [secret for secret in secrets if secret in written] == []


def test_previews_and_names_are_masked(tmp_path: Path) -> None:
    secret = "ada.lovelace@example.org"
    messages = [
        {"role": "user", "content": f"{'x' * 190} {secret} and more"},
        {"role": "assistant", "content": "Fine.", "name": secret},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages), "utf-8")
    (trace,) = read_file(path, named=True).traces
    read_fully(trace)
    masked = trace.with_masks(masks())
    for index in range(len(masked)):
        span = masked.span(index)
        assert "ada" not in f"{span.preview}{span.agent}{span.name}{masked.text(index)}"
    assert not any("ada" in agent for _, _, agent, _ in masked.columns(0, 2).shape_list)
    assert masked.index_of(trace.span(1).key) == 1
    meta = masks().meta(TraceMeta(model=secret, answer_key=AnswerKey(scores=((secret, "1"),))))
    assert "ada" not in str(meta)


KEY_LINES: Final = (
    "-----BEGIN RSA PRIVATE KEY-----",
    *(f"{number}kF{'aZ3+/q' * 10}{number}" for number in range(5)),
    "Zm9vYmFyLg==",
    "-----END RSA PRIVATE KEY-----",
)


def test_a_private_key_is_masked_with_any_line_prefix() -> None:
    masks_of_key = Masks(Redaction.personal(), b"key")
    prefixes = ("{n:6}\t", "{n:5}→", "-", "+", "> ", "| ", "id_rsa:", "home/me/id_rsa:{n}:", "  ")
    for prefix in prefixes:
        lines = [prefix.format(n=number) + line for number, line in enumerate(KEY_LINES, 1)]
        masked = masks_of_key.text("\n".join(["before", *lines, "all is well"]))
        assert masked.startswith("before\n")
        assert masked.endswith("\nall is well")
        assert "private key" in masked
        assert not any(line[:12] in masked for line in KEY_LINES[1:-1])


def test_other_spellings_are_masked_as_a_whole() -> None:
    texts = (
        *("Her phone: 5551234567.", r"m\u00fcller\u0040example.de", "_203.0.113.9_\n+030 90182021"),
        *("?to=a.b%40example.org", "?tel=%2B493090182021", "＋４９ ３０ ９０１８２０２１"),
        *("ada\x1b[m\x1b[K@example.org", r"\u002B493090182021", "+49\u00a030\u201190182021"),
    )
    left = re.sub(r"\[\w+ \w{5}\]", "", masks().text("\n".join(texts)))
    assert not re.search("[0-9０-９]{3}|example|ada|ller", left)
