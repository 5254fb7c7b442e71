from __future__ import annotations

from fleet.teams.models import AuditEntry, Project


def test_an_admin_makes_a_project(alice, as_user):
    as_user(alice).post("/t/acme/settings/projects/new/", {"name": "Speech 语音"})
    assert Project.objects.get().slug == "speech"


def test_a_name_is_there_once(alice, project, as_user):
    answer = as_user(alice).post("/t/acme/settings/projects/new/", {"name": "VISION"})
    assert answer.status_code == 422
    assert "A project of this name exists" in answer.text


def test_two_teams_may_use_the_same_name(project, charlie, as_user):
    as_user(charlie).post("/t/rival/settings/projects/new/", {"name": "Vision"})
    assert Project.objects.filter(slug="vision").count() == 2


def test_a_renamed_project_keeps_its_address(alice, project, as_user):
    as_user(alice).post(f"/t/acme/settings/projects/{project.pk}/rename/", {"name": "Perception"})
    project.refresh_from_db()
    assert (project.name, project.slug) == ("Perception", "vision")
    assert AuditEntry.objects.get(action="project.update").old == {"name": "Vision"}


def test_its_own_name_in_other_letters_is_no_clash(alice, project, as_user):
    as_user(alice).post(f"/t/acme/settings/projects/{project.pk}/rename/", {"name": "VISION"})
    project.refresh_from_db()
    assert project.name == "VISION"


def test_an_empty_name_changes_nothing(alice, project, as_user):
    answer = as_user(alice).post(f"/t/acme/settings/projects/{project.pk}/rename/", {"name": " "}, follow=True)
    assert "keeps the one it has" in answer.text
    project.refresh_from_db()
    assert project.name == "Vision"


def test_archived_and_back(alice, project, as_user):
    browser = as_user(alice)
    for _ in range(2):
        browser.post(f"/t/acme/settings/projects/{project.pk}/archive/")
    project.refresh_from_db()
    assert project.archived_at
    browser.post(f"/t/acme/settings/projects/{project.pk}/restore/")
    project.refresh_from_db()
    assert project.archived_at is None
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == [
        "project.archive",
        "project.restore",
    ]
