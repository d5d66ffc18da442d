"""The API key and the addresses of servers, and the data that is sent to them."""

from __future__ import annotations

import base64
import logging
import string
import traceback
from base64 import b64encode
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import (
    HIDDEN,
    LEAST_PART,
    NO_KEY,
    SHORTEST,
    Endpoint,
    check_address,
    find_key,
    host_of,
    is_this_machine,
    scrub,
)
from mast_tui.judges.llm.request import AskError, Parameters, RunStops
from tests.judges.llm.asking import ANSWER_TOKENS, a_request, after, asking
from tests.judges.llm.server import MODEL, Action, ModelServer, answer, close, document, raw, status

LOCAL = "http://127.0.0.1:8000/v1"
REMOTE = "https://api.openai.com/v1"

letters = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
keys = st.text(letters, min_size=SHORTEST, max_size=60).filter(lambda key: key != NO_KEY)


def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-one\n")
    monkeypatch.setenv("LAB_KEY", "sk-two")
    assert (find_key(REMOTE), find_key(LOCAL), find_key(REMOTE, "LAB_KEY")) == (
        *("sk-one", "sk-one", "sk-two"),
    )
    monkeypatch.delenv("LAB_KEY")
    assert find_key(LOCAL, "LAB_KEY") == NO_KEY
    with pytest.raises(RunStops, match=r"api\.openai\.com.*LAB_KEY"):
        find_key(REMOTE, "LAB_KEY")


def test_an_impossible_key_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ["sk-a b", "sk-a\nX-Evil: 1", "sk-ä", "sk-\x7f"]:
        monkeypatch.setenv("LAB_KEY", value)
        with pytest.raises(RunStops, match="LAB_KEY") as caught:
            find_key(REMOTE, "LAB_KEY")
        assert "sk-" not in str(caught.value)


@given(keys, st.text(max_size=40), st.text(max_size=40))
def test_a_key_is_removed_from_any_text(key: str, prefix: str, suffix: str) -> None:
    assert key not in scrub(f"{prefix}{key}{suffix}", key) or key in "[key]"


def test_escaped_signs_of_a_key_are_recognised() -> None:
    assert scrub(r"says sk\/ab now", "sk/ab") == "says [key] now"
    assert scrub("asked ?key=sk%2Fab%2Bc%3D now", "sk/ab+c=") == "asked ?key=[key] now"
    assert scrub(f"so {NO_KEY} it is", NO_KEY) == f"so {NO_KEY} it is"


# Encoded keys

real_keys = st.text(string.ascii_letters + string.digits + "-_", min_size=20, max_size=120).map(
    lambda tail: f"sk-{tail}"
)
parts = st.integers(LEAST_PART, 200)
SEPARATORS: Final = " \n\x00\x1b\xad\u200b\u200d\u2060\ufeff\u3164\U000e0020"


def _in_base64(encode: Callable[[bytes], bytes], count: int) -> Callable[[str], str]:
    """Return an encoder to base64 that puts this many bytes before the text."""
    return lambda text: encode(b"\xf0" * count + text.encode()).decode()


ENCODINGS: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "swapped case": str.swapcase,
    "URL": lambda text: quote(text, safe=""),
    "URL, every character": lambda text: "".join(f"%{ord(char):02X}" for char in text),
    "JSON": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "JSON in JSON": lambda text: "".join(f"\\\\u{ord(char):04X}" for char in text),
    "source code": lambda text: "".join(f"\\x{ord(char):02x}" for char in text),
    "HTML": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "hex with spaces": lambda text: text.encode().hex(" "),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex of upper case": lambda text: text.upper().encode().hex(),
    **{f"base64 after {count} bytes": _in_base64(base64.b64encode, count) for count in range(3)},
    **{
        f"base64 for URLs after {count} bytes": _in_base64(base64.urlsafe_b64encode, count)
        for count in range(3)
    },
    "base64 in lines": _in_base64(base64.encodebytes, 0),
    **{f"{char!a} between": char.join for char in SEPARATORS},
    "line breaks of JSON between": "\\n".join,
    "escaped marks between": "\\u200b".join,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=15)
@given(key=real_keys, count=parts, start=st.integers(0, 120))
def test_encoded_keys_and_parts_of_keys_are_removed(
    encoding: str, key: str, count: int, start: int
) -> None:
    start = min(start, len(key) - LEAST_PART)
    part = key[start : start + count]
    encoded = ENCODINGS[encoding](part)
    scrubbed = scrub(f"({encoded})", key)
    prefix, hidden, suffix = scrubbed.partition(HIDDEN)
    assert hidden
    # In base64 the characters at the ends may also encode the text next to the key.
    left = prefix.removeprefix("(") + suffix.removesuffix(")")
    spare = 8 if "base64" in encoding else 0
    assert len(left.strip()) <= spare
    assert spare or left == ""


@given(st.text(max_size=30), st.text(max_size=30))
def test_text_around_a_removed_key_is_kept(prefix: str, suffix: str) -> None:
    key = "sk-q7Zt2Lm9XcV4bN8rTyU1"
    text = f"{prefix}¶{key.upper()}¶{suffix}"
    assert scrub(text, key) == f"{prefix}¶{HIDDEN}¶{suffix}"


@given(st.text(string.ascii_letters + string.digits + " -_%\\u&#;\n", max_size=200))
def test_a_text_without_the_key_is_unchanged(text: str) -> None:
    assert scrub(text, "sk-q7Zt2Lm9XcV4bN8rTyU1") == text


def test_every_occurrence_is_removed_and_short_parts_are_kept() -> None:
    key = "sk-0123456789abcdefghij"
    assert scrub(key[: LEAST_PART - 1], key) == key[: LEAST_PART - 1]
    assert scrub(f"{key[:LEAST_PART]}…", key) == f"{HIDDEN}…"
    text = f"{key} {key.upper()}{key[:15]} x {key.encode().hex()}, {key[5:]}."
    assert scrub(text, key) == f"{HIDDEN} {HIDDEN} x {HIDDEN}, {HIDDEN}."


@given(st.text("ab-", min_size=SHORTEST, max_size=30), st.text("abAB- \n\u200b", max_size=60))
def test_a_key_with_repetitions_is_removed(key: str, text: str) -> None:
    scrubbed = scrub(f"{text}{key}{text}", key)
    assert key not in scrubbed


# Requests


KEY = "sk-proj-0123456789abcdefSECRET"

ECHO = f"you sent Bearer {KEY}, which is wrong"

FAILURES = {
    "400": status(400, ECHO),
    "401": status(401, ECHO, code=KEY),
    "403": status(403, ECHO),
    "404": status(404, ECHO),
    "429": status(429, ECHO),
    "500": status(500, ECHO),
    "overflow": status(400, f"{ECHO}: maximum context length is 5 tokens"),
    "quota": status(429, ECHO, code="insufficient_quota"),
    "model": status(404, f"the model does not exist, {ECHO}"),
    "page": raw(f"<html>{ECHO}".encode(), code=502, content_type="text/html"),
    "no JSON": raw(ECHO.encode()),
    "validation": document({"detail": [{"loc": ["header", KEY], "msg": ECHO}]}, code=422),
    "in a right response": document({"error": {"message": ECHO, "code": 400}}),
    "redirect": Action(302, headers=(("location", f"http://127.0.0.1:1/?key={KEY}"),)),
    "closed": close(),
}


def whole_text_of(error: BaseException) -> str:
    """Return the text, attributes and traceback of an error and of those linked to it."""
    linked = [error, error.__cause__, error.__context__]
    return "\n".join(
        (
            *map(repr, linked),
            *(str(vars(each)) for each in linked if each is not None),
            *traceback.format_exception(error),
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILURES)
async def test_no_error_and_no_log_shows_the_key(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with asking(FAILURES[name], models=[KEY, "other"], key=KEY, tries=2) as chat:
        error = await chat.fails(AskError)
        client_text = repr(chat.client)
        assert chat.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert error.__context__ is None
    assert KEY not in whole_text_of(error)
    assert any(record.name.startswith("openai") for record in caplog.records)
    records = "\n".join(f"{record.getMessage()} {record.args!r}" for record in caplog.records)
    assert KEY not in records
    assert KEY not in client_text
    assert KEY not in f"{chat.waits}{chat.remarks}"


async def test_answers_and_errors_do_not_show_an_encoded_key() -> None:
    """The encodings themselves are tested where the key is scrubbed."""
    for fragment in (KEY[:12], b64encode(f"Bearer {KEY}".encode()).decode()[12:-4]):
        script = after(1, answer(f"<{fragment}>"), status(401, f"<{fragment}>"))
        async with asking(script, key=KEY) as chat:
            assert fragment not in (await chat.ask()).text
            error = await chat.fails(AskError)
        assert fragment not in whole_text_of(error)
        assert "[key]" in str(error)


async def test_redirects_are_not_followed() -> None:
    with ModelServer() as other:
        for code in (301, 302, 303, 307, 308):
            moved = Action(code, headers=(("location", f"{other.base_url}/chat/completions"),))
            async with asking(moved, key=KEY) as chat:
                await chat.fails(RunStops, f"redirects to .*:{other.port}/")
        assert other.requests == []


PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


async def test_proxies_are_used_for_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as proxy:
        for name in PROXIES:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with asking() as chat:
            await chat.ask()
            assert (len(chat.chats), len(proxy.requests)) == (1, 0)
        away = "http://llm.example/v1"
        async with Client(Parameters(MODEL), Endpoint(away, KEY, allow_http=True)) as client:
            await client.ask(a_request(), ANSWER_TOKENS)
        assert [seen.path for seen in proxy.requests] == [f"{away}/chat/completions"]


async def test_other_servers_get_no_openai_account_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ORG_ID", "PROJECT_ID", "ADMIN_KEY"):
        monkeypatch.setenv(f"OPENAI_{name}", "ours-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    async with asking() as chat:
        await chat.ask()
        headers = chat.chats[0].headers
    assert not {"openai-organization", "openai-project"} & headers.keys()
    assert headers["authorization"] == "Bearer none"


@pytest.mark.parametrize(
    ("model", "host", "message"),
    [
        *((MODEL, host, None) for host in ("exa mple", "ex\x01mple", "xn--\u00e4", "a" * 300)),
        *(
            (model, "llm", "cannot be the name of a model")
            for model in ("", "two\nlines", "half \ud83d")
        ),
        (MODEL, "llm.example", r"llm\.example cannot be reached"),  # as its proxy cannot be
    ],
)
def test_unusable_models_and_hosts_are_refused(
    model: str, host: str, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host == "llm.example":
        for name in ("ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "nonsense://proxy:port")
    with pytest.raises(RunStops, match=message) as caught:
        Client(Parameters(model), Endpoint(f"https://{host}/v1", KEY))
    assert KEY not in whole_text_of(caught.value)


# Addresses


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://api.openai.com/v1", "api.openai.com"),
        ("http://127.0.0.1:8000/v1/", "127.0.0.1:8000"),
        ("https://user:secret@llm.example/v1?a=b", "llm.example"),
        ("http://[::1]:11434/v1", "[::1]:11434"),
        (" https://llm.example/v1\n", "llm.example"),
        ("not an address", "not an address"),
        ("https://llm\x1b.example/v1", "https://llm␛.example/v1"),
    ],
)
def test_the_host_has_no_path_and_no_password(address: str, host: str) -> None:
    assert host_of(address) == host


THIS_MACHINE = (
    *("http://localhost:11434/v1", "http://LOCALHOST/v1", "http://localhost./v1"),
    *("http://127.0.0.1/v1", "http://127.8.9.10:80/v1", "http://[::1]:8000/v1"),
)
OTHER_MACHINES = (
    *("https://api.openai.com/v1", "http://localhost.example.com/v1", "http://10.0.0.1/v1"),
    *("http://127.0.0.1.example.com/v1", "http://0.0.0.0/v1", "http://user@evil.example:80/v1"),
    *("http://127.0.0.1@evil.example/v1", "", "nonsense", "http://[::1"),
)


def test_this_machine_is_recognised_without_a_lookup() -> None:
    assert [
        address for address in (*THIS_MACHINE, *OTHER_MACHINES) if is_this_machine(address)
    ] == [*THIS_MACHINE]


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("http://gpu.lab.example:8000/v1", "https"),
        ("https://user:secret@llm.example/v1", "password"),
        *((address, "not the address") for address in (
            "api.openai.com/v1", "ftp://llm.example/v1", "https://llm.example:port/v1",
            "https:///v1", "https://two words.example/v1", "https://two..dots.example/v1", "",
        )),
    ],
)  # fmt: skip
def test_unsafe_addresses_are_refused_without_showing_passwords(address: str, word: str) -> None:
    with pytest.raises(RunStops, match=word) as caught:
        check_address(address)
    assert "secret" not in str(caught.value)
    for allowed in ("https://api.openai.com/v1", "http://127.0.0.1:80/v1", "http://localhost/v1"):
        check_address(allowed)
    check_address("http://gpu.lab.example:8000/v1", allow_http=True)
