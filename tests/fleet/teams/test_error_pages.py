from __future__ import annotations

import pytest
from django.contrib.auth.decorators import login_not_required
from django.test import Client
from django.urls import path

from fleet.teams.models import Team


def test_a_missing_role_is_named(vera, as_user):
    answer = as_user(vera).get("/t/acme/settings/audit/")
    assert answer.status_code == 403
    assert "This needs the role Admin" in answer.text
    assert "In Acme you are Viewer." in answer.text


def test_the_sandbox_names_no_admin_who_could_help(alice, as_user):
    Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    browser = as_user(alice)
    answer = browser.post("/t/sandbox/settings/projects/new/", {"name": "Mine"})
    assert answer.status_code == 403
    assert "The sandbox is for looking" in answer.text
    assert "nobody changes it" in browser.get("/t/sandbox/settings/members/").text


def test_nothing_there_says_so_in_the_readers_language(alice, as_user):
    answer = as_user(alice).get("/nowhere/", headers={"Accept-Language": "zh-CN"})
    assert answer.status_code == 404
    assert "此地址没有内容" in answer.text


def test_an_unknown_host_name_is_refused_with_the_remedy(db, client):
    answer = client.get("/login/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.text


def test_a_form_without_its_cookie_is_not_taken(alice):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = browser.post("/t/acme/settings/team/", {"name": "Forged", "currency": "USD"})
    assert answer.status_code == 403
    assert "Please send it again" in answer.text


@login_not_required
def broken(request):
    raise RuntimeError


urlpatterns = [path("broken/", broken)]


@pytest.mark.urls(__name__)
def test_an_error_page_needs_no_database(client):
    client.raise_request_exception = False
    answer = client.get("/broken/", headers={"Accept-Language": "zh-CN"})
    assert answer.status_code == 500
    assert "这里出错了" in answer.text


def test_a_text_that_is_too_large_is_refused_with_the_limit(alice, as_user, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
    answer = as_user(alice).post("/t/acme/offers/lists/", {"csv": "x" * (1 << 20)})
    assert answer.status_code == 413
    assert "larger than 1 MiB. Go back" in answer.text
