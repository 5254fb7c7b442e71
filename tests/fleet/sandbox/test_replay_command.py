"""`manage.py replay_trace` as a person meets it: what it refuses and why, and what it says of a replay that works."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command

from fleet.teams.models import Team
from fleet.telemetry.models import Agent, EnrolmentToken
from tests.fleet.sandbox.loopback import serving
from tests.fleet.sandbox.stub_asgi import application
from tests.fleet.sandbox.stub_ingest import StubIngest

HEADER = "pod,t_s,gpu_util_percent,memory_used_bytes\n"
ROWS = "".join(f"pod-{pod},{57 * row},{row % 101},1000\n" for pod in range(3) for row in range(50))


@pytest.fixture
def server() -> StubIngest:
    return StubIngest()


@pytest.fixture
def address(server: StubIngest) -> Iterator[str]:
    with serving(application(server)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + ROWS)
    return path


@pytest.fixture
def replay(trace_file: Path, tmp_path: Path):
    """replay("--team=acme") is what the command printed."""

    def run(*options: str, file: Path | None = None) -> str:
        output = StringIO()
        words = [str(file or trace_file), f"--state-dir={tmp_path / 'state'}", *options]
        call_command("replay_trace", *words, stdout=output, stderr=output)
        return output.getvalue()

    return run


def test_a_replay_says_what_it_sends_and_what_arrived(replay, server: StubIngest, address: str) -> None:
    said = replay(f"--url={address}", "--token=rre_good")
    assert "150 samples of 3 pods, from 20" in said
    assert "150 of 150 samples are sent and acknowledged" in said
    assert len(server.samples) == 150


def test_the_trace_ends_now_unless_a_start_is_given(replay, server: StubIngest, address: str) -> None:
    with time_machine.travel("2026-11-30T12:00:00+00:00", tick=True):
        replay(f"--url={address}", "--token=rre_good")
    assert 0 <= 1_796_040_000 - max(at for _, at in server.samples) <= 1
    with time_machine.travel("2026-11-30T12:00:00+00:00", tick=True):
        replay(f"--url={address}", "--token=rre_good", "--start=2026-11-30T06:00")
    assert min(at for _, at in server.samples) == 1_796_018_400


def test_a_second_run_sends_nothing_and_says_so(replay, server: StubIngest, address: str) -> None:
    replay(f"--url={address}", "--token=rre_good")
    assert "150 of 150 samples were sent by an earlier run" in replay(f"--url={address}", "--token=rre_good")
    assert server.posted == 150


def test_again_replays_it_as_new(replay, server: StubIngest, address: str) -> None:
    replay(f"--url={address}", "--token=rre_good")
    with time_machine.travel("2036-11-30T12:00:00+00:00", tick=True):
        replay(f"--url={address}", "--token=rre_good", "--again")
    assert len(server.samples) == 300
    assert len(server.enrolled) == 3


def test_bad_rows_are_named_and_nothing_is_sent(replay, server: StubIngest, address: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(HEADER + "a,0,5,5\na,57,500,5\nb,x,1,1\n")
    with pytest.raises(CommandError) as refused:
        replay(f"--url={address}", "--token=rre_good", file=bad)
    text = str(refused.value)
    assert "line 3: gpu_util_percent is 500, outside 0 to 100" in text
    assert "line 4: t_s is 'x', not a number" in text
    assert "--skip-bad to replay the other 1" in text
    assert server.enrolled == []


def test_bad_rows_can_be_left_out_aloud(replay, server: StubIngest, address: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(HEADER + "a,0,5,5\na,57,500,5\n")
    said = replay(f"--url={address}", "--token=rre_good", "--skip-bad", file=bad)
    assert "line 3: gpu_util_percent is 500" in said
    assert len(server.samples) == 1


def test_a_trace_too_long_ago_says_which_part_and_what_to_do(replay, server: StubIngest, address: str) -> None:
    with time_machine.travel("2026-11-30T12:00:00+00:00", tick=True), pytest.raises(CommandError) as refused:
        replay(f"--url={address}", "--token=rre_good", "--start=2026-11-28T11:45:00Z")
    text = str(refused.value)
    assert (
        "54 readings of 3 pods, from 2026-11-28T11:45:00+00:00 to 2026-11-28T12:01:09+00:00, are older than 48 h"
        in text
    )
    assert "--start 2026-11-28T12:1" in text
    assert "--skip-old" in text
    assert server.enrolled == []


def test_what_is_too_old_can_be_left_out_aloud(replay, server: StubIngest, address: str) -> None:
    with time_machine.travel("2026-11-30T12:00:00+00:00", tick=True):
        said = replay(f"--url={address}", "--token=rre_good", "--start=2026-11-28T11:45:00Z", "--skip-old")
    assert "54 were older than 48 h and left out" in said
    assert len(server.samples) == 96


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--speed=0", "is not a number above 0"),
        ("--speed=fast", "is not a number above 0"),
        ("--start=tomorrow", "is not a time such as"),
        ("--url=dashboard", "is not an address such as"),
        ("--token=rra_x", "begins with rre_"),
    ],
)
def test_a_bad_option_is_named(replay, option: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        replay(option)


def test_what_the_server_did_not_keep_fails_the_command(replay, server: StubIngest, address: str) -> None:
    import httpx

    refusal = httpx.Response(422, json={"error": "invalid", "detail": "no", "field": "samples"})
    answers = iter([refusal])
    server.script = lambda request: next(answers, None) if request.url.path.endswith("samples") else None
    with pytest.raises(CommandError, match=r"did not keep everything:\s+pod pod-\d, lines \d+ to \d+: 422"):
        replay(f"--url={address}", "--token=rre_good")


@pytest.mark.django_db(transaction=True)
class TestTeam:
    def test_a_token_is_made_for_the_team(
        self, replay, server: StubIngest, address: str, acme: Team, rival: Team
    ) -> None:
        seen: list[str] = []

        def let_in(request) -> None:
            token = request.headers["Authorization"].removeprefix("Bearer ")
            if token.startswith("rre_"):
                seen.append(token)
                server.enrolment_tokens.add(token)

        server.script = let_in
        replay(f"--url={address}", "--team=acme")
        token = EnrolmentToken.objects.get()
        assert (token.team, token.max_uses, token.created_by) == (acme, 3, None)
        assert len(set(seen)) == 1

    def test_its_agents_get_the_pace_of_the_trace(
        self, replay, server: StubIngest, address: str, acme: Team, make_instance
    ) -> None:
        server.script = lambda request: server.enrolment_tokens.add(
            request.headers["Authorization"].removeprefix("Bearer ")
        )
        instances = [make_instance(name=f"pod-{pod}") for pod in range(2)]
        # As the real server numbers them; the third is another team's.
        first = instances[0].pk
        for number, instance in enumerate(instances):
            Agent.objects.create(instance=instance, token_hash=f"hash-{number}", prefix="rra_")
        server.first_instance_id = first
        replay(f"--url={address}", "--team=acme")
        assert list(Agent.objects.values_list("interval_seconds", flat=True)) == [60, 60]

    def test_an_unknown_team_is_named_beside_those_there_are(self, replay, acme: Team) -> None:
        with pytest.raises(CommandError, match=r"There is no team akme\. Teams: acme"):
            replay("--team=akme")

    def test_several_teams_need_a_choice(self, replay, acme: Team, rival: Team) -> None:
        with pytest.raises(CommandError, match=r"Say which team gets the machines.*acme, rival"):
            replay()

    def test_nothing_is_made_when_there_is_nothing_to_send(
        self, replay, server: StubIngest, address: str, acme: Team
    ) -> None:
        server.script = lambda request: None
        with pytest.raises(CommandError):
            replay(f"--url={address}", "--team=acme", "--start=2020-01-01")
        assert not EnrolmentToken.objects.exists()
