"""Sign-in through an OpenID provider, over real HTTP."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from fleet.teams.checks import check_openid
from fleet.teams.identities import parse_rules
from fleet.teams.models import AuditEntry, ExternalIdentity, Membership, User
from tests.fleet.teams.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIDProvider, new_key


@pytest.fixture
def provider(settings, db):
    running = OpenIDProvider()
    running.person = {
        "sub": "248289",
        "email": "Alice@example.org",
        "email_verified": True,
        "preferred_username": "alice.l",
        "name": "Alice Liddell",
    }
    settings.OIDC_ISSUER = running.url
    settings.OIDC_RP_CLIENT_ID = CLIENT_ID
    settings.OIDC_RP_CLIENT_SECRET = CLIENT_SECRET
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, "fleet.teams.oidc.OpenIDBackend"]
    yield running
    running.stop()


def sent_back(client, provider, next_page="/t/acme/settings/") -> str:
    """Goes to the provider as a browser does; the address that it sends back to."""
    start = client.get("/oidc/authenticate/", {"next": next_page})
    assert start.headers["Location"].startswith(f"{provider.url}/authorize?")
    back = httpx.get(start.headers["Location"]).headers["Location"]
    assert back.startswith("http://testserver/oidc/callback/?")
    return back.removeprefix("http://testserver")


def sign_in(client, provider):
    return client.get(sent_back(client, provider))


def assert_refused(client, answer, message):
    assert answer.headers["Location"] == "/login/"
    assert message in client.get("/login/").text
    assert client.get("/account/").status_code == 302


def test_the_button_is_there_only_where_a_provider_is(client, db, settings):
    assert "oidc" not in client.get("/login/").text
    assert client.get("/oidc/authenticate/").status_code == 404
    assert client.get("/oidc/callback/?code=x&state=y").status_code == 404


def test_the_button_says_what_the_operator_calls_it(client, provider, settings):
    assert "Use the company’s sign-in" in client.get("/login/").text
    settings.OIDC_LABEL = "Sign in with <Lab SSO>"
    page = client.get("/login/?next=/t/acme/").text
    assert "Sign in with &lt;Lab SSO&gt;" in page
    assert 'href="/oidc/authenticate/?next=/t/acme/"' in page


def test_a_verified_address_finds_the_person(alice, client, provider):
    assert sign_in(client, provider).headers["Location"] == "/t/acme/settings/"
    assert client.get("/t/acme/settings/").status_code == 200
    assert ExternalIdentity.objects.get().user == alice


def test_whoever_typed_the_address_before_is_out(alice, client, as_user, provider, announced):
    squatter = as_user(alice)
    with announced() as users:
        sign_in(client, provider)
    assert squatter.get("/account/").status_code == 302
    alice.refresh_from_db()
    assert not alice.has_usable_password()
    assert users == [f"user.{alice.pk}"]
    assert AuditEntry.objects.get(action="person.link").target_id == str(alice.pk)


def test_from_then_on_the_subject_counts_and_the_address_may_change(alice, bob, client, provider):
    ExternalIdentity.objects.create(user=bob, issuer=provider.url, subject="248289")
    sign_in(client, provider)
    assert "bob" in client.get("/account/").text


def test_the_same_subject_at_another_issuer_is_somebody_else(bob, client, provider):
    ExternalIdentity.objects.create(user=bob, issuer="https://elsewhere.example", subject="248289")
    assert_refused(client, sign_in(client, provider), "Nobody here has this identity")


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_address_that_is_not_verified_finds_nobody(alice, client, provider, verified):
    provider.person["email_verified"] = verified
    assert_refused(client, sign_in(client, provider), "Nobody here has this identity")


def test_strangers_get_an_account_only_where_that_is_wanted(bob, client, provider, settings):
    provider.person["preferred_username"] = "Bob"
    assert_refused(client, sign_in(client, provider), "Nobody here has this identity")
    settings.OIDC_CREATE_USER = True
    sign_in(client, provider)
    user = ExternalIdentity.objects.get().user
    assert (user.username, user.email, user.display_name) == ("Bob-2", "Alice@example.org", "Alice Liddell")
    assert not user.has_usable_password()
    assert not Membership.objects.filter(user=user).exists()


def test_a_closed_account_stays_closed(alice, client, provider):
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert_refused(client, sign_in(client, provider), "refused")


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"aud": "another-client"},
        {"aud": [CLIENT_ID, "another-client"], "azp": "another-client"},
        {"nonce": "guessed"},
        {"exp": time.time() - 10},
        {"exp": None},
    ],
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(alice, client, provider, changes):
    provider.token_changes = changes
    assert_refused(client, sign_in(client, provider), "did not answer as it should")


def test_a_forged_signature_is_refused(alice, client, provider):
    provider.key = new_key()
    assert_refused(client, sign_in(client, provider), "did not answer as it should")


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_another_algorithm_is_refused(alice, client, provider, algorithm):
    provider.algorithm = algorithm
    assert_refused(client, sign_in(client, provider), "did not answer as it should")


def test_claims_about_somebody_else_are_refused(alice, client, provider):
    provider.userinfo_changes = {"sub": "somebody-else"}
    assert_refused(client, sign_in(client, provider), "refused")


def test_an_answer_works_once_and_only_in_the_browser_that_asked(alice, client, as_user, bob, provider):
    back = sent_back(client, provider)
    assert as_user(bob).get(back).headers["Location"] == "/login/"
    client.get(back)
    client.post("/logout/")
    client.get(back)
    assert client.get("/account/").status_code == 302


def test_a_provider_that_is_away_is_said_and_passwords_still_work(alice, client, provider):
    provider.stop()
    answer = client.get("/oidc/authenticate/")
    assert_refused(client, answer, "did not answer as it should")
    client.post("/login/", {"username": "alice", "password": "correct horse"})
    assert client.get("/account/").status_code == 200


def test_a_refusal_at_the_provider_is_said(alice, client, provider):
    back = sent_back(client, provider)
    state = parse_qs(urlsplit(back).query)["state"][0]
    assert_refused(client, client.get("/oidc/callback/", {"error": "access_denied", "state": state}), "refused")


class TestGroups:
    @pytest.fixture(autouse=True)
    def _rules(self, settings):
        settings.OIDC_TEAM_ROLES = ["gpu-users=acme:viewer", "gpu-admins=acme:admin", "x=y=rival:viewer"]

    def roles(self, user):
        return dict(Membership.objects.filter(user=user).values_list("team__slug", "role"))

    @pytest.fixture
    def dora(self, acme, rival, provider):
        user = User.objects.create_user("dora")
        ExternalIdentity.objects.create(user=user, issuer=provider.url, subject="248289")
        return user

    @pytest.mark.parametrize(
        ("groups", "roles"),
        [
            (["gpu-users"], {"acme": "viewer"}),
            (["gpu-users", "gpu-admins", "else"], {"acme": "admin"}),
            (["x=y"], {"rival": "viewer"}),
            ([], {}),
        ],
    )
    def test_they_give_the_highest_role(self, dora, client, provider, groups, roles):
        provider.person["groups"] = groups
        sign_in(client, provider)
        assert self.roles(dora) == roles

    def test_who_lost_the_group_loses_the_place(self, dora, acme, client, provider):
        Membership.objects.create(team=acme, user=dora, role="viewer")
        provider.person["groups"] = []
        sign_in(client, provider)
        assert self.roles(dora) == {}

    @pytest.mark.parametrize("said", [None, "gpu-admins"])
    def test_a_provider_that_says_nothing_of_groups_changes_nothing(self, dora, acme, client, provider, said):
        Membership.objects.create(team=acme, user=dora, role="operator")
        provider.person["groups"] = said
        sign_in(client, provider)
        assert self.roles(dora) == {"acme": "operator"}

    def test_the_last_admin_is_not_taken_away(self, dora, acme, client, provider):
        Membership.objects.create(team=acme, user=dora, role="admin")
        provider.person["groups"] = []
        assert_refused(client, sign_in(client, provider), "A team needs an admin")
        assert self.roles(dora) == {"acme": "admin"}

    @pytest.mark.parametrize("word", ["acme:admin", "g=acme", "g=acme:owner", "=acme:admin"])
    def test_a_rule_that_cannot_be_read_is_named(self, word):
        with pytest.raises(ValueError, match=f"'{word}'"):
            parse_rules([word])


@pytest.mark.parametrize(
    ("changed", "ids"),
    [
        ({}, []),
        ({"OIDC_ISSUER": "http://login.example.org"}, ["rackrent.E013"]),
        ({"OIDC_RP_CLIENT_SECRET": ""}, ["rackrent.E014"]),
        ({"OIDC_RP_SIGN_ALGO": "HS256"}, ["rackrent.E015"]),
        ({"OIDC_TEAM_ROLES": ["everybody=lab:root"]}, ["rackrent.E016"]),
        ({"OIDC_ISSUER": "", "OIDC_RP_CLIENT_SECRET": ""}, []),
    ],
)
def test_settings_that_cannot_work_stop_the_start(settings, changed, ids):
    right = {"OIDC_ISSUER": "https://login.example.org", "OIDC_RP_CLIENT_ID": "x", "OIDC_RP_CLIENT_SECRET": "y"}
    for name, value in {**right, **changed}.items():
        setattr(settings, name, value)
    assert [message.id for message in check_openid()] == ids
