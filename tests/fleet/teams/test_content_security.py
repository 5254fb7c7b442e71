"""No page holds a script of its own, and every answer forbids one."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from fleet.inventory.models import GPU, Hold, Instance, ProviderAccount
from fleet.teams.models import APIToken, AuditEntry, Project, Team, User
from fleet.telemetry.models import Agent
from tests.fleet.teams.routes import all_routes

# The API's addresses are regular expressions and answer JSON; a link with a secret only leads on.
PAGES = {route.name: route for route in all_routes() if "(" not in route.path and route.name != "join_link"}
HOSTILE = "<script>alert(1)</script>"
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


@pytest.mark.parametrize("who", ["alice", "stranger"])
def test_no_page_holds_a_script(who, alice, acme, address, as_user, client, apart):
    rename_everything(acme)
    browser = as_user(alice) if who == "alice" else client
    for name in sorted(PAGES):
        with apart(name):
            answer = browser.get(address(PAGES[name]))
            policy = answer.headers["Content-Security-Policy"]
            scripts = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
            assert scripts.split() == ["script-src", "'self'"]
            if "html" in answer.headers.get("Content-Type", ""):
                assert scripts_in(answer.text) == []
                assert HOSTILE not in answer.text


def rename_everything(team) -> None:
    """As if every name that a person, a provider or an agent may choose had been chosen to do harm."""
    Team.objects.filter(pk=team.pk).update(name=HOSTILE)
    User.objects.update(first_name=HOSTILE)
    Project.objects.update(name=HOSTILE)
    APIToken.objects.update(name=HOSTILE)
    ProviderAccount.objects.update(name=HOSTILE)
    Instance.objects.update(name=HOSTILE, external_id=HOSTILE, raw_state=HOSTILE[:20], region=HOSTILE)
    GPU.objects.update(name=HOSTILE)
    Hold.objects.update(reason=HOSTILE)
    Agent.objects.update(hostname=HOSTILE, match_conflict=HOSTILE, version=HOSTILE)
    AuditEntry.objects.bulk_create([AuditEntry(team=team, actor_label=HOSTILE, action=HOSTILE, new={HOSTILE: HOSTILE})])
