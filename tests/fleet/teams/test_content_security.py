"""No page holds a script of its own, and every answer forbids one."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from tests.fleet.teams.routes import all_routes

PAGES = sorted(route.at("acme", {}) for route in all_routes() if not route.kinds and "(" not in route.path)
HARMLESS_TYPES = {"application/json", "application/ld+json"}


class ScriptFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "script" and "src" not in values and values.get("type") not in HARMLESS_TYPES:
            self.found.append("an inline script")
        self.found += [f"{tag} {name}" for name in values if name.startswith(("on", "hx-on"))]
        self.found += [
            f"{tag} {name}={value}" for name, value in attrs if (value or "").strip().startswith("javascript:")
        ]
        if tag in {"script", "link", "img"} and "//" in (values.get("src") or values.get("href") or ""):
            self.found.append(f"{tag} from elsewhere")


def scripts_in(text: str) -> list[str]:
    finder = ScriptFinder()
    finder.feed(text)
    return finder.found


def test_the_finder_finds():
    page = "<script>x()</script><a onclick=x href='javascript:x'><script src='https://cdn.example/x.js'></script>"
    assert len(scripts_in(page)) == 4


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("who", ["alice", "stranger"])
def test_no_page_holds_a_script(path, who, alice, project, make_instance, as_user, client):
    make_instance(name="<script>alert(1)</script>", gpus=1)
    browser = as_user(alice) if who == "alice" else client
    answer = browser.get(path)
    policy = answer.headers["Content-Security-Policy"]
    scripts = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
    assert scripts.split() == ["script-src", "'self'"]
    if "html" in answer.headers.get("Content-Type", ""):
        assert scripts_in(answer.text) == []
