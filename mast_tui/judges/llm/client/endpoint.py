"""The endpoint of a server that speaks the OpenAI API: where it is, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.configuration import TIMEOUT
from mast_tui.judges.llm.client.hosts import check_address, host_of
from mast_tui.judges.llm.client.keys import DEFAULT_VARIABLE, scrub
from mast_tui.safe_text import one_line

WORDS: Final = 300
"""Code points of a server's words in a message."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked, and with which key.

    ``base_url`` is such as ``https://api.openai.com/v1`` and ``api_key`` is sent there and
    nowhere else: redirects are not followed. What stands behind a ``?`` in the address goes with
    each request (Azure's ``api-version``), as ``headers`` do. ``key_variable`` is named where the
    key is refused, ``timeout`` is in seconds for one whole answer, and ``allow_http`` says that
    another machine may be asked in the clear.

    Raises:
        RunStops: The address cannot be asked, in words.
    """

    base_url: str
    api_key: str = field(repr=False)
    key_variable: str = DEFAULT_VARIABLE
    timeout: float = TIMEOUT
    allow_http: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_address(self.base_url, allow_http=self.allow_http)

    @property
    def host(self) -> str:
        """The server's name, for people."""
        return host_of(self.base_url)

    def clean(self, text: str) -> str:
        """A text of the server or the library, without the key and fit for a message."""
        return one_line(scrub(text, self.api_key).strip().rstrip("."), WORDS)
