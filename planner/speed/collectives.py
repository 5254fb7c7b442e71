"""Seconds of one collective over a group of GPUs: bytes over the slowest link of the ring, and a latency for each step of it."""

from __future__ import annotations

from dataclasses import replace

from planner.catalogue.links import Link, Network


def slowest_link(network: Network, group: int, *, stride: int = 1) -> Link:
    """The link that bounds a ring over `group` GPUs that lie `stride` apart.

    A group that leaves its domain runs as many rings as it has members there, each over its own port: NCCL's bus bandwidth between machines
    is that of all their ports together.
    """
    if group * stride <= network.domain:
        return network.inside
    members = max(1, network.domain // stride)
    reached = min(network.between.bandwidth * members, network.inside.bandwidth)
    return replace(network.between, bandwidth=reached)


def all_gather_seconds(size: float, group: int, link: Link) -> float:
    """`size`: bytes of the gathered whole. Each GPU receives what it does not have; a ring takes group - 1 steps. Reduce-scatter is the same."""
    if group == 1:
        return 0.0
    return size * (group - 1) / group / link.reached + (group - 1) * link.latency


def all_reduce_seconds(size: float, group: int, link: Link) -> float:
    """A reduce-scatter and an all-gather."""
    return 2 * all_gather_seconds(size, group, link)


def all_to_all_seconds(size: float, group: int, network: Network, *, stride: int = 1) -> float:
    """`size`: bytes that each GPU holds and spreads evenly over the group; the share that leaves the domain goes over its port."""
    if group == 1:
        return 0.0
    near = min(group, max(1, network.domain // stride))
    inside = size * (near - 1) / group / network.inside.reached + network.inside.latency * (near > 1)
    outside = size * (group - near) / group / network.between.reached + network.between.latency * (group > near)
    return max(inside, outside)


def send_seconds(size: float, link: Link) -> float:
    return size / link.reached + link.latency
