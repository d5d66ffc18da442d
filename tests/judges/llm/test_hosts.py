"""Addresses: which host they name, whether that is this machine, whether it may be asked."""

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
def test_the_host_is_named_without_path_and_password(address: str, host: str) -> None:
    assert host_of(address) == host


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("http://localhost:11434/v1", True),
        ("http://LOCALHOST/v1", True),
        ("http://localhost./v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://127.8.9.10:80/v1", True),
        ("http://[::1]:8000/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://localhost.example.com/v1", False),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://10.0.0.1/v1", False),
        ("http://0.0.0.0/v1", False),
        ("http://user@evil.example:80/v1", False),
        ("http://127.0.0.1@evil.example/v1", False),
        ("", False),
        ("nonsense", False),
        ("http://[::1", False),
    ],
)
def test_this_machine_is_known_without_looking_up_a_name(address: str, here: bool) -> None:
    assert is_this_machine(address) is here


@pytest.mark.parametrize(
    ("address", "allow_http"),
    [
        ("https://api.openai.com/v1", False),
        ("http://127.0.0.1:8000/v1", False),
        ("http://localhost:11434/v1", False),
        ("http://gpu.lab.example:8000/v1", True),
    ],
)
def test_a_server_may_be_asked_over_https_or_on_this_machine(
    address: str, allow_http: bool
) -> None:
    check_address(address, allow_http=allow_http)


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("http://gpu.lab.example:8000/v1", "https"),
        ("https://user:secret@llm.example/v1", "password"),
        ("api.openai.com/v1", "no address"),
        ("ftp://llm.example/v1", "no address"),
        ("https://llm.example:port/v1", "no address"),
        ("https:///v1", "no address"),
        ("https://two words.example/v1", "no address"),
        ("https://two..dots.example/v1", "no address"),
        ("", "no address"),
    ],
)
def test_other_addresses_are_refused_in_words_without_their_password(
    address: str, word: str
) -> None:
    with pytest.raises(RunStops, match=word) as caught:
        check_address(address)
    assert "secret" not in str(caught.value)
