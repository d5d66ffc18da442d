"""HTTP connections that read responses only up to a maximum size."""

from __future__ import annotations

import ssl
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2
import openai

from mast_tui.judges.llm.client.endpoint import (
    MOST_PROBLEM_CHARS,
    Endpoint,
    is_azure,
    is_this_machine,
    scrub,
)
from mast_tui.judges.llm.request import RunStops
from mast_tui.safe_text import one_line

MOST_BYTES: Final = 2 << 20
"""The most bytes of an uncompressed response. An answer of 32,000 tokens has 130,000."""

CONNECT_SECONDS: Final = 10.0
"""The most seconds to establish a connection."""

_TRANSFER_HEADERS: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""The headers about the transfer of a body, which are wrong for the uncompressed body."""


class ResponseTooLarge(httpx2.RequestError):
    """A response that is too large, or compressed more than once."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """An HTTP client that reads at most ``max_bytes`` of an uncompressed body.

    Raises:
        ResponseTooLarge: A body is longer, or compressed more than once.
    """

    max_bytes: int = MOST_BYTES

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request, and read the whole response.

        Args:
            request: The request.
            stream: Ignored; the response is always read.
            options: Further options of the base class.
        """
        response = await super().send(request, stream=True, **options)
        try:
            content = await _read_content(response, self.max_bytes)
        finally:
            await response.aclose()
        headers = [
            # A character set such as ``zlib`` or ``punycode`` could make the text decompress again
            # or decode very slowly.
            (name, value.split(";")[0] if name == "content-type" else value)
            for name, value in response.headers.multi_items()
            if name not in _TRANSFER_HEADERS
        ]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=content,
            request=response.request,
            extensions=response.extensions,
        )


async def _read_content(response: httpx2.Response, max_bytes: int) -> bytes:
    """Read the content of a response.

    Raises:
        ResponseTooLarge: The content is too long, or compressed more than once.
    """
    encodings = response.headers.get_list("content-encoding", split_commas=True)
    # After double compression, a single part could fill the memory before it is counted.
    if sum(encoding.strip().lower() != "identity" for encoding in encodings) > 1:
        raise ResponseTooLarge("its answer is compressed more than once")
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > max_bytes:
            raise ResponseTooLarge(f"its answer is longer than {max_bytes >> 20} MB")
    return bytes(content)


def openai_client(
    endpoint: Endpoint, kind: type[BoundedClient] = BoundedClient
) -> openai.AsyncOpenAI:
    """Make a client of the OpenAI SDK, without retries and redirects.

    Args:
        endpoint: The endpoint of the server.
        kind: The class of the HTTP client.

    Raises:
        RunStops: The address or a proxy is not valid.
    """
    address = urlsplit(endpoint.base_url.strip())
    headers = dict(endpoint.headers)
    if is_azure(endpoint.base_url):
        headers = {"api-key": endpoint.api_key, **headers}  # older addresses accept no bearer token
    limits = openai.Timeout(endpoint.timeout, connect=min(CONNECT_SECONDS, endpoint.timeout))
    problem = None  # raised outside the handler, because the error may contain the key
    try:
        client = openai.AsyncOpenAI(
            api_key=endpoint.api_key,
            base_url=urlunsplit(address._replace(query="", fragment="")),
            timeout=limits,
            max_retries=0,
            http_client=_http_client(endpoint.base_url, limits, kind),
            default_headers=headers,
            default_query=dict(parse_qsl(address.query)),
        )
    except (ValueError, ImportError, httpx2.InvalidURL, openai.OpenAIError) as error:
        problem = one_line(scrub(str(error), endpoint.api_key), MOST_PROBLEM_CHARS)
    if problem is not None:
        raise RunStops(
            f"{endpoint.host} cannot be reached; check the address and the proxies: {problem}"
        )
    if endpoint.host.partition(":")[0] != "api.openai.com":
        # The account in the environment is for OpenAI only.
        client.organization = None
        client.project = None
    return client


def _http_client(
    base_url: str, limits: openai.Timeout, kind: type[BoundedClient]
) -> httpx2.AsyncClient:
    """Make the HTTP client; it uses no proxies for a server on this machine."""
    if not is_this_machine(base_url):
        return kind(timeout=limits, follow_redirects=False)
    is_unencrypted = base_url.strip().lower().startswith("http:")
    return kind(
        timeout=limits,
        follow_redirects=False,
        trust_env=False,
        # Without encryption, no certificates are needed, and reading them is slow.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_unencrypted else True,
    )
