"""The endpoint of a server that speaks the OpenAI API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.configuration import TIMEOUT
from mast_tui.judges.llm.client.hosts import check_address, host_of
from mast_tui.judges.llm.client.keys import DEFAULT_VARIABLE, scrub
from mast_tui.safe_text import one_line

MOST_PROBLEM_CHARS: Final = 300
"""The most code points of a server's text in a message."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server, the key, and the settings of requests.

    Attributes:
        base_url: The address, such as ``https://api.openai.com/v1``. Its query is sent with each
            request (Azure's ``api-version``).
        api_key: The key, which is sent to this address only: redirects are not followed.
        key_variable: The environment variable of the key, for messages.
        timeout: The most seconds for a whole answer.
        allow_http: True if requests to another machine may be unencrypted.
        headers: Further headers of each request.

    Raises:
        RunStops: The address is not allowed; the message says why.
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
        """The name of the server, for messages."""
        return host_of(self.base_url)

    def clean(self, text: str) -> str:
        """Remove the key from a text of the server or the SDK, and shorten it for a message."""
        return one_line(scrub(text, self.api_key).strip().rstrip("."), MOST_PROBLEM_CHARS)
