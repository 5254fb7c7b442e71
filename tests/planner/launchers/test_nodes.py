"""Several nodes: one rendezvous, a rank for each node where the launcher wants one, host files, and what NCCL must know."""

from __future__ import annotations

import pytest

from planner.launchers.base import Artefact
from planner.launchers.registry import LAUNCHERS, make_artefact
from tests.planner.launchers.orders import ORDERS, shell_words


def made(key: str, order: str) -> Artefact:
    artefact = make_artefact(LAUNCHERS[key], ORDERS[order])
    assert isinstance(artefact, Artefact)
    return artefact


def words_of(key: str, order: str) -> list[str]:
    return shell_words(made(key, order).commands[-1].text)


def text_of(key: str, order: str, name: str) -> str:
    return next(file.text for file in made(key, order).files if file.name == name)


def test_torchrun_meets_at_the_first_host() -> None:
    assert {"--nnodes=2", "--nproc-per-node=8", "--rdzv-backend=c10d", "--rdzv-endpoint=node-a:29500"} <= set(
        words_of("torchrun", "training-nodes")
    )


@pytest.mark.parametrize(
    ("key", "order", "option"),
    [
        ("accelerate", "training-nodes", "--machine_rank="),
        ("deepspeed", "training-nodes", "--node_rank="),
        ("paddle", "training-nodes", "--rank="),
    ],
)
def test_a_rank_for_each_node_is_asked_for(key, order, option) -> None:
    [word] = [word for word in words_of(key, order) if word.startswith(option)]
    assert word.startswith(f"{option}${{NODE_RANK:?")


def test_accelerate_counts_machines_and_processes() -> None:
    text = text_of("accelerate", "training-nodes", "accelerate.yaml")
    assert "num_machines: 2\nnum_processes: 16\n" in text
    assert "main_process_ip: node-a\nmain_process_port: 29500\n" in text


def test_host_files_name_every_host() -> None:
    assert text_of("deepspeed", "training-nodes", "hosts") == "node-a slots=8\nnode-b slots=8\n"


def test_colossalai_needs_no_way_from_machine_to_machine() -> None:
    artefact = made("colossalai", "training-nodes")
    assert [command.where for command in artefact.commands] == ["every-node"]
    assert {"torchrun", "--nnodes=2", "--rdzv-endpoint=node-a:29500"} <= set(words_of("colossalai", "training-nodes"))


def test_vllm_joins_the_nodes_before_it_serves() -> None:
    artefact = made("vllm", "serving-nodes")
    assert [command.where for command in artefact.commands] == ["every-node", "first-node", "first-node"]
    assert "ray start --address=node-a:6379 --num-gpus=8" in text_of("vllm", "serving-nodes", "ray.sh")
    assert {"--distributed-executor-backend=ray", "--tensor-parallel-size=8", "--pipeline-parallel-size=2"} <= set(
        shell_words(artefact.commands[1].text)
    )


@pytest.mark.parametrize("key", ["torchrun", "accelerate", "deepspeed", "huggingface", "paddle", "megatron"])
def test_nccl_is_told_the_interface(key) -> None:
    order = "training-nodes-tensor" if key == "megatron" else "training-nodes"
    assert {"NCCL_SOCKET_IFNAME=eth0", "GLOO_SOCKET_IFNAME=eth0"} <= set(words_of(key, order))


def test_geforce_cards_have_no_peer_access() -> None:
    assert {"NCCL_P2P_DISABLE=1", "NCCL_IB_DISABLE=1"} <= set(words_of("torchrun", "training-geforce"))
    assert "--disable-custom-all-reduce" in shell_words(made("vllm", "serving-geforce").commands[0].text)
    assert not [word for word in words_of("torchrun", "training-ddp") if word.startswith("NCCL_P2P")]
