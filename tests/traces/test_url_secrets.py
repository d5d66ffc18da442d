"""User, password and query of a URL: used for reading, never stored, printed or exported."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from mast_tui.errors import MastError
from mast_tui.team.postgresql import parameters_of
from mast_tui.traces.io.named_paths import paths_of
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.io.url_secrets import AddressBook
from mast_tui.traces.scan.scanning import Unit


def test_the_error_of_a_malformed_workspace_address_shows_the_format() -> None:
    with pytest.raises(MastError, match="write postgresql://USER@HOST/DATABASE") as error:
        parameters_of("postgresql://ada:SECRET%zz@host/labels")
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize(
    ("typed", "public"),
    [
        ("https://u:p@h:8080/a.json?sig=1&x=2#f", "https://h:8080/a.json"),
        ("https://token@h/a.json", "https://h/a.json"),
        ("https://u:p@ss@h/a.json", "https://h/a.json"),
        ("https://h:8080/a@b.json", "https://h:8080/a@b.json"),
        ("https://h/a.json?mail=a@b.c/d", "https://h/a.json"),
        ("s3://AKIA:ab/cd+e@bucket/a.json", "s3://bucket/a.json"),
        ("s3://bucket/a.json?versionId=7", "s3://bucket/a.json"),
        ("s3://bucket/run#1?.json", "s3://bucket/run#1?.json"),
        ("abfs://container@account.net/a.json", "abfs://container@account.net/a.json"),
        (
            "zip://in/a@b?c=d.json::https://u:p@h/a.zip?x=1",
            "zip://in/a@b?c=d.json::https://h/a.zip",
        ),
        ("zip://a@b?c=d.json::/tmp/u:p@h?x=1.zip", "zip://a@b?c=d.json::/tmp/u:p@h?x=1.zip"),
    ],
)
def test_a_path_without_secrets_reads_with_the_whole_url(typed: str, public: str) -> None:
    addresses = AddressBook()
    assert addresses.remember(typed) == public
    full_url = typed.replace("AKIA:ab/cd+e@", "")  # stores take keys from elsewhere
    assert addresses.full_url(public) == full_url
    assert AddressBook(typed).full_url(public) == full_url
    path = trace_path(typed)
    assert str(path) == public
    assert str(pickle.loads(pickle.dumps(path))) == public


def test_files_below_a_host_are_read_with_its_user() -> None:
    addresses = AddressBook("https://u:p@h/runs")
    assert addresses.full_url("https://h/runs/a.json") == "https://u:p@h/runs/a.json"
    assert addresses.full_url("https://other/runs/a.json") == "https://other/runs/a.json"


def test_another_process_reads_with_the_whole_url() -> None:
    unit = Unit(trace_path("https://u:p@sent/a.json?sig=1"), (Path("b.json"),), named=True)
    sent = pickle.dumps(unit)
    assert sent.count(b"https://u:p@sent/a.json?sig=1") >= 1
    assert pickle.loads(sent) == unit


def test_two_signed_urls_of_one_object_are_one_path() -> None:
    signed = [f"https://h/a.json?X-Amz-Signature={n}&X-Amz-Date={n}" for n in range(2)]
    assert trace_path(signed[0]) == trace_path(signed[1])
    assert [*paths_of(*signed)] == [trace_path("https://h/a.json")]


def test_two_objects_that_differ_only_in_the_query_are_refused() -> None:
    with pytest.raises(MastError, match="different queries") as error:
        [*paths_of("https://h/download?id=5", "https://h/download?id=6")]
    assert "id=" not in str(error.value)


def test_messages_keep_other_parts_of_a_url() -> None:
    addresses = AddressBook()
    text = "write postgresql://USER@HOST/DATABASE; see https://host/page#part, s3://bucket/a.json"
    assert addresses.without_secrets(text) == text
    error = "403, url='http://u:p@h/a.json?sig=1', postgresql://ada:pw@h/db?sslmode=require"
    assert addresses.without_secrets(error) == (
        "403, url='http://h/a.json', postgresql://ada@h/db?sslmode=require"
    )
    addresses.remember("https://ada:p%40ss@h/a.json?sig=abcdef")
    assert addresses.without_secrets("p@ss sig=abcdef") == "… …"
    assert json.loads(addresses.without_secrets('{"a": "b"}')) == {"a": "b"}
