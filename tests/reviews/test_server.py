"""The page: for its own browser alone, hostile text as text, saved after each text, resumed."""

import http.client
import json
import re
import threading
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from browser import CHROMIUM, Browser
from toy import POLICIES, begun, corpus

from confide.reviews.marks import load, sample_of
from confide.reviews.server import Server
from confide.reviews.session import Session

HOSTILE = "<script>alert(1)</script> </script> & \u202e 😀 Zoë N7 {{ 7*7 }} ${1} 123456"
TEXTS = [f"{HOSTILE} {n}" for n in range(12)]


@contextmanager
def served(folder, **given):
    """A server of a review of hostile texts, its address, and the review's file."""
    files = corpus(folder, TEXTS)
    path = folder / "review.json"
    if path.exists():
        review = load(path)
        sample = sample_of(review, path, **files, policies=POLICIES)
    else:
        review, sample = begun(files, size=10, **given)
    server = Server(Session(review, sample, path))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server, path
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def post(server, what, **headers):
    """What the server answers to a request of its page."""
    usual = {"Content-Type": "application/json", "Origin": f"http://{server.authority}"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = what if isinstance(what, bytes) else json.dumps(what).encode()
    with urlopen(Request(server.address, body, usual | named)) as reply:
        return json.loads(reply.read())


def test_the_page_and_its_rules(tmp_path):
    with served(tmp_path) as (server, _):
        assert server.server_address[0] == "127.0.0.1" and server.server_address[1] > 1023
        assert len(server.token) >= 40
        with urlopen(server.address) as reply:
            text = reply.read().decode()
            headers = reply.headers
        with urlopen(server.address) as reply:
            assert reply.headers["Content-Security-Policy"] != headers["Content-Security-Policy"]
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'nonce-") and "unsafe" not in policy
    nonce = re.search("script-src 'nonce-([^']+)'", policy)[1]
    assert text.count(f'nonce="{nonce}"') == text.count("<script") + text.count("<style") == 2
    assert not re.search(r"https?://|src=|href=|@import|url\(", text)
    assert (headers["Cache-Control"], headers["X-Frame-Options"]) == ("no-store", "DENY")
    assert "Python" not in headers["Server"] and "alert(1)" not in text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:{port}"}, 421),
        ({"Host": "evil.example:{port}"}, 421),  # DNS rebinding
        ({"Host": "127.0.0.1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": None}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Length": "99999999"}, 413),
        ({"Content-Length": "-1"}, 413),
        ({"path": "/"}, 403),
        ({"path": "/{token}"}, 403),
        ({"path": "/{token}x/"}, 403),
        ({"path": "/?token={token}"}, 403),
        ({}, 200),
    ],
)
def test_who_is_refused(tmp_path, headers, status):
    body = b'{"do": "read", "index": 0}'
    with served(tmp_path) as (server, path):
        port = server.server_address[1]
        given = {"Host": server.authority, "Origin": f"http://{server.authority}"} | {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        given |= {"path": f"/{server.token}/"} | headers
        place = given.pop("path").format(token=server.token)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.putrequest("POST", place, skip_host=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value.format(port=port))
        connection.endheaders(body)
        reply = connection.getresponse()
        said = reply.read()
        connection.close()
        assert reply.status == status
        assert path.exists() == (status == 200)
        if status != 200:
            assert b"N7" not in said and server.token.encode() not in said


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"do": "erase", "index": 0}',
        b'{"do": "show"}',
        b'{"do": "show", "index": -1}',
        b'{"do": "show", "index": 10}',
        b'{"do": "show", "index": 1e99}',
        b'{"do": "show", "index": 0, "path": "/etc"}',
        b'{"do": "show", "index": true}',
        b"\xff",
        b"[" * 5000,
    ],
)
def test_what_no_page_asks_for_is_refused(tmp_path, body):
    with served(tmp_path) as (server, path):
        with pytest.raises(HTTPError) as error:
            post(server, body)
        assert error.value.code == 400 and not path.exists()


def test_marks_are_saved_text_by_text_undone_and_resumed(tmp_path):
    with served(tmp_path) as (server, path):
        shown = post(server, {"do": "show", "index": 0})
        assert shown["text"].startswith(HOSTILE) and shown["reviewed"] == 0
        place = shown["text"].index("N7")
        one = {"index": 0, "start": place, "end": place + 1, "label": "name"}
        shown = post(server, {"do": "add", **one})
        assert shown["missed"] == [[place, place + 2, "name"]] and not path.exists()
        shown = post(server, {"do": "vain", "index": 0, "number": 0})
        assert shown["found"][0][3] is True
        assert post(server, {"do": "vain", "index": 0, "number": 9})["problem"]
        assert post(server, {"do": "add", **one, "label": "invented"})["problem"]
        shown = post(server, {"do": "read", "index": 0})
        assert (shown["index"], shown["reviewed"]) == (1, 1)
        kept = load(path).marks[0]
        assert kept.missed == [(place, place + 2, "name")] and kept.vain == [0]
        post(server, {"do": "remove", **one})  # of a text that was read: saved at once
        assert load(path).marks[0].missed == []
        shown = post(server, {"do": "undo", "index": 1})
        assert shown["index"] == 0 and load(path).marks[0] == kept
        post(server, {"do": "undo", "index": 0})
        assert load(path).marks[0] is None
        assert post(server, {"do": "show", "index": 0})["missed"]  # still marked, and not read
        for _ in range(2):
            shown = post(server, {"do": "undo", "index": 0})
        assert shown["missed"] == [] and shown["found"][0][3] is False
        assert post(server, {"do": "undo", "index": 0})["problem"] == "nothing to undo"
        for index in range(3):
            post(server, {"do": "read", "index": index})
    with served(tmp_path) as (server, path), urlopen(server.address) as reply:
        assert "now.index : 3," in reply.read().decode()
        assert post(server, {"do": "show", "index": 3})["reviewed"] == 3


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_in_a_browser_by_keyboard_alone_and_by_mouse(tmp_path):
    with served(tmp_path / "review") as (server, path), Browser(tmp_path / "browser") as page:
        ready = "typeof now !== 'undefined' && now !== null && !busy"
        page.size(400)
        page.open(server.address, ready)
        text = page.ask("now.text")
        assert text.startswith(HOSTILE)
        assert page.ask("box.querySelectorAll('script').length") == 0
        seen = page.ask("[...box.children].map((one) => one.textContent).join('')")
        assert seen == text.replace("\u202e", "\ufffd")  # nothing turns the text around
        words = [text[start:end] for start, end in page.ask("now.words")]
        page.press(*["ArrowRight"] * words.index("N7"))
        page.press("ArrowLeft", shift=True)
        assert page.ask("byId('says').textContent") == "selected: Zoë N7"
        page.press("2")  # code, name, other
        page.wait(f"{ready} && now.missed.length === 1")
        page.press("x")
        page.wait(f"{ready} && now.missed.length === 0")
        page.press("u")
        page.wait(f"{ready} && now.missed.length === 1")
        page.press("Home", *["ArrowRight"] * words.index("123456"), "v")
        page.wait(f"{ready} && now.found[0][3]")
        page.press("Enter")
        page.wait(f"{ready} && now.index === 1")
        kept = load(path).marks[0]
        assert [text[a:b] for a, b, _ in kept.missed] == ["Zoë N7"] and kept.vain == [0]
        assert kept.missed[0][2] == "name"
        page.press("p")
        page.wait(f"{ready} && now.index === 0")
        for width in (400, 1400):
            page.size(width)
            assert page.ask("document.documentElement.scrollWidth") == width
        page.press("n")
        page.wait(f"{ready} && now.index === 1")
        edges = """[...box.children].filter((one) => ['Zoë', 'N7'].includes(one.textContent))
            .map((one) => one.getBoundingClientRect())
            .map((one) => [one.x + 2, one.right - 2, one.y + one.height / 2])"""
        (start, _, top), (_, end, bottom) = page.ask(edges)
        page.drag((start, top), (end, bottom))
        assert page.ask("byId('says').textContent") == "selected: Zoë N7"
        logged = [event for event in page.events if event.get("method") == "Log.entryAdded"]
        thrown = [event for event in page.events if "exceptionThrown" in event.get("method", "")]
        asked = [
            event["params"]["request"]["url"]
            for event in page.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        assert set(asked) == {server.address} and not thrown
        assert not [one for one in logged if "Security Policy" in str(one)]
