"""The Providers tab: what each role sees, the form that the adapter declares, and that no secret comes back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.inventory.accounts import delete_account, manual_account
from fleet.inventory.checks import run_checks
from fleet.inventory.credentials import open_sealed
from fleet.inventory.drafts import run_draft
from fleet.inventory.models import ProviderAccount
from fleet.inventory.operations.models import Operation
from fleet.inventory.poll import poll_account
from fleet.inventory.provider_choices import SELF_MADE, Stopped, provider_choices
from fleet.providers.base import AccountInfo, Capability, Scope, Sign
from fleet.providers.errors import AuthFailed
from fleet.providers.registry import adapters
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import NOON, SECRET

TAB = "/t/acme/settings/providers/"
NEW = f"{TAB}new/scripted/"
FILLED = {"name": "Second", "option_key": "sk-second-key-42", "option_team": "", "poll_interval_seconds": "300"}


@pytest.fixture
def asked(monkeypatch, django_capture_on_commit_callbacks):
    """The accounts whose check was started."""
    started: list[int] = []
    monkeypatch.setattr("fleet.inventory.accounts.check_account.delay", started.append)
    return started


def page_of(account) -> str:
    return f"{TAB}{account.pk}/"


class TestList:
    def test_everybody_of_the_team_sees_the_accounts(self, lab, vera, as_user):
        page = as_user(vera).get(TAB).text
        assert "Lab" in page
        assert "not read yet" in page
        assert NEW not in page

    def test_an_admin_is_offered_every_kind_that_people_add(self, lab, alice, as_user):
        page = as_user(alice).get(TAB).text
        assert f"{TAB}new/aws/" in page
        assert f"{TAB}new/manual/" not in page
        assert f"{TAB}new/sandbox/" not in page

    def test_a_viewer_is_offered_nothing_to_add(self, lab, vera, as_user):
        assert "add-account" not in as_user(vera).get(TAB).text

    @pytest.mark.parametrize(
        ("query", "shown", "hidden"),
        [
            ({"find": " AMAZON "}, "aws", "lambda"),
            ({"find": "lambda"}, "lambda", "aws"),
            ({"can": "stop"}, "aws", "lambda"),
            ({"find": "lambda", "can": "create"}, "lambda", "aws"),
        ],
    )
    def test_providers_are_found_by_name_and_by_what_they_let_do(self, lab, alice, as_user, query, shown, hidden):
        page = as_user(alice).get(TAB, query).text
        assert f"{TAB}new/{shown}/" in page
        assert f"{TAB}new/{hidden}/" not in page

    def test_who_finds_no_provider_is_told_what_to_do(self, lab, alice, as_user):
        page = as_user(alice).get(TAB, {"find": '"><script>', "can": "fly"}).text
        assert "No such provider" in page
        assert "by hand" in page
        assert 'value="&quot;&gt;&lt;script&gt;"' in page

    def test_what_a_stop_costs_stands_beside_each_provider(self, alice):
        stopped = {choice.kind: choice.stopped for choice in provider_choices()}
        assert stopped["lambda"] is None
        assert stopped["aws"] == Stopped(Sign.PAID, "disks still billed", loses=True)
        for kind, told in stopped.items():
            assert (told is not None) == (Capability.STOP in adapters()[kind].capabilities)

    def test_a_failing_account_says_what_and_what_to_do(self, lab, alice, as_user):
        ProviderAccount.objects.update(failures=3, error_kind="auth_failed", error_detail="<b>revoked</b>")
        page = as_user(alice).get(TAB).text
        assert "3 times in a row" in page
        assert "&lt;b&gt;revoked&lt;/b&gt;" in page
        assert "Make a new key at the provider" in page

    def test_late_readings_look_late(self, lab, alice, as_user):
        ProviderAccount.objects.update(listed_at=timezone.now() - timedelta(hours=1))
        assert "readings are late" in as_user(alice).get(TAB).text

    def test_an_empty_team_is_told_what_to_do(self, acme, alice, as_user):
        assert "No account yet" in as_user(alice).get(TAB).text

    def test_disconnected_ones_stay_readable(self, lab, alice, as_user):
        delete_account(actor=Actor.system("test"), account=lab)
        page = as_user(alice).get(TAB).text
        assert "their record stays" in page
        assert as_user(alice).get(page_of(lab)).status_code == 200


def test_the_number_of_queries_does_not_grow(
    lab, acme, alice, as_user, django_assert_max_num_queries, listed, provider
):
    provider.machines = [listed(f"i-{number}", rate="1") for number in range(250)]
    poll_account(account=lab, now=NOON)
    for number in range(20):
        ProviderAccount.objects.create(team=acme, kind="scripted", name=f"Lab {number}")
    client = as_user(alice)
    client.get(TAB)
    with django_assert_max_num_queries(20):
        client.get(TAB)
    with django_assert_max_num_queries(20):
        assert "50 more in Instances" in client.get(page_of(lab)).text


class TestNew:
    def test_the_form_is_what_the_adapter_declares(self, provider, alice, acme, as_user):
        page = as_user(alice).get(NEW).text
        assert 'name="option_key"' in page
        assert 'type="password"' in page
        assert 'name="option_team"' in page

    def test_it_is_kept_and_tried_at_once(
        self, provider, alice, acme, as_user, asked, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            answer = as_user(alice).post(NEW, FILLED)
        account = ProviderAccount.objects.get()
        assert answer.headers["Location"] == page_of(account)
        assert (account.name, account.poll_interval_seconds, account.monitor_only) == ("Second", 300, False)
        assert open_sealed(account.credentials) == {"key": "sk-second-key-42"}
        assert asked == [account.pk]
        assert set(AuditEntry.objects.values_list("action", flat=True)) == {"account.create", "account.verify"}

    def test_errors_stand_at_their_field_and_the_rest_is_not_lost(self, provider, alice, acme, as_user):
        answer = as_user(alice).post(NEW, {**FILLED, "option_team": "nowhere"})
        assert answer.status_code == 422
        assert 'id="id_option_team_error">There is no team nowhere.' in answer.text
        assert 'value="Second"' in answer.text
        assert "sk-second-key-42" not in answer.text
        assert not ProviderAccount.objects.exists()

    def test_a_missing_key_is_named(self, provider, alice, acme, as_user):
        answer = as_user(alice).post(NEW, {**FILLED, "option_key": ""})
        assert answer.status_code == 422
        assert "id_option_key_error" in answer.text

    def test_a_name_belongs_to_one_account(self, lab, alice, as_user):
        answer = as_user(alice).post(NEW, {**FILLED, "name": "Lab"})
        assert "Another account has this name" in answer.text

    def test_without_a_key_to_encrypt_with_nothing_is_kept(self, provider, alice, acme, as_user, settings):
        settings.CREDENTIAL_KEYS = []
        answer = as_user(alice).post(NEW, FILLED)
        assert answer.status_code == 422
        assert "CREDENTIAL_KEYS is not set" in answer.text
        assert not ProviderAccount.objects.exists()

    @pytest.mark.parametrize("kind", ["manual", "sandbox", "nonsense"])
    def test_other_kinds_are_not_there(self, acme, alice, as_user, kind):
        assert as_user(alice).get(f"{TAB}new/{kind}/").status_code == 404


class TestAccount:
    def test_the_secret_is_never_drawn(self, lab, alice, as_user):
        page = as_user(alice).get(page_of(lab)).text
        assert SECRET not in page
        assert "leave empty to keep the one there" in page

    def test_saving_without_it_keeps_it(self, lab, alice, as_user, asked):
        answer = as_user(alice).post(page_of(lab), {**FILLED, "option_key": "", "option_team": "research"})
        assert answer.status_code == 302
        lab.refresh_from_db()
        assert lab.options == {"team": "research"}
        assert open_sealed(lab.credentials) == {"key": SECRET}

    def test_a_refused_form_keeps_what_was_typed(self, lab, alice, as_user):
        answer = as_user(alice).post(page_of(lab), {**FILLED, "name": "New name", "option_team": "nowhere"})
        assert answer.status_code == 422
        assert 'value="New name"' in answer.text

    def test_a_viewer_sees_how_it_fares_and_no_form(self, lab, vera, as_user):
        page = as_user(vera).get(page_of(lab)).text
        assert "not read yet" in page
        assert "option_key" not in page
        assert "Disconnect" not in page

    def test_pause_and_read_again(self, lab, alice, as_user):
        as_user(alice).post(f"{page_of(lab)}pause/", {"paused": "1"})
        lab.refresh_from_db()
        assert not lab.enabled
        assert "reading is paused" in as_user(alice).get(page_of(lab)).text
        as_user(alice).post(f"{page_of(lab)}pause/", {"paused": "0"})
        lab.refresh_from_db()
        assert lab.enabled

    def test_disconnect(self, lab, alice, as_user):
        assert as_user(alice).post(f"{page_of(lab)}disconnect/").headers["Location"] == TAB
        lab.refresh_from_db()
        assert lab.disconnected_at is not None

    def test_it_says_who_may_and_what_stopping_means(self, acme, alice, bob, as_user):
        account = ProviderAccount.objects.create(team=acme, kind="aws", name="AWS")
        page = as_user(bob).get(page_of(account)).text
        assert "<dd>alice</dd>" in page
        assert "What stopping means at Amazon EC2" in page
        assert 'data-f="pay">still billed' in page

    def test_the_typed_one_has_no_form_and_offers_a_machine(self, acme, alice, as_user):
        page = as_user(alice).get(page_of(manual_account(acme))).text
        assert "/t/acme/instances/add/" in page
        assert "Verify and save" not in page


class TestRegister:
    @pytest.fixture
    def rented(self, lab, provider, listed):
        provider.machines = [listed("i-1"), listed("i-2")]
        poll_account(account=lab, now=NOON)
        return lab

    def test_an_operator_registers_all_of_an_account_at_once(self, rented, bob, as_user, make_instance):
        other = make_instance(managed=False)
        assert "Register all 2" in as_user(bob).get(page_of(rented)).text
        as_user(bob).post(f"{page_of(rented)}register/")
        assert set(rented.instances.values_list("managed", flat=True)) == {True}
        assert AuditEntry.objects.filter(action="instance.register", actor=bob).count() == 2
        other.refresh_from_db()
        assert not other.managed

    def test_a_viewer_does_not(self, rented, vera, as_user):
        assert "Register all" not in as_user(vera).get(page_of(rented)).text
        assert as_user(vera).post(f"{page_of(rented)}register/").status_code == 403

    def test_nor_does_charlie(self, rented, charlie, as_user):
        for team in ("acme", "rival"):
            address = page_of(rented).replace("acme", team)
            assert as_user(charlie).post(f"{address}register/").status_code == 404
        assert set(rented.instances.values_list("managed", flat=True)) == {False}


class TestChecks:
    def test_the_page_asks_again_while_a_check_runs(self, lab, alice, as_user, asked):
        as_user(alice).post(f"{page_of(lab)}verify/")
        fragment = as_user(alice).get(f"{page_of(lab)}checks/").text
        assert f'hx-get="{page_of(lab)}checks/"' in fragment

    def test_and_stops_when_it_is_done(self, lab, alice, as_user, provider, asked):
        as_user(alice).post(f"{page_of(lab)}verify/")
        lab.refresh_from_db()
        run_checks(account=lab, now=NOON)
        fragment = as_user(alice).get(f"{page_of(lab)}checks/").text
        assert "hx-get" not in fragment
        assert "The key is accepted" in fragment

    def test_what_the_key_lacks_says_what_that_costs(self, lab, alice, as_user, provider, monkeypatch):
        scope = Scope("read <volumes>", granted=False, without="disk sizes stay unknown")
        monkeypatch.setattr(provider, "info", AccountInfo("lab", "USD", (scope,)))
        run_checks(account=lab, now=NOON)
        page = as_user(alice).get(page_of(lab)).text
        assert "The key lacks read &lt;volumes&gt;" in page
        assert "disk sizes stay unknown" in page

    def test_a_refusal_says_the_remedy(self, lab, alice, as_user, provider):
        provider.error = AuthFailed("no such key")
        run_checks(account=lab, now=NOON)
        page = as_user(alice).get(page_of(lab)).text
        assert "no such key" in page
        assert "Make a new key at the provider" in page

    def test_a_check_that_nobody_finished_says_so(self, lab, alice, as_user):
        ProviderAccount.objects.update(check_started_at=timezone.now() - timedelta(hours=1))
        assert "The check did not finish" in as_user(alice).get(page_of(lab)).text


WRITES = ("verify/", "pause/", "disconnect/", "")


@pytest.mark.parametrize("action", WRITES)
@pytest.mark.parametrize("person", ["bob", "vera"])
def test_only_an_admin_changes_an_account(lab, request, person, action, as_user):
    user = request.getfixturevalue(person)
    assert as_user(user).post(page_of(lab) + action, FILLED).status_code == 403


@pytest.mark.parametrize("action", ["verify/", "pause/", "disconnect/"])
def test_reading_an_address_changes_nothing(lab, alice, as_user, action):
    assert as_user(alice).get(page_of(lab) + action).status_code == 405


@pytest.mark.parametrize("action", [*WRITES, "checks/"])
def test_charlie_finds_nothing(lab, charlie, as_user, action):
    """Neither under the team that he is no member of, nor under his own."""
    for team in ("acme", "rival"):
        address = page_of(lab).replace("acme", team) + action
        assert as_user(charlie).get(address).status_code in {404, 405}
        assert as_user(charlie).post(address, FILLED).status_code in {404, 405}
    lab.refresh_from_db()
    assert (lab.enabled, lab.disconnected_at) == (True, None)


class TestTryFirst:
    @pytest.fixture(autouse=True)
    def tried(self, provider, acme, monkeypatch):
        """The drafts whose check was started."""
        started: list[str] = []
        monkeypatch.setattr("fleet.inventory.drafts.check_draft.delay", started.append)
        return started

    def test_nothing_is_kept_and_the_key_is_never_drawn(self, alice, as_user, tried):
        client = as_user(alice)
        answer = client.post(NEW, {**FILLED, "try": "1"})
        assert answer.headers["Location"] == f"{NEW}?draft={tried[0]}#checks"
        page = client.get(f"{NEW}?draft={tried[0]}").text
        assert "Asking the provider" in page
        assert 'value="Second"' in page
        assert "sk-second-key-42" not in page
        assert not ProviderAccount.objects.exists()

    def test_what_the_key_may_is_shown_before_it_is_kept(self, alice, as_user, tried, provider, monkeypatch):
        monkeypatch.setattr(provider, "info", AccountInfo("lab-7", "USD", (Scope("billing", False, "no costs"),)))
        client = as_user(alice)
        client.post(NEW, {**FILLED, "try": "1"})
        run_draft(tried[0])
        page = client.get(f"{NEW}checks/?draft={tried[0]}").text
        assert "as lab-7" in page
        assert "billing" in page
        assert provider.keys_seen[-1] == "sk-second-key-42"

    def test_saving_takes_the_key_that_was_tried(self, alice, as_user, tried, asked):
        client = as_user(alice)
        client.post(NEW, {**FILLED, "try": "1"})
        client.post(NEW, {**FILLED, "option_key": "", "draft": tried[0]})
        assert open_sealed(ProviderAccount.objects.get().credentials) == {"key": "sk-second-key-42"}
        assert client.get(f"{NEW}checks/?draft={tried[0]}").status_code == 404, "it is kept now, the draft is gone"

    def test_a_draft_that_is_over_asks_for_the_key_again(self, alice, as_user):
        answer = as_user(alice).post(NEW, {**FILLED, "option_key": "", "draft": "long-gone"})
        assert answer.status_code == 422
        assert "id_option_key_error" in answer.text

    def test_it_is_nobody_elses(self, alice, charlie, vera, as_user, tried):
        as_user(alice).post(NEW, {**FILLED, "try": "1"})
        draft = f"checks/?draft={tried[0]}"
        assert as_user(vera).get(NEW + draft).status_code == 403
        assert as_user(charlie).get(NEW.replace("acme", "rival") + draft).status_code == 404

    @pytest.mark.parametrize("kind", sorted(set(adapters()) - SELF_MADE))
    def test_every_kind_shows_what_stopping_means_before_it_is_kept(self, alice, as_user, kind):
        page = as_user(alice).get(f"{TAB}new/{kind}/").text
        assert 'name="try"' in page
        assert ("What stopping means" in page) is bool(adapters()[kind].endings)


def test_what_is_not_proved_stands_on_the_accounts_page(lab, alice, as_user):
    operation = Operation.objects.create(
        team=lab.team, account=lab, kind="launch", token="rr-1", spec={"create": {"name": "new-01"}}
    )
    assert "new-01" in as_user(alice).get(page_of(lab)).text
    Operation.objects.update(state="proved", proved_at=timezone.now())
    assert f"/operations/{operation.pk}/" not in as_user(alice).get(page_of(lab)).text
