"""A page for a review, for one browser of this machine, and nothing else.

It listens on 127.0.0.1 alone. Any other page and any other user may send requests there, too: each
needs the token of the address that was printed, and one of another host's page (DNS rebinding) or
origin is refused. What stands in a text is never HTML: the page gets it as JSON, and sets text. The
page may load nothing and send nothing elsewhere.
"""

import hmac
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import jinja2
import orjson
from pydantic import Field, ValidationError

from confide.reviews.marks import Model
from confide.reviews.session import Session

HOST = "127.0.0.1"
LONGEST = 10_000  # bytes of a request
PATIENCE = 30  # seconds that a connection may take for one
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
POLICY = (
    "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
Place = Annotated[int, Field(ge=0, le=1 << 40)]


class Request(Model):
    """What the page asks for: an action on a text, on a part of it, or on a span of the policy."""

    do: Literal["show", "add", "remove", "vain", "read", "undo"]
    index: Place
    start: Place = 0
    end: Place = 0
    number: Place = 0
    label: str = ""


def answer(session: Session, request: Request) -> dict[str, Any]:
    """Do what the page asks for; the text that it shows then, and what was wrong."""
    index = request.index
    session.text(index)  # whether there is one
    problem = None
    if request.do == "add":
        problem = session.add(index, [(request.start, request.end)], request.label)
    elif request.do == "remove":
        problem = session.remove(index, request.start, request.end)
    elif request.do == "vain":
        problem = session.in_vain(index, request.number)
    elif request.do == "read":
        session.read(index)
        index = min(index + 1, len(session.sample.texts) - 1)
    elif request.do == "undo":
        before = session.undo()
        problem = None if before is not None else "nothing to undo"
        index = index if before is None else before
    return session.view(index) | {"problem": problem}


def page(session: Session, nonce: str) -> str:
    """The page itself, which holds no text of the corpus."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = Path(__file__).with_suffix(".jinja").read_text(encoding="utf-8")
    first = session.next_unread() or 0
    return environment.from_string(template).render(
        nonce=nonce, labels=session.review.labels, first=first
    )


class Server(ThreadingHTTPServer):
    """Serves one review at a random port; `address` is for the person alone."""

    daemon_threads = True

    def __init__(self, session: Session):
        super().__init__((HOST, 0), Handler)
        self.session = session
        self.token = secrets.token_urlsafe(32)
        self.lock = threading.Lock()  # one change at a time
        self.authority = f"{HOST}:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{self.authority}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a request that failed: what Python says may quote it."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    timeout = PATIENCE
    server_version = "confide"
    sys_version = ""

    def do_GET(self) -> None:
        """The page, at its own address alone."""
        if self.refused():
            return
        nonce = secrets.token_urlsafe(16)
        text = page(self.server.session, nonce).encode()
        self.send(
            200, "text/html; charset=utf-8", text, {"Content-Security-Policy": POLICY.format(nonce)}
        )

    def do_POST(self) -> None:
        """What the page asks for, as JSON, from its own origin alone."""
        if self.refused(needs_origin=True):
            return
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Content-Type") != "application/json":
            self.refuse(415, "expected application/json")
        elif not length.isascii() or not length.isdigit() or int(length) > LONGEST:
            self.refuse(413, "too long, or of no known length")
        else:
            self.act(self.rfile.read(int(length)))

    def act(self, body: bytes) -> None:
        """Do what the body of a request asks for."""
        try:
            request = Request.model_validate_json(body)
            with self.server.lock:
                reply = answer(self.server.session, request)
        except (ValidationError, IndexError):
            self.refuse(400, "not what the page asks for")
            return
        except Exception:
            self.refuse(500, "could not be saved: see the folder of the review")
            return
        self.send(200, "application/json", orjson.dumps(reply), {})

    def refused(self, *, needs_origin: bool = False) -> bool:
        """Whether a request is not from the page, which is then said."""
        origin = self.headers.get("Origin")
        address = f"http://{self.server.authority}"
        site = self.headers.get("Sec-Fetch-Site", "none")
        path = urlsplit(self.path).path.encode(errors="replace")
        checks: tuple[tuple[bool, int, str], ...] = (
            (self.headers.get_all("Host") != [self.server.authority], 421, "another host"),
            (origin is None and needs_origin, 403, "no origin"),
            (origin not in (None, address), 403, "another origin"),
            (site not in ("same-origin", "none"), 403, "another site"),
            (
                not hmac.compare_digest(path, f"/{self.server.token}/".encode()),
                403,
                "the token is missing or wrong: open the address that was printed",
            ),
        )
        for wrong, status, message in checks:
            if wrong:
                self.refuse(status, message)
                return True
        return False

    def refuse(self, status: int, message: str) -> None:
        """Answer with a reason, which holds nothing of the request."""
        self.close_connection = True
        self.send(status, "text/plain; charset=utf-8", message.encode(), {})

    def send(self, status: int, kind: str, body: bytes, more: dict[str, str]) -> None:
        """Answer."""
        self.send_response(status)
        for name, value in (HEADERS | more | {"Content-Type": kind}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold the token."""


def serve(session: Session, announce: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted."""
    with Server(session) as server:
        announce(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
