"""What the machine is: container, provider, frameworks, all read without running anything."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agent.host.container import container_kind, sees_host_processes
from agent.host.environment import environment
from agent.host.packages import versions
from agent.host.provider_ids import Metadata, provider_ids


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "RUNPOD_POD_ID", "VAST_CONTAINERLABEL", "AutoDLContainerUUID"):
        monkeypatch.delenv(name, raising=False)


def put(machine: Path, path: str, text: str = "") -> None:
    (machine / path).parent.mkdir(parents=True, exist_ok=True)
    (machine / path).write_text(text)


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        (".dockerenv", "", "docker"),
        ("run/.containerenv", "", "podman"),
        ("var/run/secrets/kubernetes.io/token", "", "kubernetes"),
        ("run/systemd/container", "lxc\n", "lxc"),
        ("run/systemd/container", "systemd-nspawn\n", "unknown"),
        ("proc/1/environ", "PATH=/bin\0container=podman\0", "podman"),
        ("proc/1/environ", "KUBERNETES_SERVICE_HOST=10.0.0.1\0", "kubernetes"),
        ("proc/1/cgroup", "0::/kubepods/besteffort/pod1\n", "kubernetes"),
        ("proc/1/cgroup", "5:memory:/docker/0123\n", "docker"),
        ("proc/self/mounts", "overlay / overlay rw 0 0\n", "unknown"),
        ("proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n", "none"),
    ],
)
def test_kind_of_container(machine: Path, path: str, text: str, kind: str) -> None:
    put(machine, path, text)
    assert container_kind(f"{machine}/") == kind


def test_host_process_ids_are_told_by_the_namespace(machine: Path) -> None:
    assert not sees_host_processes(f"{machine}/")
    (machine / "proc/self/ns").mkdir(parents=True)
    (machine / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert sees_host_processes(f"{machine}/")


def test_frameworks_and_libraries_by_the_names_of_their_metadata(machine: Path) -> None:
    site = "opt/conda/lib/python3.12/site-packages/"
    for name in (
        "torch-2.9.1+cu128",
        "nvidia_cudnn_cu12-9.10.2.21",
        "nvidia_nccl_cu12-2.27.5",
        "flash_attn-2.8.3",
        "requests-2.32.0",
    ):
        put(machine, f"{site}{name}.dist-info/METADATA")
    put(machine, "usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7")
    found = versions(f"{machine}/")
    assert found["frameworks"] == {"torch": "2.9.1+cu128", "flash_attn": "2.8.3"}
    assert found["cudnn"] == "9.10.2.21"
    assert found["nccl"] == "2.27.5"


def test_system_libraries_count_where_no_package_brings_them(machine: Path) -> None:
    for name in ("libcudnn.so.9", "libcudnn.so.9.8.0", "libnccl.so.2.21.5"):
        put(machine, f"usr/lib/x86_64-linux-gnu/{name}")
    found = versions(f"{machine}/")
    assert (found["cudnn"], found["nccl"]) == ("9.8.0", "2.21.5")
    assert "frameworks" not in found


def test_provider_ids_from_the_first_process_of_the_container(machine: Path) -> None:
    put(machine, "proc/1/environ", "RUNPOD_POD_ID=x7f2k9\0VAST_CONTAINERLABEL=C.4711\0AutoDLContainerUUID=ab-12\0")
    assert provider_ids(f"{machine}/", ()) == {
        "runpod_pod_id": "x7f2k9",
        "vast_instance_id": "4711",
        "autodl_instance_id": "ab-12",
    }


def test_provider_ids_from_firmware_and_cloud_init(machine: Path) -> None:
    put(machine, "sys/class/dmi/id/board_asset_tag", "i-0123456789abcdef0\n")
    put(machine, "run/cloud-init/cloud-id", "hetzner\n")
    put(machine, "var/lib/cloud/data/instance-id", "998877\n")
    assert provider_ids(f"{machine}/", ()) == {
        "aws_instance_id": "i-0123456789abcdef0",
        "hetzner_instance_id": "998877",
    }


def test_what_is_no_id_is_not_passed_on(machine: Path) -> None:
    put(machine, "proc/1/environ", "RUNPOD_POD_ID=<script>\0")
    put(machine, "sys/class/dmi/id/board_asset_tag", "Not Specified\n")
    assert provider_ids(f"{machine}/", ()) == {}


class _Metadata(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked_rightly = self.headers.get("Metadata-Flavor") == "Google"
        self.send_response(200 if asked_rightly else 403)
        self.end_headers()
        self.wfile.write(b"1234567890")

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


def test_metadata_is_asked_only_where_the_firmware_names_the_vendor(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Metadata)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    host, headers = f"127.0.0.1:{server.server_port}", {"Metadata-Flavor": "Google"}
    source = Metadata(
        "gcp_instance_id", dmi="product_name", vendor="Google Compute Engine", host=host, path="/id", headers=headers
    )
    try:
        assert provider_ids(f"{machine}/", (source,)) == {}
        put(machine, "sys/class/dmi/id/product_name", "Google Compute Engine\n")
        assert provider_ids(f"{machine}/", (source,)) == {"gcp_instance_id": "1234567890"}
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def test_the_environment_has_only_the_protocols_fields() -> None:
    allowed = {
        *(
            "hostname",
            "os",
            "kernel",
            "architecture",
            "container",
            "cpu_model",
            "cpu_count",
            "memory_total_bytes",
            "boot_id",
        ),
        *("boot_at", "driver", "cuda_driver", "nvml", "cudnn", "nccl", "python", "frameworks", "provider_ids"),
        *("agent_version", "agent_user"),
    }
    assert set(environment()) <= allowed
