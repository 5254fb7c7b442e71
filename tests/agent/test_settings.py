"""The agent's files: private, whole, and with a clear word when they are wrong or belong to another machine."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from agent.enrolment import machine_id
from agent.settings import Settings, SettingsError, load_settings, save_settings
from agent.supervise import EXIT_CONFIGURATION, Options, main, refuse_copied_settings

GOOD = {"url": "https://rackrent.example", "token": "rra_secret", "instance_id": 17, "machine_id": "m1"}


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def settings(**changes: object) -> Settings:
    return Settings(**{**GOOD, **changes})  # type: ignore[arg-type]


def test_what_is_saved_is_what_is_loaded_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "etc" / "agent.json"
    save_settings(str(path), settings(ca_file="/ca.pem", provider_ids={"runpod_pod_id": "x"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = load_settings(str(path))
    assert (loaded.token, loaded.ca_file, loaded.provider_ids) == ("rra_secret", "/ca.pem", {"runpod_pod_id": "x"})
    assert [file.name for file in path.parent.iterdir()] == ["agent.json"]


def test_a_token_is_in_no_repr() -> None:
    assert "rra_secret" not in repr(settings())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot be read"),
        ("[]", "no JSON object"),
        (json.dumps({**GOOD, "instance_id": "17"}), "'instance_id'"),
        (json.dumps({name: value for name, value in GOOD.items() if name != "token"}), "'token'"),
    ],
)
def test_a_wrong_file_names_the_field_and_the_remedy(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError, match="enrol this machine again") as error:
        load_settings(write(tmp_path / "agent.json", text))
    assert told in str(error.value)


def test_fields_of_a_newer_agent_are_ignored(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path / "agent.json", json.dumps({**GOOD, "colour": "green"}))).instance_id == 17


def test_a_copied_disk_does_not_write_as_the_machine_it_was_copied_from() -> None:
    enrolled = settings(provider_ids={"aws_instance_id": "i-1"})
    refuse_copied_settings(enrolled, {"aws_instance_id": "i-1"})
    refuse_copied_settings(enrolled, {})
    with pytest.raises(SettingsError, match="its disk was copied"):
        refuse_copied_settings(enrolled, {"aws_instance_id": "i-2"})


def test_wrong_settings_end_with_the_status_that_is_not_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Options(str(tmp_path / "none.json"), str(tmp_path), self_update=False, archive="")
    assert main(options.words()) == EXIT_CONFIGURATION
    assert "enrol" in capsys.readouterr().err


def test_options_outlive_an_exec() -> None:
    given = Options("/etc/agent.json", "/var/lib/x", self_update=True, archive="/opt/a.pyz")
    again = Options.parsed(given.words())
    assert again.words() == given.words()
    assert again.self_update


def test_containers_of_one_image_are_different_machines(machine: Path) -> None:
    (machine / "etc").mkdir()
    (machine / "etc/machine-id").write_text("0123456789abcdef\n")
    (machine / ".dockerenv").write_text("")
    missing = str(machine / "none.json")
    assert machine_id(missing, f"{machine}/") != machine_id(missing, f"{machine}/")


def test_a_machine_keeps_its_id_and_its_copy_gets_another(machine: Path) -> None:
    (machine / "etc").mkdir()
    (machine / "etc/machine-id").write_text("0123456789abcdef\n")
    (machine / "sys/class/dmi/id").mkdir(parents=True)
    (machine / "sys/class/dmi/id/product_uuid").write_text("AAAA\n")
    missing = str(machine / "none.json")
    first = machine_id(missing, f"{machine}/")
    assert first == machine_id(missing, f"{machine}/")
    assert "0123456789abcdef" not in first, "the machine id is confidential"
    (machine / "sys/class/dmi/id/product_uuid").write_text("BBBB\n")
    assert machine_id(missing, f"{machine}/") != first


def test_a_machine_whose_firmware_id_is_unreadable_is_not_taken_for_a_copy_of_its_disk(machine: Path) -> None:
    (machine / "etc").mkdir()
    (machine / "etc/machine-id").write_text("0123456789abcdef\n")
    missing = str(machine / "none.json")
    assert machine_id(missing, f"{machine}/") != machine_id(missing, f"{machine}/")


@pytest.mark.parametrize("serving", [None, [], ["http://127.0.0.1:8000/metrics"]])
def test_engines_to_read_are_kept_as_written(tmp_path: Path, serving: list[str] | None) -> None:
    path = str(tmp_path / "agent.json")
    save_settings(path, settings(serving=serving))
    assert load_settings(path).serving == serving


@pytest.mark.parametrize("serving", ["http://127.0.0.1/", [7], ["http://10.0.0.1:8000/metrics"], ["x"]])
def test_an_engine_on_another_machine_is_refused_by_name(tmp_path: Path, serving: object) -> None:
    with pytest.raises(SettingsError, match=r"'serving'.*127"):
        load_settings(write(tmp_path / "agent.json", json.dumps({**GOOD, "serving": serving})))
