from __future__ import annotations

import json
import re
from datetime import timedelta

from django.utils import timezone

from fleet.teams.models import APIToken, Scope
from fleet.teams.scrape_config import scrape_config
from fleet.teams.tokens import create_token, find_token


def test_the_secret_is_shown_once(alice, as_user):
    browser = as_user(alice)
    page = browser.post("/t/acme/settings/tokens/new/", {"name": "Nightly", "scope": "read", "expires": "30"})
    assert page.status_code == 201
    assert "no-store" in page.headers["Cache-Control"]
    found = re.search(r"<code>(rrk_[\w-]+)</code>", page.text)
    assert found
    token = find_token(secret=found[1], now=timezone.now())
    assert token
    assert token.expires_at
    assert abs(token.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)
    assert found[1] not in browser.get("/t/acme/settings/tokens/").text


def test_it_may_be_made_to_last(alice, as_user):
    as_user(alice).post("/t/acme/settings/tokens/new/", {"name": "Nightly", "scope": "operate", "expires": "0"})
    assert APIToken.objects.get().expires_at is None


def test_a_scope_that_does_not_exist_is_refused(alice, as_user):
    answer = as_user(alice).post("/t/acme/settings/tokens/new/", {"name": "Nightly", "scope": "root", "expires": "30"})
    assert answer.status_code == 422
    assert not APIToken.objects.exists()


def test_an_admin_revokes_it(alice, acme, by, as_user):
    token, new = create_token(actor=by(alice), team=acme, name="x", scope=Scope.READ)
    answer = as_user(alice).post(f"/t/acme/settings/tokens/{token.pk}/revoke/", follow=True)
    assert "does not work any more" in answer.text
    assert find_token(secret=new.secret, now=timezone.now()) is None


def test_it_shows_what_prometheus_needs(alice, as_user, settings):
    settings.PUBLIC_URL = "https://rackrent.example.org"
    page = as_user(alice).get("/t/acme/settings/tokens/").text
    (documented,) = re.findall(r"```yaml\n(.+?)```", (settings.BASE_DIR / "docs" / "metrics.md").read_text(), re.DOTALL)
    assert f"<code>{documented}</code>" in page
    assert f'data-copy="{documented}"' in page


def test_without_an_address_of_its_own_it_names_the_one_that_was_asked(alice, as_user, settings):
    settings.PUBLIC_URL = ""
    page = as_user(alice).get("/t/acme/settings/tokens/", headers={"Host": "127.0.0.1:8400"}).text
    assert "scheme: http\n" in page
    assert "- targets: [127.0.0.1:8400]\n" in page
    assert '- targets: ["[::1]:8400"]' in scrape_config(base_url="http://[::1]:8400/", path="/")


def test_the_dashboard_can_be_taken_along(alice, as_user, settings):
    page = as_user(alice).get("/t/acme/settings/tokens/").text
    assert 'href="/static/grafana/rackrent.json" download="rackrent.json"' in page
    assert (
        json.loads((settings.BASE_DIR / "static" / "grafana" / "rackrent.json").read_text())["uid"] == "rackrent-fleet"
    )


def test_only_admins_see_tokens(bob, as_user):
    browser = as_user(bob)
    assert browser.get("/t/acme/settings/tokens/").status_code == 403
    assert "/settings/tokens/" not in browser.get("/t/acme/settings/").text
