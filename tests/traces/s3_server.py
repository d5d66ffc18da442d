"""An S3 of the tests' own: it lists, gives and takes objects, and fails as it is told to.

Whoever asks by plain HTTP finds the objects too, as on any web server.

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

Trouble = Literal["busy", "cut", "slow", "refused"]

_REASONS = {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown"}


class S3Server(ThreadingHTTPServer):
    """Objects by ``bucket/key``; each trouble is had with one request for an object, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.troubles: list[Trouble] = []
        self.asked: list[str] = []
        self.ranges = True
        self.secrets: tuple[str, str] | None = None
        """User with password and query that each request needs; None where anybody may read."""
        self.over = Event()

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
    """A server, as long as it is needed."""
    with S3Server() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Give a list, or an object or a part of it."""
        asked = urlsplit(self.path)
        name, query = unquote(asked.path).strip("/"), parse_qs(asked.query)
        self.server.asked.append(f"{self.command} {self.path}")
        if "list-type" in query:
            self._list(name, query.get("prefix", [""])[0], query.get("delimiter", [""])[0])
            return
        trouble = None
        if self.command == "GET" and self.server.troubles:
            trouble = self.server.troubles.pop(0)
        data = self.server.objects.get(name)
        if self.server.secrets is not None:
            user, secret = self.server.secrets
            sent = self.headers.get("Authorization", "")
            if secret not in asked.query or sent != f"Basic {b64encode(user.encode()).decode()}":
                trouble = "refused"
        if trouble == "slow":
            self.server.over.wait()  # whoever asked goes away before
        if trouble in ("busy", "refused"):
            self._fail(503 if trouble == "busy" else 403)
        elif data is None:
            self._fail(404)
        else:
            self._give(data, cut=trouble == "cut")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        """Take an object."""
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.objects[unquote(urlsplit(self.path).path).strip("/")] = data
        self._answer(200, b"", {"ETag": _tag(data)})

    def _give(self, data: bytes, *, cut: bool) -> None:
        headers = {"ETag": _tag(data), "Last-Modified": formatdate(0, usegmt=True)}
        status, part = 200, data
        if self.server.ranges and (wanted := self.headers.get("Range")):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            end = min(int(last) + 1 if last else len(data), len(data))
            status, part = 206, data[int(first) : end]
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
        self._answer(status, part, headers, sent=len(part) // 2 if cut else None)
        self.close_connection = cut

    def _list(self, bucket: str, prefix: str, delimiter: str) -> None:
        rows, folders = [], set()
        for name, data in sorted(self.server.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if not name.startswith(f"{bucket}/{prefix}"):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
                continue
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                f"<ETag>{escape(_tag(data))}</ETag>"
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
        self._answer(200, body.encode(), {"Content-Type": "application/xml"})

    def _fail(self, status: int) -> None:
        body = f"<Error><Code>{_REASONS[status]}</Code><Message>no</Message></Error>"
        self._answer(status, body.encode(), {"Content-Type": "application/xml"})

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str], sent: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # of whoever was let wait
                self.wfile.write(body[:sent])


def _tag(data: bytes) -> str:
    return f'"{md5(data).hexdigest()}"'
