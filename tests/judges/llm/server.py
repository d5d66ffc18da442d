"""A local server that speaks the OpenAI chat API and misbehaves as scripted.

with ModelServer(lambda body, n: status(429) if n == 0 else answer("{}")) as server:
    ...  # ask server.base_url, then look at server.chats
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

MODEL: Final = "test-model"

LONGEST_HOLD: Final = 20.0
"""The longest time in seconds that an answer is held, so that a failing test ends."""


@dataclass(frozen=True, slots=True)
class Action:
    """An answer to one request.

    The server waits ``delay`` seconds, and until ``together`` requests have been running at once;
    then it sends ``status``, ``headers`` and ``body``. ``cut_after`` ends the connection after so
    many bytes of the body (``reset``: with a reset), ``drip`` sends one byte in so many seconds.
    ``silent`` never answers, ``close`` closes the connection. ``endless`` repeats the body.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    delay: float = 0.0
    together: int = 0
    cut_after: int | None = None
    reset: bool = False
    drip: float | None = None
    silent: bool = False
    close: bool = False
    endless: bool = False

    def after(self, seconds: float) -> Action:
        return replace(self, delay=seconds)

    def when_together(self, requests: int) -> Action:
        """Return the same action, done once this many requests run together."""
        return replace(self, together=requests)

    def cut(self, after: int, *, reset: bool = False) -> Action:
        """Return the same action, with the connection closed after this many bytes of the body."""
        return replace(self, cut_after=after, reset=reset)

    def dripping(self, seconds: float) -> Action:
        """Return the same action, with one byte sent in this many seconds."""
        return replace(self, drip=seconds)


Script = Callable[[dict[str, object], int], Action]
"""Returns the answer to the body of the ``n``-th chat request (from 0), in the server's thread."""


def document(value: object, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Action:
    """Answer with any JSON value."""
    return Action(code, json.dumps(value).encode(), tuple((headers or {}).items()))


def answer(
    text: object,
    *,
    tokens_in: int | None = 100,
    tokens_out: int = 50,
    tokens_cached: int = 0,
    finish: str | None = "stop",
    **message: object,
) -> Action:
    """Answer with a text; without a usage where ``tokens_in`` is None."""
    content = {"role": "assistant", "content": text, **message}
    value: dict[str, object] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": content, "finish_reason": finish}],
    }
    if tokens_in is not None:
        value["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
            "prompt_tokens_details": {"cached_tokens": tokens_cached},
        }
    return document(value)


def status(
    number: int,
    message: str = "no",
    /,
    *,
    headers: Mapping[str, str] | None = None,
    **error: object,
) -> Action:
    """Answer with an error of OpenAI; ``error`` adds fields such as ``code`` or ``param``."""
    return document({"error": {"message": message, **error}}, code=number, headers=headers)


def raw(body: bytes, *, code: int = 200, content_type: str = "application/json") -> Action:
    return Action(code, body, content_type=content_type)


def html(code: int = 200) -> Action:
    return raw(b"<!doctype html><title>hello</title>", code=code, content_type="text/html")


def empty(code: int = 200) -> Action:
    return raw(b"", code=code)


def endless(body: bytes = b" " * 65_536, *, code: int = 200) -> Action:
    return Action(code, body, endless=True)


def zipped(megabytes: int, *, code: int = 200) -> Action:
    """Answer with megabytes of spaces, compressed to about a thousandth.

    The end of the compressed data is missing: no client should read so far.
    """
    compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    head = compressor.compress(b"") + compressor.flush(zlib.Z_FULL_FLUSH)
    # After a full flush nothing refers to what came before, so the same bytes can be repeated.
    block = compressor.compress(b" " * 2**20) + compressor.flush(zlib.Z_FULL_FLUSH)
    return Action(code, head + block * megabytes, (("content-encoding", "gzip"),))


def hang() -> Action:
    return Action(silent=True)


def close() -> Action:
    return Action(close=True)


@dataclass(slots=True)
class Seen:
    """A request; ``ended`` is None while it is running, and times are monotonic."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, object]
    started: float
    ended: float | None = None

    @property
    def is_chat(self) -> bool:
        return self.path.split("?")[0].endswith("/chat/completions")


class ModelServer:
    """A loopback server in a ``with`` block that records every request.

    Attributes:
        script: The answers to chat requests; may be replaced at any time.
        models: The names that ``/v1/models`` lists; None for an error 404.
        listing: Another answer of ``/v1/models``.
        desk: Answers other requests, from the request and its bytes.
    """

    def __init__(
        self, script: Script | None = None, *, models: Sequence[str] | None = (MODEL,)
    ) -> None:
        self.script: Script = script or (lambda _body, _n: answer("{}"))
        self.models = models
        self.listing: Action | None = None
        self.desk: Callable[[Seen, bytes], Action | None] | None = None
        self._seen: list[Seen] = []
        self._chats = 0
        self._running = 0
        self._most = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="model-server", daemon=True)
        self._port = 0
        self._handlers: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Event | None = None
        self._changed: asyncio.Condition | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60), "the server has not begun to listen"
        return self

    def __exit__(self, *_error: object) -> None:
        stop = self._stop
        assert stop is not None
        self._loop.call_soon_threadsafe(stop.set)
        self._thread.join()

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> list[Seen]:
        return list(self._seen)

    @property
    def chats(self) -> list[Seen]:
        return [seen for seen in self.requests if seen.is_chat]

    @property
    def most_in_flight(self) -> int:
        """The largest number of chat requests at a time."""
        return self._most

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        self._changed = asyncio.Condition()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**20)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._one_request(reader, writer):
                    pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _one_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; return True if the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        plain = "multipart" not in headers.get("content-type", "")
        body = json.loads(content) if content and plain else {}
        seen = Seen(method, path, headers, body, time.monotonic())
        self._seen.append(seen)
        try:
            special = None if self.desk is None or seen.is_chat else self.desk(seen, content)
            if special is not None:
                return await self._send(special, reader, writer)
            if not seen.is_chat:
                return await self._send(self._models(path), reader, writer)
            return await self._chat(body, reader, writer)
        finally:
            seen.ended = time.monotonic()

    async def _chat(
        self, body: dict[str, object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        n = self._chats
        self._chats += 1
        await self._count(1)
        try:
            return await self._send(self.script(body, n), reader, writer)
        finally:
            await self._count(-1)

    async def _count(self, change: int) -> None:
        assert self._changed is not None
        self._running += change
        self._most = max(self._most, self._running)
        async with self._changed:
            self._changed.notify_all()

    def _models(self, path: str) -> Action:
        if self.listing is not None:
            return self.listing
        if self.models is None or not path.split("?")[0].endswith("/models"):
            return html(404)
        names = [{"id": name, "object": "model"} for name in self.models]
        return document({"object": "list", "data": names})

    async def _hold(self, action: Action) -> None:
        assert self._changed is not None
        if action.delay:
            await asyncio.sleep(action.delay)
        if action.together:
            async with self._changed:
                with suppress(TimeoutError):
                    await asyncio.wait_for(
                        self._changed.wait_for(lambda: self._most >= action.together), LONGEST_HOLD
                    )

    async def _send(
        self, action: Action, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        await self._hold(action)
        if action.silent:
            await reader.read()  # ends when the client goes away, or with the server
        if action.silent or action.close:
            return False
        lines = [
            f"HTTP/1.1 {action.status} Scripted",
            f"content-type: {action.content_type}",
            "connection: close" if action.endless else f"content-length: {len(action.body)}",
            *(f"{name}: {value}" for name, value in action.headers),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        await self._send_body(action, writer)
        if action.reset:
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return action.cut_after is None

    async def _send_body(self, action: Action, writer: asyncio.StreamWriter) -> None:
        while action.endless:
            writer.write(action.body)
            await writer.drain()
            await asyncio.sleep(action.drip or 0)
        body = action.body if action.cut_after is None else action.body[: action.cut_after]
        if action.drip is None:
            writer.write(body)
            await writer.drain()
            return
        for byte in body:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(action.drip)
