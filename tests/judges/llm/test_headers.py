"""Response headers with odd values."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.judges.llm.client.api_errors import LONGEST_WAIT, requested_wait
from mast_tui.judges.llm.errors import RunStops, TraceFails
from tests.judges.llm.asking import after, asking, error_from, reply_to
from tests.judges.llm.server import Action, answer, status

LIMIT: Final = "x-ratelimit-"
NOW: Final = "Sun, 06 Nov 2033 08:49:37 GMT"
FAR: Final = "9" * 20

DATES: Final = [
    f"Mon, 01 Jan {FAR} 00:00:00 GMT",
    "Mon, 01 Jan 9999 23:59:59 -2359",
    "Mon, 01 Jan 10000 00:00:00 GMT",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Mon, 01 Jan 0000 00:00:00 GMT",
    f"Mon, 01 Jan 2034 00:00:00 +{FAR}",
    f"Mon, 01 Jan 2034 00:00:00 -{FAR}",
    f"Mon, {FAR} Jan 2034 00:00:00 GMT",
    f"Mon, 01 Jan 2034 {FAR}:{FAR}:{FAR} GMT",
    "Mon, 32 Foo 2034 25:61:61 XYZ",
    "Mon, 01 Jan -2034 00:00:00 GMT",
    "06-Nov-33",
    ",,,",
    ":",
    "(((",
    "\x00",
    "Mon, 01 Jan 2034 00:00:00 " + "(" * 60_000,
]
NUMBERS: Final = [
    *("-1", "-0", "nan", "-nan", "inf", "-Infinity", "1e308", "1e400", "1_0", "0x10", "٣"),
    *("1" * 5_000, "0." + "0" * 5_000, "", " ", "120, 120"),
]


@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms", "date"])
def test_a_wait_is_bounded_for_any_header_value(name: str) -> None:
    for value in (*DATES, *NUMBERS):
        wait = requested_wait({"retry-after": NOW, name: value})
        assert wait is None or 0.0 <= wait <= LONGEST_WAIT, value


PIECES: Final = ("Mon,", "01", "Jan", "2034", FAR, f"-{FAR}", "00:00:00", "GMT", "+2359", "(", ":")
texts = st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join)


@given(texts, texts, texts)
@example(NOW, "", DATES[0])
def test_a_wait_is_bounded_for_any_text(wait: str, milliseconds: str, date: str) -> None:
    said = requested_wait({"retry-after": wait, "retry-after-ms": milliseconds, "date": date})
    assert said is None or 0.0 <= said <= LONGEST_WAIT


WAITS: Final[list[tuple[dict[str, str], float | None]]] = [
    ({"retry-after": "-5"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "2.5"}, 2.5),
    ({"retry-after": "1e300"}, LONGEST_WAIT),
    ({"retry-after-ms": "-5", "retry-after": "2"}, 2.0),
    ({"retry-after-ms": "20000", "retry-after": "1"}, 20.0),
    ({"retry-after-ms": "1e300"}, LONGEST_WAIT),
    ({"retry-after": "Mon, 01 Jan 9999 00:00:00 GMT", "date": NOW}, LONGEST_WAIT),
    ({"retry-after": "Sun, 06 Nov 2033 08:49:38 GMT", "date": NOW}, 1.0),
    ({"retry-after": "Sun, 06 Nov 2033 08:49:37 +0100", "date": NOW}, 0.0),
    # A limit that begins anew.
    ({f"{LIMIT}reset-requests": "1s", f"{LIMIT}remaining-requests": "0"}, 1.0),
    ({f"{LIMIT}reset-tokens": "6m0s", f"{LIMIT}remaining-tokens": "0"}, 360.0),
    ({f"{LIMIT}reset-tokens": "6m0s", f"{LIMIT}reset-requests": "20ms"}, 0.02),
    ({f"{LIMIT}reset-tokens": "soon"}, None),
    ({f"{LIMIT}reset-tokens": "6m0s", "retry-after": "9"}, 9.0),
]


def test_the_requested_wait_is_read_from_headers() -> None:
    for headers, seconds in WAITS:
        assert requested_wait(headers) == seconds, headers


CHARSETS: Final = ("zlib", "bz2", "punycode", "idna", "unicode_escape", "utf-7", "x" * 10_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        *(f"application/json; charset={name}" for name in CHARSETS),
        *("text/event-stream", ";", "", "\x7f"),
    ],
)
async def test_the_content_type_does_not_change_how_an_answer_is_read(value: str) -> None:
    right = answer("ünï ok")
    assert (await reply_to(Action(200, right.body, content_type=value))).text == "ünï ok"
    wrong = status(400, "roles must alternate")
    error = await error_from(Action(400, wrong.body, content_type=value))
    assert "roles must alternate" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", ["gzip", "gzip, gzip", "deflate", "br", "zstd", "gzip," * 50, "nonsense", ",", "\x7f"]
)
async def test_a_false_content_encoding_is_an_error(value: str) -> None:
    for code in (200, 429):
        action = Action(code, b'{"error": "x"}', (("content-encoding", value),))
        async with asking(action, tries=2) as chat:
            await chat.fails(TraceFails)
            assert len(chat.chats) <= 2


@pytest.mark.parametrize(
    "value",
    ["", "//", "http://[", "http://\x1b[31m/", "x" * 20_000, "javascript:1", "http://a:99999999/"],
)
async def test_a_redirect_is_reported_and_not_followed(value: str) -> None:
    async with asking(Action(302, headers=(("location", value),))) as chat:
        error = await chat.fails(RunStops, "redirects to")
        assert len(chat.server.requests) == 1
    assert "\x1b" not in str(error)
    assert len(str(error)) < 1_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("content-length", value) for value in ("-1", "9" * 30, "1, 2")),
        ("transfer-encoding", "gzip, chunked, nonsense"),
        ("x-request-id", "\x7f" * 1_000),
        ("x-ratelimit-reset-requests", f"{FAR}s"),
        ("set-cookie", "a=b; expires=" + DATES[0]),
        ("x-many", "y" * 200_000),
    ],
)
async def test_other_odd_headers_do_no_harm(name: str, value: str) -> None:
    odd = Action(200, answer("ok").body, ((name, value),))
    assert (await reply_to(after(1, odd))).text == "ok"
