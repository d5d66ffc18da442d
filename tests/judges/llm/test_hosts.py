"""Addresses of servers: their host, and which may be asked."""

from __future__ import annotations

import pytest

from mast_tui.judges.llm.client.hosts import check_address, host_of, is_this_machine
from mast_tui.judges.llm.errors import RunStops


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


HERE = (
    *("http://localhost:11434/v1", "http://LOCALHOST/v1", "http://localhost./v1"),
    *("http://127.0.0.1/v1", "http://127.8.9.10:80/v1", "http://[::1]:8000/v1"),
)
ELSEWHERE = (
    *("https://api.openai.com/v1", "http://localhost.example.com/v1", "http://10.0.0.1/v1"),
    *("http://127.0.0.1.example.com/v1", "http://0.0.0.0/v1", "http://user@evil.example:80/v1"),
    *("http://127.0.0.1@evil.example/v1", "", "nonsense", "http://[::1"),
)


def test_this_machine_is_recognised_without_a_lookup() -> None:
    assert [address for address in (*HERE, *ELSEWHERE) if is_this_machine(address)] == [*HERE]


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("http://gpu.lab.example:8000/v1", "https"),
        ("https://user:secret@llm.example/v1", "password"),
        *((address, "no address") for address in (
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
