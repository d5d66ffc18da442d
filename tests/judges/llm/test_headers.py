"""Every header of a server that is read, with whatever may stand in it."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.judges.llm.client.api_errors import LONGEST_WAIT, asked_wait
from mast_tui.judges.llm.client.client import MOST_WAIT
from mast_tui.judges.llm.client.rate_limiter import MOST_SPREAD
from mast_tui.judges.llm.errors import RunStops, TraceFails
from tests.judges.llm.asking import (
    ANSWER_TOKENS,
    Heard,
    a_client,
    a_request,
    after,
    ask_once,
    failure,
)
from tests.judges.llm.fake_time import FakeTime
from tests.judges.llm.server import Action, answer, status

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
    "-1",
    "-0",
    "nan",
    "-nan",
    "inf",
    "-Infinity",
    "1e308",
    "1e400",
    "1_0",
    "0x10",
    "٣",
    "1" * 5_000,
    "0." + "0" * 5_000,
    "",
    " ",
    "120, 120",
]


@pytest.mark.parametrize("value", [*DATES, *NUMBERS])
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms", "date"])
def test_a_wait_is_a_number_with_bounds_whatever_a_header_says(name: str, value: str) -> None:
    wait = asked_wait({"retry-after": NOW, name: value})
    assert wait is None or 0.0 <= wait <= LONGEST_WAIT


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
@example(NOW, "", DATES[0])
def test_no_text_of_a_header_is_too_odd(wait: str, milliseconds: str, date: str) -> None:
    said = asked_wait({"retry-after": wait, "retry-after-ms": milliseconds, "date": date})
    assert said is None or 0.0 <= said <= LONGEST_WAIT


pieces = st.lists(
    st.sampled_from(
        [
            "Mon,",
            "01",
            "Jan",
            "2034",
            FAR,
            f"-{FAR}",
            "00:00:00",
            "GMT",
            "+2359",
            f"+{FAR}",
            "(",
            ":",
        ]
    ),
    max_size=8,
).map(" ".join)


@given(pieces, pieces)
def test_no_date_made_of_pieces_is_too_odd(wait: str, date: str) -> None:
    said = asked_wait({"retry-after": wait, "date": date})
    assert said is None or 0.0 <= said <= LONGEST_WAIT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "1e300"}, LONGEST_WAIT),
        ({"retry-after-ms": "-5", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1e300"}, LONGEST_WAIT),
        ({"retry-after": "Mon, 01 Jan 9999 00:00:00 GMT", "date": NOW}, LONGEST_WAIT),
        ({"retry-after": "Sun, 06 Nov 2033 08:49:38 GMT", "date": NOW}, 1.0),
        ({"retry-after": "Sun, 06 Nov 2033 08:49:37 +0100", "date": NOW}, 0.0),
    ],
)
def test_what_a_header_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers) == seconds


@pytest.mark.slow
@pytest.mark.parametrize("value", ["86400", "1e300", DATES[0], DATES[1], DATES[5], "inf", "-1"])
@pytest.mark.parametrize("code", [429, 503])
async def test_no_header_makes_a_client_wait_for_longer_than_it_will(value: str, code: int) -> None:
    time, heard = FakeTime(), Heard()
    with after(1, status(code, headers={"retry-after": value})) as server:
        async with a_client(server, time=time, heard=heard) as client:
            assert (await client.ask(a_request(), ANSWER_TOKENS)).text == "ok"
    assert time.time - 100.0 <= MOST_WAIT + MOST_SPREAD
    assert all(len(words) < 120 for words in heard.waits)


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        "application/json; charset=zlib",
        "application/json; charset=bz2",
        "application/json; charset=punycode",
        "application/json; charset=idna",
        "application/json; charset=unicode_escape",
        "application/json; charset=utf-7",
        "application/json; charset=nonsense",
        "application/json; charset=" + "x" * 10_000,
        "text/event-stream",
        ";",
        "",
        "\x7f",
    ],
)
async def test_no_content_type_changes_how_an_answer_is_read(value: str) -> None:
    right = answer("ünï ok")
    with after(0, right, Action(200, right.body, content_type=value)) as server:
        assert (await ask_once(server)).text == "ünï ok"
    wrong = status(400, "roles must alternate")
    with after(9, Action(400, wrong.body, content_type=value)) as server:
        assert "roles must alternate" in str(await failure(server))


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    ["gzip", "gzip, gzip", "deflate", "br", "zstd", "gzip," * 50, "nonsense", ",", "\x7f"],
)
@pytest.mark.parametrize("code", [200, 429])
async def test_a_content_encoding_that_is_not_so_ends_in_words(value: str, code: int) -> None:
    action = Action(code, b'{"error": "x"}', (("content-encoding", value),))
    with after(9, action) as server:
        error = await failure(server, tries=2)
        assert len(server.chats) <= 2
    assert isinstance(error, TraceFails)


@pytest.mark.parametrize(
    "value",
    ["", "//", "http://[", "http://\x1b[31m/", "x" * 20_000, "javascript:1", "http://a:99999999/"],
)
async def test_a_location_is_named_and_not_gone_to(value: str) -> None:
    with after(9, Action(302, headers=(("location", value),))) as server:
        error = await failure(server)
        assert len(server.requests) == 1
    assert isinstance(error, RunStops)
    assert "sends on to" in str(error)
    assert "\x1b" not in str(error)
    assert len(str(error)) < 1_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-length", "-1"),
        ("content-length", "9" * 30),
        ("content-length", "1, 2"),
        ("transfer-encoding", "gzip, chunked, nonsense"),
        ("x-request-id", "\x7f" * 1_000),
        ("x-ratelimit-reset-requests", f"{FAR}s"),
        ("set-cookie", "a=b; expires=" + DATES[0]),
        ("x-many", "y" * 200_000),
    ],
)
async def test_other_headers_end_in_an_answer_or_in_words(name: str, value: str) -> None:
    with after(1, Action(200, answer("ok").body, ((name, value),))) as server:
        async with a_client(server) as client:
            assert (await client.ask(a_request(), ANSWER_TOKENS)).text == "ok"
