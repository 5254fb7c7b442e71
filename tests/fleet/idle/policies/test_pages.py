"""The pages of policies: what each says and covers, who may write them, and what bad input is told."""

from __future__ import annotations

from datetime import time
from html import unescape

import pytest

from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.shown import board_of
from fleet.inventory.models import ProviderAccount
from fleet.teams.models import AuditEntry

LIST = "/t/acme/idle/policies/"
ADD = f"{LIST}add/"
FORM = {
    "name": "Notebooks",
    "enabled": "on",
    "mode": "interactive",
    "window_minutes": "60",
    "window_from": "fixed",
    "restart_minutes": "20",
    "action": "alert",
    "grace_minutes": "30",
    "hook_minutes": "10",
}
STOP = {"action": "stop", "confirmed": "on"}


def text(answer) -> str:
    return unescape(answer.content.decode())


@pytest.fixture
def send(as_user, alice):
    return lambda address=ADD, **values: as_user(alice).post(address, {**FORM, **values})


class TestList:
    def test_each_is_said_in_its_order_with_what_it_covers(
        self, policy, project, make_instance, as_user, vera, account
    ):
        account.monitor_only = False
        account.save()
        policy("Vision", project=project, action="stop", position=1)
        policy("All", position=2)
        make_instance(project=project)
        make_instance(name="two")
        page = text(as_user(vera).get(LIST))
        assert "1 policy stops machines by itself" in page
        assert page.count("/dry-run/") == 2
        assert "Machines of Vision idle for 1 h are stopped 30 min after a warning." in page
        assert page.index("Machines of Vision") < page.index("Machines idle for 1 h are told of")
        assert page.count("1 machine now") == 2
        assert "Every machine is covered by a policy." in page

    def test_machines_that_it_cannot_stop_are_said(self, policy, make_instance, acme, account, clock_now):
        aws = ProviderAccount.objects.create(team=acme, kind="aws", name="AWS", monitor_only=False)
        policy("All", action="stop")
        make_instance(account=aws)
        make_instance(name="unregistered", account=aws, managed=False)
        make_instance(name="by hand")
        line = board_of(acme, clock_now).lines[0]
        assert (line.machines, line.beyond) == (3, 2)

    def test_what_none_covers_is_said(self, policy, project, make_instance, as_user, vera):
        policy("Vision", project=project)
        make_instance()
        assert "1 machine is covered by no policy" in text(as_user(vera).get(LIST))

    def test_without_any_it_says_what_to_do(self, as_user, alice, vera):
        assert "Machines are judged, and nothing is told or done" in text(as_user(alice).get(LIST))
        assert ADD in text(as_user(alice).get(LIST))
        assert ADD not in text(as_user(vera).get(LIST))

    def test_viewers_and_operators_read(self, policy, as_user, vera, bob):
        one = policy()
        for user in (vera, bob):
            assert as_user(user).get(LIST).status_code == 200
            assert as_user(user).get(f"{LIST}{one.pk}/").status_code == 403
            assert as_user(user).post(ADD, FORM).status_code == 403
            assert as_user(user).post(f"{LIST}{one.pk}/remove/").status_code == 403

    def test_another_team_sees_nothing(self, policy, as_user, charlie):
        one = policy()
        assert [as_user(charlie).get(address).status_code for address in (LIST, f"{LIST}{one.pk}/")] == [404, 404]

    def test_a_policy_of_another_team_is_not_there(self, as_user, alice, rival):
        theirs = IdlePolicy.objects.create(team=rival, name="Theirs")
        for way in ("", "move/", "remove/"):
            assert as_user(alice).post(f"{LIST}{theirs.pk}/{way}", FORM).status_code == 404
        theirs.refresh_from_db()
        assert theirs.removed_at is None

    def test_names_that_people_typed_are_escaped(self, policy, as_user, vera):
        policy("<b>bold</b>")
        assert "<b>bold" not in as_user(vera).get(LIST).content.decode()

    def test_more_of_them_cost_no_more_queries(self, policy, project, account, make_instance, acme, clock_now, django_assert_num_queries):  # fmt: skip
        first = policy("One", project=project, account=account, provider="manual")
        first.excluded.add(make_instance())
        with django_assert_num_queries(10):
            board_of(acme, clock_now)
        for number in range(3):
            policy(f"More {number}", project=project, account=account).excluded.add(make_instance(name=f"m-{number}"))
        with django_assert_num_queries(10):
            board_of(acme, clock_now)

    def test_it_is_moved_and_removed(self, policy, as_user, alice):
        one, two = policy("One", position=1), policy("Two", position=2)
        as_user(alice).post(f"{LIST}{two.pk}/move/", {"up": "1"})
        assert list(IdlePolicy.objects.order_by("position")) == [two, one]
        as_user(alice).post(f"{LIST}{one.pk}/move/", {"down": "1"})
        assert list(IdlePolicy.objects.order_by("position")) == [two, one]
        as_user(alice).post(f"{LIST}{one.pk}/remove/")
        assert "One" not in text(as_user(alice).get(LIST)).partition("policies")[2].partition("<ol")[2]
        assert as_user(alice).get(f"{LIST}{one.pk}/").status_code == 404

    def test_reading_changes_nothing(self, policy, as_user, alice):
        one = policy("One", position=1)
        policy("Two", position=2)
        assert [as_user(alice).get(f"{LIST}{one.pk}/{way}").status_code for way in ("move/", "remove/")] == [405, 405]


class TestForm:
    def test_what_is_typed_is_kept(self, send, project, make_instance, alice):
        machine = make_instance()
        answer = send(
            project=project.pk, excluded=[machine.pk], limit_cpu_percent="20", limit_sm_activity="2", limit_settling="30",
            limit_disk_bytes_per_second="5", warn_minutes="5, 10", office_days=["0", "4"], office_from="09:00",
            office_until="18:00", holidays="DE", holidays_region="by", max_age_hours="72", delete_after_days="7",
            delete_consent="on", **STOP,
        )  # fmt: skip
        assert answer.status_code == 302
        row = IdlePolicy.objects.get()
        assert (row.project, list(row.excluded.all()), row.action, row.warn_minutes) == (
            project,
            [machine],
            "stop",
            [10, 5],
        )
        assert row.limits == {
            "cpu_percent": 20.0, "sm_activity": 0.02, "settling": 1800.0, "disk_bytes_per_second": 5_000_000.0
        }  # fmt: skip
        assert (row.office_days, row.office_from, row.office_until, row.holidays) == (
            [0, 4],
            time(9),
            time(18),
            "DE-BY",
        )
        assert (row.max_age_hours, row.delete_after_days, row.delete_consent_by) == (72, 7, alice)

    def test_it_is_shown_again_as_it_was_typed_and_saved_without_a_change(self, send, as_user, alice):
        typed = {"limit_cpu_percent": "20", "limit_network_bytes_per_second": "2.5", "limit_dram_activity": "0.3", "holidays": "CN",
                 "office_days": ["0"], "office_from": "09:00", "office_until": "18:00", **STOP}  # fmt: skip
        send(**typed)
        row = IdlePolicy.objects.get()
        page = text(as_user(alice).get(f"{LIST}{row.pk}/"))
        for value in ('value="20"', 'value="2.5"', 'value="0.3"', 'value="09:00"', '<option value="CN" selected>'):
            assert value in page
        assert '<details class="fold inpanel" open>' in page
        # Nothing differs, so that nobody is asked whether they know what it does.
        assert send(f"{LIST}{row.pk}/", **{**typed, "confirmed": ""}).status_code == 302
        row.refresh_from_db()
        assert row.revision == 1

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("name", {"name": ""}),
            ("window_minutes", {"window_minutes": "4"}),
            ("window_minutes", {"window_minutes": "soon"}),
            ("grace_minutes", {"grace_minutes": "1"}),
            ("warn_minutes", {"warn_minutes": "early"}),
            ("warn_minutes", {"warn_minutes": "45"}),
            ("label_name", {"label_value": "dev"}),
            ("limit_cpu_percent", {"limit_cpu_percent": "0"}),
            ("limit_settling", {"limit_settling": "nan"}),
            ("accept_loss", {"action": "terminate", "confirmed": "on"}),
            ("confirmed", {"action": "stop"}),
            ("action", {"mode": "pinned", **STOP}),
            ("action", {"action": "burn"}),
            ("office_days", {"office_from": "09:00", "office_until": "18:00"}),
            ("office_until", {"office_days": ["0"], "office_from": "09:00"}),
            ("office_from", {"office_days": ["0"], "office_from": "nine", "office_until": "18:00"}),
            ("holidays", {"holidays_region": "BY"}),
            ("holidays_region", {"holidays": "DE", "holidays_region": "XX"}),
            ("holidays_region", {"holidays": "CN", "holidays_region": "BJ"}),
            ("time_zone", {"time_zone": "Berlin"}),
            ("delete_after_days", {"delete_consent": "on"}),
            ("excluded", {"excluded": ["999999"]}),
        ],
    )
    def test_bad_input_names_its_field_and_keeps_the_rest(self, send, field, values):
        answer = send(**{"name": "My own", "max_age_hours": "71", **values})
        page = text(answer)
        assert answer.status_code == 422
        assert f'id="id_{field}_error"' in page
        assert 'value="71"' in page
        assert "Nothing was saved" in page
        assert not IdlePolicy.objects.exists()

    def test_all_mistakes_are_told_at_once(self, send):
        page = text(send(warn_minutes="45", label_value="dev", holidays="CN", holidays_region="BJ", office_days=["0"]))
        for field in ("warn_minutes", "label_name", "holidays_region", "office_from"):
            assert f'id="id_{field}_error"' in page
        assert "No region of this country has holidays of its own" in page

    def test_one_that_was_removed_meanwhile_is_not_there(self, send, policy, as_user, alice):
        one = policy()
        as_user(alice).post(f"{LIST}{one.pk}/remove/")
        assert send(f"{LIST}{one.pk}/").status_code == 404

    def test_a_machine_that_is_gone_stays_left_out(self, send, policy, make_instance):
        one, machine = policy("Notebooks"), make_instance()
        one.excluded.add(machine)
        machine.gone_at = one.created_at
        machine.save()
        assert send(f"{LIST}{one.pk}/", excluded=[machine.pk], window_minutes="30").status_code == 302
        assert list(one.excluded.all()) == [machine]


class TestPreview:
    PREVIEW = f"{LIST}preview/"

    def test_it_says_what_would_be_saved_and_covered(self, as_user, alice, project, make_instance):
        machine = make_instance(project=project)
        left = make_instance(name="left out", project=project)
        values = {**FORM, "name": "", "project": project.pk, "excluded": [left.pk], "action": "stop"}
        page = text(as_user(alice).get(self.PREVIEW, values))
        assert "Machines of Vision, except 1, idle for 1 h are stopped 30 min after a warning." in page
        assert f"/t/acme/instances/{machine.pk}/" in page
        assert "1 machine there now" in page
        assert left.name not in page
        assert not IdlePolicy.objects.exists()

    def test_values_that_are_wrong_are_said_to_be(self, as_user, alice):
        assert "Correct what is marked" in text(as_user(alice).get(self.PREVIEW, {**FORM, "window_minutes": "x"}))

    def test_an_empty_form_says_the_defaults(self, as_user, alice):
        assert "Machines idle for 1 h are told of, and go on running." in text(as_user(alice).get(ADD))


class TestUse:
    @pytest.fixture
    def machine(self, make_instance):
        return make_instance()

    def test_the_machines_page_says_how_it_is_used_and_by_what_it_is_judged(self, machine, policy, as_user, vera):
        page = text(as_user(vera).get(f"/t/acme/instances/{machine.pk}/"))
        assert "How it is used" in page
        assert "It is judged, and nothing is told or done." in page
        policy("Nights", mode="batch")
        page = text(as_user(vera).get(f"/t/acme/instances/{machine.pk}/"))
        assert "Machines without work or a heartbeat for 1 h are told of, and go on running." in page
        assert f"/instances/{machine.pk}/use/" not in page

    def test_an_operator_says_it(self, machine, as_user, bob):
        address = f"/t/acme/instances/{machine.pk}/use/"
        assert "as its policy says (interactive)" in text(as_user(bob).get(address))
        answer = as_user(bob).post(address, {"mode": "pinned", "lease_until": "2100-01-01T12:00"})
        assert answer.status_code == 422
        assert "more than a year from now" in text(answer)
        assert '<option value="pinned" selected>' in text(answer)
        assert as_user(bob).post(address, {"mode": "pinned", "lease_until": ""}).status_code == 302
        page = text(as_user(bob).get(f"/t/acme/instances/{machine.pk}/"))
        assert "pinned, never idle" in page
        assert "said by bob" in page
        assert AuditEntry.objects.filter(action="machine_use.change").count() == 1

    def test_viewers_read_and_others_see_nothing(self, machine, as_user, vera, charlie):
        address = f"/t/acme/instances/{machine.pk}/use/"
        assert as_user(vera).post(address, {"mode": "pinned"}).status_code == 403
        assert as_user(charlie).post(address, {"mode": "pinned"}).status_code == 404
