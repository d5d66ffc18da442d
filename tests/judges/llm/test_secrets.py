"""The key: sent to the named server only, and in no message or log."""

from __future__ import annotations

import logging
import traceback
from base64 import b64encode

import pytest

from mast_tui.judges.llm.client.client import Client
from mast_tui.judges.llm.client.endpoint import Endpoint
from mast_tui.judges.llm.errors import AskError, RunStops
from mast_tui.judges.llm.request import Parameters
from tests.judges.llm.asking import ANSWER_TOKENS, a_request, after, asking
from tests.judges.llm.server import MODEL, Action, ModelServer, answer, close, document, raw, status

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
        said = repr(chat.client)
        assert chat.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert error.__context__ is None
    assert KEY not in whole_text_of(error)
    assert any(each.name.startswith("openai") for each in caplog.records)
    records = "\n".join(f"{each.getMessage()} {each.args!r}" for each in caplog.records)
    assert KEY not in records
    assert KEY not in said
    assert KEY not in f"{chat.waits}{chat.remarks}"


async def test_answers_and_errors_do_not_show_an_encoded_key() -> None:
    """The encodings themselves are tested where the key is scrubbed."""
    for shown in (KEY[:12], b64encode(f"Bearer {KEY}".encode()).decode()[12:-4]):
        script = after(1, answer(f"<{shown}>"), status(401, f"<{shown}>"))
        async with asking(script, key=KEY) as chat:
            assert shown not in (await chat.ask()).text
            error = await chat.fails(AskError)
        assert shown not in whole_text_of(error)
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
    ("model", "host", "words"),
    [
        *((MODEL, host, None) for host in ("exa mple", "ex\x01mple", "xn--\u00e4", "a" * 300)),
        *(
            (model, "llm", "cannot be the name of a model")
            for model in ("", "two\nlines", "half \ud83d")
        ),
        (MODEL, "llm.example", r"llm\.example cannot be asked"),  # as its proxy cannot be
    ],
)
def test_unusable_models_and_hosts_are_refused(
    model: str, host: str, words: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host == "llm.example":
        for name in ("ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "nonsense://proxy:port")
    with pytest.raises(RunStops, match=words) as caught:
        Client(Parameters(model), Endpoint(f"https://{host}/v1", KEY))
    assert KEY not in whole_text_of(caught.value)
