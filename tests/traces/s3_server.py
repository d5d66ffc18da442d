"""A small S3 server that lists, sends and stores objects, and fails on request.

Plain HTTP requests get the objects too, as from any web server.

``moto`` would be 100 MB and half a minute of installing for the four requests that are sent here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

Failure = Literal["busy", "cut", "slow", "refused"]

_REASONS = {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown"}


class S3Server(ThreadingHTTPServer):
    """A server of objects by ``bucket/key``; each of ``failures`` is for one request, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.failures: list[Failure] = []
        self.requests: list[str] = []
        self.ranges = True
        self.credentials: tuple[str, str] | None = None
        """User with password, and query, that each request needs; None if all may read."""
        self.stopped = Event()

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of s3fs."""
        return {
            "endpoint_url": f"http://127.0.0.1:{self.server_port}",
            "key": "k",
            "secret": "s",
            "config_kwargs": {"read_timeout": 1.5, "retries": {"max_attempts": 2}},
        }


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server in a thread."""
    with S3Server() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.stopped.set()
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Server

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Send a list, or an object or a part of it."""
        url = urlsplit(self.path)
        name = unquote(url.path).strip("/")
        query = parse_qs(url.query)
        self.server.requests.append(f"{self.command} {self.path}")
        if "list-type" in query:
            self._send_list(name, query.get("prefix", [""])[0], query.get("delimiter", [""])[0])
            return
        failure = None
        if self.command == "GET" and self.server.failures:
            failure = self.server.failures.pop(0)
        data = self.server.objects.get(name)
        if self.server.credentials is not None:
            user, secret = self.server.credentials
            sent = self.headers.get("Authorization", "")
            if secret not in url.query or sent != f"Basic {b64encode(user.encode()).decode()}":
                failure = "refused"
        if failure == "slow":
            self.server.stopped.wait()  # the client closes the connection before
        if failure in ("busy", "refused"):
            self._fail(503 if failure == "busy" else 403)
        elif data is None:
            self._fail(404)
        else:
            self._send_object(data, cut=failure == "cut")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        """Store an object."""
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.objects[unquote(urlsplit(self.path).path).strip("/")] = data
        self._send(200, b"", {"ETag": _etag(data)})

    def _send_object(self, data: bytes, *, cut: bool) -> None:
        headers = {"ETag": _etag(data), "Last-Modified": formatdate(0, usegmt=True)}
        status = 200
        part = data
        if self.server.ranges and (requested_range := self.headers.get("Range")):
            first, _, last = requested_range.removeprefix("bytes=").partition("-")
            end = min(int(last) + 1 if last else len(data), len(data))
            status = 206
            part = data[int(first) : end]
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
        self._send(status, part, headers, sent=len(part) // 2 if cut else None)
        self.close_connection = cut

    def _send_list(self, bucket: str, prefix: str, delimiter: str) -> None:
        rows = []
        folders = set()
        for name, data in sorted(self.server.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if not name.startswith(f"{bucket}/{prefix}"):
                continue
            subpath = key[len(prefix) :]
            if delimiter and delimiter in subpath:
                folders.add(prefix + subpath.split(delimiter)[0] + delimiter)
                continue
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                f"<ETag>{escape(_etag(data))}</ETag>"
                "<LastModified>1970-01-01T00:00:00Z</LastModified></Contents>"
            )
        rows += [
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in folders
        ]
        body = (
            '<?xml version="1.0"?><ListBucketResult>'
            f"<Name>{bucket}</Name><KeyCount>{len(rows)}</KeyCount>"
            f"<IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>"
        )
        self._send(200, body.encode(), {"Content-Type": "application/xml"})

    def _fail(self, status: int) -> None:
        body = f"<Error><Code>{_REASONS[status]}</Code><Message>no</Message></Error>"
        self._send(status, body.encode(), {"Content-Type": "application/xml"})

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], sent: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # of a client that no longer waits
                self.wfile.write(body[:sent])


def _etag(data: bytes) -> str:
    return f'"{md5(data).hexdigest()}"'
