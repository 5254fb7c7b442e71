"""Every way to serve a model on a GPU that answers the load, with its memory, its speed and its money."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from planner.catalogue.gpus import Gpu
from planner.catalogue.links import Network, network_for
from planner.choice.layouts import serving_layouts
from planner.choice.prices import HourlyPrice, hourly_price
from planner.choice.training import Fit
from planner.memory.serving import ServingMemory, serving_memory
from planner.runs import Layout, ServingRun
from planner.speed.serving import ServingSpeed, serving_speed
from planner.wishes import Market, ServingWish

REPLICA_SIZES = (1, 2, 4, 8, 16)
MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class ServingOption:
    """`run` is one replica with its share of the requests; `replicas` of them answer the load. `meets_targets`: the latencies asked for."""

    gpu: Gpu
    run: ServingRun
    replicas: int
    memory: ServingMemory
    fit: Fit
    speed: ServingSpeed
    meets_targets: bool
    price: HourlyPrice | None

    @property
    def gpus(self) -> int:
        return self.run.layout.gpus * self.replicas

    @property
    def output_tokens_per_second(self) -> float:
        return self.speed.output_tokens_per_second * self.replicas

    @property
    def cost_per_hour(self) -> Decimal | None:
        return None if self.price is None else self.price.per_hour

    @property
    def cost_per_million_tokens(self) -> Decimal | None:
        """Of output tokens, at the full load."""
        if self.price is None:
            return None
        return self.price.per_hour / Decimal(repr(self.output_tokens_per_second * 3600)) * MILLION


@dataclass(slots=True)
class ServingSearch:
    wish: ServingWish
    market: Market

    def options(self, gpu: Gpu) -> Iterator[ServingOption]:
        """For each size of a replica, the fewest replicas that hold the load and answer in time."""
        network = network_for(gpu, self.market.link)
        for size in REPLICA_SIZES:
            if size > self.market.most_gpus:
                return
            for layout in self._layouts(size, network):
                if option := self._fewest_replicas(gpu, layout, network):
                    yield option

    def _layouts(self, size: int, network: Network) -> list[Layout]:
        """All tensor parallel, where it divides; without NVLink also all in a line, which a slow link minds less."""
        found = list(serving_layouts(self.wish.shape, gpus=size, domain=network.domain))
        return found[:1] if network.inside.medium == "nvlink" else [*found[:1], *found[1:][-1:]]

    def _fewest_replicas(self, gpu: Gpu, layout: Layout, network: Network) -> ServingOption | None:
        held = serving_memory(serving_run(self.wish, layout, self.wish.concurrency), gpu)
        if held.requests < 1:
            return None
        replicas = math.ceil(self.wish.concurrency / held.requests)
        fewest: ServingOption | None = None
        while replicas * layout.gpus <= self.market.most_gpus and replicas <= self.wish.concurrency:
            option = self._option(gpu, layout, network, replicas)
            if option.meets_targets:
                return option
            fewest = fewest or option
            replicas *= 2
        # More replicas make no request faster than the hardware is.
        return fewest

    def _option(self, gpu: Gpu, layout: Layout, network: Network, replicas: int) -> ServingOption:
        run = serving_run(self.wish, layout, math.ceil(self.wish.concurrency / replicas))
        memory, speed = serving_memory(run, gpu), serving_speed(run, gpu, network)
        return ServingOption(
            gpu=gpu,
            run=run,
            replicas=replicas,
            memory=memory,
            fit="fits" if memory.estimate.high() <= gpu.memory_bytes and memory.holds_the_load else "tight",
            speed=speed,
            meets_targets=self._in_time(speed),
            price=hourly_price(gpu.id, layout.gpus * replicas, self.market),
        )

    def _in_time(self, speed: ServingSpeed) -> bool:
        first, each = self.wish.first_token_seconds, self.wish.seconds_per_token
        return (first is None or speed.first_token.expected <= first) and (each is None or speed.token.expected <= each)


def serving_run(wish: ServingWish, layout: Layout, concurrency: int) -> ServingRun:
    return ServingRun(
        shape=wish.shape,
        engine=wish.engine,
        layout=layout,
        concurrency=concurrency,
        prompt_tokens=wish.prompt_tokens,
        output_tokens=wish.output_tokens,
        weight_format=wish.weight_format,
        compute_dtype=wish.compute_dtype,
        kv_dtype=wish.kv_dtype,
        memory_utilization=wish.memory_utilization,
        max_model_len=wish.max_model_len or wish.prompt_tokens + wish.output_tokens,
    )
