"""The cast and the fixtures of every test: alice owns the team `acme`, bob operates and vera views there, charlie must see nothing of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

import pytest
import time_machine
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import Client, override_settings
from django.utils import translation

from fleet.inventory.models import GPU, Instance, ProviderAccount
from fleet.providers.base import Billing, InstanceState
from fleet.teams.models import Membership, Project, Role, Team, User
from fleet.telemetry.partitions import ensure_partitions


@pytest.fixture(autouse=True, scope="session")
def cheap_passwords():
    """A hash that is slow on purpose would take most of the tests' time."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compiled translations are not in the repository; without them every page is English. Workers find what their controller compiled."""
    if not hasattr(session.config, "workerinput"):
        call_command("messages", only_compile=True, verbosity=0)


# Whole processes and browsers against the real clock: on a machine that does much else, one waits too long now and then.
REAL_TIME = {"e2e", "sandbox"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts whole installations comes first: at the end, one worker would wait for the other. Such tests ask for a longer timeout.

    What fails against the real clock is tried once more; the summary names it.
    """
    for item in items:
        if item.path.parent.name in REAL_TIME:
            item.add_marker(pytest.mark.flaky(reruns=1))
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


@pytest.fixture(autouse=True)
def english():
    """A page that was asked for in Chinese leaves its language in the thread; the next test starts without it."""
    yield
    translation.activate("en")


@pytest.fixture(autouse=True)
def nothing_cached():
    """What throttles count, and what pages keep for a while, lies in the cache, which outlives a test; under a frozen clock it never gets old."""
    cache.clear()


@pytest.fixture
def apart(db, subtests) -> Callable[[str], AbstractContextManager[None]]:
    """`with apart("its name"):` is a test of its own within a walk whose rows are made once: what is written in it is taken back."""

    @contextmanager
    def begin(name: str) -> Iterator[None]:
        # Throttles count there.
        cache.clear()
        with subtests.test(name), transaction.atomic():
            yield
            transaction.set_rollback(True)

    return begin


# What migrations write and every test needs.
KEPT_TABLES = {"django_content_type", "auth_permission"}
# Refuses DELETE in earnest; nothing refers to it, so that it can be truncated alone.
TRUNCATED_TABLE = "fleet_auditentry"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Tests that commit empty the tables after them. The audit log refuses that in earnest."""
    with django_db_blocker.unblock(), connection.cursor() as cursor, pytest.MonkeyPatch.context() as patch:
        cursor.execute(f"ALTER TABLE {TRUNCATED_TABLE} DISABLE TRIGGER not_emptied")
        patch.setattr(type(connection.ops), "sql_flush", empty_what_is_filled)
        # The first test may have stopped the clock in another month, and then its days alone would be there.
        stopped = time_machine.escape_hatch.is_travelling()
        now = time_machine.escape_hatch.time.time() if stopped else time.time()
        ensure_partitions(now=datetime.fromtimestamp(now, UTC))
        yield
        # A thread of some test may still hold a connection, and PostgreSQL drops no database that is in use.
        with connection.cursor() as last:
            last.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


def empty_what_is_filled(
    operations: DatabaseOperations, style: object, tables: list[str], **options: object
) -> list[str]:
    """Truncating makes new files for every table and index, filled or not: seconds for a hundred tables.

    Foreign keys are deferred, so that rows may go in any order within the transaction of the flush.
    """
    names = [name for name in tables if name not in KEPT_TABLES]
    if not names:
        return []
    query = " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT FROM {operations.quote_name(name)})" for name in names
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        filled = [name for (name,) in cursor.fetchall()]
    verbs = {TRUNCATED_TABLE: "TRUNCATE"}
    return [f"{verbs.get(name, 'DELETE FROM')} {operations.quote_name(name)};" for name in filled]


@pytest.fixture
def acme(db) -> Team:
    return Team.objects.create(name="Acme", slug="acme")


@pytest.fixture
def rival(db) -> Team:
    return Team.objects.create(name="Rival", slug="rival")


def member(name: str, team: Team, role: Role) -> User:
    user = User.objects.create_user(name, f"{name}@example.org", "correct horse")
    Membership.objects.create(team=team, user=user, role=role)
    return user


@pytest.fixture
def alice(acme: Team) -> User:
    return member("alice", acme, Role.ADMIN)


@pytest.fixture
def bob(acme: Team) -> User:
    return member("bob", acme, Role.OPERATOR)


@pytest.fixture
def vera(acme: Team) -> User:
    return member("vera", acme, Role.VIEWER)


@pytest.fixture
def charlie(rival: Team) -> User:
    return member("charlie", rival, Role.ADMIN)


@pytest.fixture
def as_user():
    """as_user(alice) is a browser in which alice is signed in."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in


@pytest.fixture
def account(acme: Team) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="manual", name="By hand")


@pytest.fixture
def project(acme: Team) -> Project:
    return Project.objects.create(team=acme, name="Vision", slug="vision")


@pytest.fixture
def make_instance(account: ProviderAccount):
    """make_instance(name="train-01", gpus=2) is a running machine of acme with that many GPUs."""

    def make(*, name: str = "train-01", gpus: int = 0, **fields: object) -> Instance:
        defaults: dict[str, object] = {
            "team": account.team,
            "account": account,
            "external_id": name,
            "state": InstanceState.RUNNING,
            "raw_state": "running",
            "billing": Billing.FULL,
            "managed": True,
        }
        instance = Instance.objects.create(name=name, gpu_count=gpus, **{**defaults, **fields})
        GPU.objects.bulk_create(
            GPU(instance=instance, uuid=f"GPU-{instance.pk:04}-{index}", index=index, name="NVIDIA H100 80GB HBM3")
            for index in range(gpus)
        )
        return instance

    return make
