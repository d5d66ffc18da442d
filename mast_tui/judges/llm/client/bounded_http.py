"""Reading what a server sends only as far as an answer can go, however it was packed."""

from __future__ import annotations

from typing import Any, Final

import httpx2
import openai

MOST_BYTES: Final = 2 << 20
"""How long an answer or an error may be, unpacked; an answer of 32,000 tokens has 130,000."""

_READ_ANEW: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that tell how a body was sent, and no longer hold for one that was read."""


class ResponseTooLarge(httpx2.RequestError):
    """A server sends more than an answer can be, or packs it in a way that nobody asked for."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """Hands out responses whose body is there, whole and unpacked, of ``most`` bytes at most.

    Of a content type only the type is left: with a name such as ``zlib`` or ``punycode`` in the
    place of a character set the text would be unpacked once more, or take for ever to be read.

    Raises:
        TooMuch: a body is longer, or packed more than once, in words.
    """

    most: int = MOST_BYTES

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request and read the response to its end."""
        response = await super().send(request, stream=True, **options)
        try:
            content = await _content(response, self.most)
        finally:
            await response.aclose()
        headers = [
            (name, value.split(";")[0] if name == "content-type" else value)
            for name, value in response.headers.multi_items()
            if name not in _READ_ANEW
        ]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=content,
            request=response.request,
            extensions=response.extensions,
        )


async def _content(response: httpx2.Response, most: int) -> bytes:
    packings = response.headers.get_list("content-encoding", split_commas=True)
    if len([packing for packing in packings if packing.strip().lower() != "identity"]) > 1:
        raise ResponseTooLarge("it packs its answer more than once")
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > most:
            raise ResponseTooLarge(f"its answer is longer than {most >> 20} MB")
    return bytes(content)
