"""HTTP connections that read responses up to a maximum size, also compressed responses."""

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
"""The most bytes of an uncompressed response; an answer of 32,000 tokens has 130,000."""

CONNECT_SECONDS: Final = 10.0
"""The most seconds for a connection."""

_TRANSFER_HEADERS: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""The headers on the transfer of a body, which do not hold after it was read."""


class ResponseTooLarge(httpx2.RequestError):
    """A response that is too large, or compressed more than once."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """An HTTP client whose responses have a whole, uncompressed body of at most ``max_bytes``.

    Parameters of the content type are removed: with a name such as ``zlib`` or ``punycode`` as the
    character set, the text would be decompressed again, or would take very long to decode.

    Raises:
        ResponseTooLarge: A body is longer, or compressed more than once.
    """

    max_bytes: int = MOST_BYTES

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request and return the response, read to its end.

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
            # The character set of the content type could make the text very slow to decode.
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
    # Decompressed twice, one received part could fill the memory before it is counted.
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

    It uses no proxy for a server on this machine.

    Args:
        endpoint: The endpoint of the server.
        kind: The class of the HTTP client, which limits the bytes of a response.

    Raises:
        RunStops: The address or a proxy is not valid.
    """
    address = urlsplit(endpoint.base_url.strip())
    headers = dict(endpoint.headers)
    if is_azure(endpoint.base_url):
        headers = {"api-key": endpoint.api_key, **headers}  # older addresses accept no bearer token
    limits = openai.Timeout(endpoint.timeout, connect=min(CONNECT_SECONDS, endpoint.timeout))
    problem = None  # raised outside the handler, without the error, which may contain the key
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
    """Make the HTTP client; a server on this machine is reached without proxies."""
    if not is_this_machine(base_url):
        return kind(timeout=limits, follow_redirects=False)
    is_unencrypted = base_url.strip().lower().startswith("http:")
    return kind(
        timeout=limits,
        follow_redirects=False,
        trust_env=False,
        # Faster start: without encryption, the certificates need not be read.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_unencrypted else True,
    )
