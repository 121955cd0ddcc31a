"""The server of the page: the standard library's, on this machine alone unless asked otherwise.

There are a few files and questions. A name is looked up in a table, never in a folder, so no
address reads another file.
"""

import contextlib
import importlib.resources
import ipaddress
import json
import re
import socket
import socketserver
import time
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hvin_jax._extras import MissingExtraError
from hvin_jax.play import answers
from hvin_jax.play.worker import BusyError, Worker

MOST_BYTES = 2**20
# Bytes of a refused request that are read all the same, and seconds that this may take.
_MOST_DROPPED, _LINGER = 2**25, 2
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/play.css": ("play.css", "text/css; charset=utf-8"),
    "/play.js": ("play.js", "text/javascript; charset=utf-8"),
    "/state.js": ("state.js", "text/javascript; charset=utf-8"),
    "/picture.js": ("picture.js", "text/javascript; charset=utf-8"),
    "/saving.js": ("saving.js", "text/javascript; charset=utf-8"),
    "/theme.js": ("theme.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_NAMES = {"localhost", "127.0.0.1", "::1"}


class _Refused(Exception):
    """A request that is refused, with a status and a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class PlayServer(ThreadingHTTPServer):
    """Serves the page and answers it; planning happens in one thread."""

    daemon_threads = True
    request_queue_size = 512  # so many may knock at once: all get an answer, if only "busy"

    def __init__(self, host: str, port: int, planners: answers.Answers) -> None:
        """Binds to a port of a host; 0: any that is free."""
        self.planners, self.worker, self.host = planners, Worker(), host
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)  # closes itself if it can't
        self.worker.ask("", planners.warm_up)

    def server_bind(self) -> None:
        """Without the standard library's question for the name of this machine, which may hang."""
        socketserver.TCPServer.server_bind(self)

    @property
    def address(self) -> str:
        """Where the page is."""
        name = "127.0.0.1" if self.host in ("", "0.0.0.0") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.server_address[1]}/"

    def server_close(self) -> None:
        """Ends the planning, too."""
        super().server_close()
        self.worker.stop()

    def serves(self, name: str) -> bool:
        """Whether a request may call this server so.

        A page elsewhere can make a name of its own point to this machine; it can't do so with an
        address of numbers.
        """
        if name in _NAMES or name == self.host:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.host in ("", "0.0.0.0", "::")


class _Handler(BaseHTTPRequestHandler):
    server: PlayServer
    server_version, sys_version = "hvin", ""
    protocol_version = "HTTP/1.1"
    timeout = 20  # seconds that a request may take to arrive

    def do_GET(self) -> None:
        """A file of the page, or what there is."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """A question with a map."""
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the terminal belongs to the user."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no HTTP, or asks for another method, gets a sentence, too."""
        del explain
        self.close_connection = True
        sentence = message or HTTPStatus(code).phrase
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, sentence = HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are answered"
        self._send(HTTPStatus(code), "application/json", _json({"error": sentence[:200]}))

    def _answer(self, how: Callable[[], tuple[str, bytes]]) -> None:
        try:
            self._check_origin()
            kind, content = how()
            self._send(HTTPStatus.OK, kind, content)
        except _Refused as error:
            self._fail(error.status, str(error))
        except BusyError as error:
            self._fail(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except (ValueError, MissingExtraError) as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, f"a mistake of hvin play: {error!r}"[:200])

    def _fail(self, status: HTTPStatus, sentence: str) -> None:
        self.close_connection = True  # of its body nothing may have been read
        self._send(status, "application/json", _json({"error": sentence}))
        self._linger()

    def _linger(self) -> None:
        """Drops what still comes: closing before would cut off the answer, too."""
        left, end = _MOST_DROPPED, time.monotonic() + _LINGER
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_LINGER)
            while left > 0 and time.monotonic() < end and (got := self.rfile.read1(2**16)):
                left -= len(got)

    def _check_origin(self) -> None:
        host = self.headers.get("Host", "")
        try:
            name = urllib.parse.urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if not self.server.serves(name):
            raise _Refused(HTTPStatus.FORBIDDEN, "this page is not served under that name")
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            raise _Refused(HTTPStatus.FORBIDDEN, "other pages may not ask this one")

    def _get(self) -> tuple[str, bytes]:
        path, _, query = self.path.partition("?")
        if path in _FILES:
            name, kind = _FILES[path]
            folder = importlib.resources.files("hvin_jax.play") / "static"
            return kind, (folder / name).read_bytes()
        if path == "/api/info":
            return "application/json", _json(self.server.planners.info())
        if path == "/api/sample":
            words = dict(urllib.parse.parse_qsl(query))
            side, seed = (_number(name, words.get(name, "")) for name in ("side", "seed"))
            family = words.get("family", "")
            return "application/json", _json(answers.sample(family, side, seed))
        raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def _post(self) -> tuple[str, bytes]:
        path, _, query = self.path.partition("?")
        if path not in ("/api/think", "/api/gif", "/api/text", "/api/png"):
            raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        content = self._body()
        if path == "/api/text":
            return "application/json", _json(answers.read_text(content))
        if path == "/api/png":
            cell = _number("cell", dict(urllib.parse.parse_qsl(query)).get("cell", "0"))
            return "application/json", _json(answers.read_png(content, cell))
        if self.headers.get_content_type() != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        asked = _object(content)
        page = asked.get("page")
        if not isinstance(page, str) or not 1 <= len(page) <= 64:
            raise answers.Asked("a question must say which page asks, in a word")
        if path == "/api/gif":
            film = self.server.worker.ask(f"gif of {page}", lambda: self.server.planners.gif(asked))
            if (picture := film.wait()) is None:
                raise _Refused(HTTPStatus.CONFLICT, "this page has asked for a newer film")
            return "image/gif", picture
        job = self.server.worker.ask(page, lambda: self.server.planners.think(asked))
        found = job.wait()
        return "application/json", _json({"overtaken": True} if found is None else found)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,18}", length):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "say how long the request is")
        if int(length) > MOST_BYTES:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected {MOST_BYTES:,} bytes at most"
            )
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise ConnectionError
        return content

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        headers = {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _object(content: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise answers.Asked("the request is no JSON") from error
    if not isinstance(asked, dict):
        raise answers.Asked("the request must be a JSON object")
    return asked


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise answers.Asked(f"{name} must be a whole number, not {text[:20]!r}")
    return int(text)


def _json(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False).encode()
