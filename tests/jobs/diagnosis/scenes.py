"""Runs as evidence, made of a few figures: what went wrong is known of each, and what must not be found as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import nan, sin

from jobs.diagnosis.evidence import (
    Event,
    Evidence,
    GpuEvidence,
    HostEvidence,
    Kind,
    Line,
    Predicted,
    Series,
    ServingEvidence,
)
from jobs.progress.point import Point

GIB = float(1 << 30)
START = 1_796_000_000.0
HOUR = 3600.0


def series(
    value: float | Callable[[float], float], *, seconds: float = HOUR, every: float = 15.0, at: float = START
) -> Series:
    made = value if callable(value) else lambda _elapsed: value
    return Series(tuple((at + elapsed, float(made(elapsed))) for elapsed in steps(seconds, every)))


def steps(seconds: float, every: float) -> Iterator[float]:
    return (number * every for number in range(int(seconds / every) + 1))


def log(*texts: str) -> tuple[Line, ...]:
    return tuple(Line(number, text, START + number) for number, text in enumerate(texts, start=1))


def gpu(index: int = 0, **more: object) -> GpuEvidence:
    usual = {
        "utilization_percent": series(97),
        "power_watts": series(640),
        "power_limit_watts": 700.0,
        "memory_used_bytes": series(60 * GIB),
        "memory_total_bytes": 80 * GIB,
        "hot": 0.0,
        "capped": 0.2,
        "rated_watts": 700.0,
    }
    return GpuEvidence(index=index, **(usual | more))  # type: ignore[arg-type]


def host(**more: object) -> HostEvidence:
    usual = {
        "cpu_percent": series(30),
        "iowait_percent": series(0.5),
        "pressure_io_percent": series(0.4),
        "memory_used_bytes": series(100 * GIB),
        "memory_total_bytes": 512 * GIB,
        "disk_busy_percent": series(12),
        "disk_used_ratio": series(0.5),
    }
    return HostEvidence(**(usual | more))  # type: ignore[arg-type]


def points(
    *,
    every: float = 2.0,
    seconds: float = HOUR,
    loss: Callable[[int], float] = lambda step: 2.0 + 3.0 / (1 + step / 50),
) -> tuple[tuple[float, Point], ...]:
    return tuple(
        (START + at, Point(step=number, loss=loss(number), seconds_per_step=every))
        for number, at in enumerate(steps(seconds, every * 10), start=1)
    )


def training(**more: object) -> Evidence:
    usual: dict[str, object] = {
        "kind": Kind.TRAINING,
        "gpus": tuple(gpu(index) for index in range(4)),
        "host": host(),
        "points": points(),
        "started_at": START,
        "now": START + HOUR,
        "predicted": Predicted(
            seconds_per_step=1.9,
            terms={"weights": 15 * GIB, "activations_mlp": 10 * GIB, "logits": 4 * GIB, "optimizer": 30 * GIB},
        ),
        "settings": {"batch_size": 8.0},
    }
    return Evidence(**(usual | more))  # type: ignore[arg-type]


def serving(**more: object) -> Evidence:
    usual: dict[str, object] = {
        "kind": Kind.SERVING,
        "gpus": (gpu(utilization_percent=series(60)),),
        "host": host(),
        "serving": endpoint(),
        "started_at": START,
        "now": START + HOUR,
    }
    return Evidence(**(usual | more))  # type: ignore[arg-type]


def endpoint(**more: object) -> ServingEvidence:
    usual = {
        "running": series(lambda at: 12 + 4 * sin(at / 300)),
        "waiting": series(0),
        "kv_cache_ratio": series(0.6),
        "requests": series(3),
        "failed": series(0),
        "ttft_p95_seconds": series(0.4),
        "e2e_p50_seconds": series(4),
        "e2e_p95_seconds": series(9),
        "process_memory_bytes": series(20 * GIB),
    }
    return ServingEvidence(**(usual | more))  # type: ignore[arg-type]


def out_of_memory(
    *frames: str, tried: str = "2.00 GiB", free: str = "512.00 MiB", unused: str = "300.00 MiB", other: str = ""
) -> tuple[Line, ...]:
    return log(
        "Traceback (most recent call last):",
        *(f"  {frame}" for frame in frames),
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 79.15 GiB of which {free} is free. {other}"
        f"Including non-PyTorch memory, this process has 78.10 GiB memory in use. Of the allocated memory 74.20 GiB is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated.",
    )


FORWARD = 'File "train.py", line 90, in forward'
waves = series(lambda at: 96.0 if at % 120 < 70 else 5.0)
sawtooth = series(lambda at: 92.0 if at % 90 < 45 else 3.0)


def shifted_by(seconds: float) -> Series:
    return series(lambda at: 90.0 if (at + seconds) % 150 < 75 else 4.0)


shifted = tuple(gpu(index, utilization_percent=shifted_by(index * 37.0)) for index in range(4))

SCENES: dict[str, tuple[Evidence, set[str]]] = {
    # Nothing is wrong.
    "healthy_training": (training(), set()),
    "healthy_evaluation_pause": (training(gpus=tuple(gpu(index, utilization_percent=series(lambda at: 20.0 if 1800 < at < 1980 else 97.0)) for index in range(4))), set()),
    "healthy_finished": (training(exit_code=0), set()),
    "healthy_just_started": (training(points=(), gpus=(gpu(utilization_percent=series(0, seconds=120)),), now=START + 120), set()),
    "healthy_power_capped": (training(gpus=(gpu(capped=1.0),)), set()),
    "healthy_serving": (serving(), set()),
    "healthy_serving_filling_cache": (serving(serving=endpoint(process_memory_bytes=series(lambda at: 20 * GIB + 9 * GIB * (1 - 2.718 ** (-at / 1200)), seconds=3 * HOUR, every=60.0))), set()),
    "healthy_serving_following_load": (serving(serving=endpoint(running=series(lambda at: 20 if at < 7000 else 1, seconds=3 * HOUR, every=60.0), process_memory_bytes=series(lambda at: 20 * GIB + (at / 3600 * GIB if at < 7000 else 0.2 * GIB), seconds=3 * HOUR, every=60.0))), set()),
    "healthy_serving_without_traffic": (serving(gpus=(gpu(utilization_percent=series(0), power_watts=series(90)),), serving=endpoint(running=series(0), requests=series(0), e2e_p50_seconds=Series(), e2e_p95_seconds=Series(), ttft_p95_seconds=Series())), set()),
    "healthy_noise_in_the_log": (training(lines=log("Warning: a previous run failed; resuming", "Reading shards", "the memory of this model is large")), set()),
    "healthy_long_checkpoint": (training(gpus=tuple(gpu(index, utilization_percent=series(lambda at: 0.0 if 1500 < at < 1700 else 97.0), power_watts=series(lambda at: 90.0 if 1500 < at < 1700 else 640.0)) for index in range(4))), set()),
    "healthy_busy_cpu": (training(host=host(cpu_percent=series(96))), set()),
    "healthy_busy_disk": (training(host=host(disk_busy_percent=series(97), iowait_percent=series(14))), set()),
    "healthy_full_page_cache": (training(host=host(memory_used_bytes=series(505 * GIB))), set()),
    "healthy_a_little_late": (training(predicted=Predicted(seconds_per_step=1.6)), set()),
    "healthy_loss_spike": (training(points=points(loss=lambda step: 60.0 if step == 90 else 2.0)), set()),
    "healthy_falling_loss": (training(points=points(loss=lambda step: 11.0 / step)), set()),
    "healthy_negative_loss": (training(points=points(loss=lambda step: -0.5 - step / 1000)), set()),
    "healthy_warm_gpu": (training(gpus=(gpu(hot=0.04), gpu(1))), set()),
    "healthy_over_sockets": (training(lines=log("train-01:1:2 [0] NCCL INFO Using network Socket")), set()),
    "healthy_quiet_log": (training(predicted=Predicted(), points=points(seconds=3000, every=30.0), now=START + 3200), set()),
    "healthy_stopped_firmly": (training(exit_code=137, stopped=True, host=HostEvidence()), set()),
    "healthy_a_little_disk_left": (training(host=host(disk_used_ratio=series(0.95))), set()),
    "healthy_old_xid": (training(events=(Event(START - 900, "xid", 79, 3),)), set()),
    "healthy_calm_neighbours": (training(neighbour_score=22), set()),
    "healthy_command_that_waits": (Evidence(Kind.COMMAND, gpus=(gpu(utilization_percent=series(0)),), host=host(cpu_percent=series(90)), started_at=START, now=START + HOUR), set()),
    "healthy_notebook_that_thinks": (Evidence(Kind.NOTEBOOK, gpus=(gpu(utilization_percent=series(0)),), host=host(), started_at=START, now=START + HOUR), set()),
    "healthy_serving_quick_tokens": (serving(serving=endpoint(short_answers=(9.0, 0.2, 0.2))), set()),
    "healthy_serving_long_answers": (serving(serving=endpoint(e2e_p50_seconds=series(14), e2e_p95_seconds=series(26))), set()),
    "healthy_serving_full_cache": (serving(serving=endpoint(kv_cache_ratio=series(0.99), waiting=series(lambda at: 1 if at % 900 < 60 else 0))), set()),
    "healthy_serving_short_queue": (serving(serving=endpoint(waiting=series(3), ttft_p95_seconds=series(1.2), e2e_p95_seconds=series(11))), set()),
    "healthy_serving_one_request_at_a_time": (serving(serving=endpoint(running=series(1), waiting=series(0))), set()),
    "healthy_serving_allocator_in_leaps": (serving(gpus=(gpu(utilization_percent=series(60), memory_used_bytes=series(lambda at: (40 + 3 * (at // 4000)) * GIB, seconds=4 * HOUR, every=60.0)),)), set()),
    "healthy_serving_memory_of_the_day": (serving(serving=endpoint(running=series(lambda at: 10 + 9 * sin(at / 2300), seconds=6 * HOUR, every=60.0), process_memory_bytes=series(lambda at: 20 * GIB + 0.4 * GIB * sin(at / 2300), seconds=6 * HOUR, every=60.0))), set()),
    # Training.
    "oom_activations": (training(settings={}, points=points()[:3], lines=out_of_memory(FORWARD, 'File "model.py", line 12, in mlp', "loss.backward()")), {"oom_activations"}),
    "oom_batch": (training(points=points()[:3], lines=out_of_memory(FORWARD, 'File "model.py", line 12, in mlp', "loss.backward()")), {"oom_batch"}),
    "oom_model": (training(points=(), lines=out_of_memory("model = AutoModelForCausalLM.from_pretrained(name)", "return self.to(device)")), {"oom_model"}),
    "oom_optimizer": (training(points=(), lines=out_of_memory("optimizer.step()", 'state["exp_avg"] = torch.zeros_like(p)')), {"oom_optimizer"}),
    "oom_logits": (training(lines=out_of_memory(FORWARD, "loss = nn.functional.cross_entropy(logits.float(), labels)")), {"oom_logits"}),
    "oom_attention": (training(lines=out_of_memory(FORWARD, "attn_weights = nn.functional.softmax(attn_weights, dim=-1)")), {"oom_attention"}),
    "oom_fragmentation": (training(lines=out_of_memory(FORWARD, unused="9.40 GiB")), {"oom_fragmentation"}),
    "oom_another_process": (training(lines=out_of_memory(FORWARD, other="Process 4711 has 22.40 GiB memory in use. ")), {"oom_another_process"}),
    "oom_old_text": (training(lines=log("Traceback (most recent call last):", "  loss.backward()", "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 2; 39.59 GiB total capacity; 36.10 GiB already allocated; 810.00 MiB free; 37.20 GiB reserved in total by PyTorch)")), {"oom_batch"}),
    "host_memory": (training(exit_code=137, host=host(memory_used_bytes=series(lambda at: (300 + at / 17.5) * GIB)), lines=log("Killed")), {"host_memory"}),
    "starved_by_disk": (training(gpus=(gpu(utilization_percent=sawtooth),), host=host(iowait_percent=series(31), disk_busy_percent=series(98))), {"data_starved_disk"}),
    "starved_by_cpu": (training(gpus=(gpu(utilization_percent=sawtooth),), host=host(cpu_percent=series(97))), {"data_starved_cpu"}),
    "starved_by_memory": (training(gpus=(gpu(utilization_percent=sawtooth),), host=host(memory_used_bytes=series(508 * GIB), pressure_memory_percent=series(34))), {"data_starved_memory"}),
    "link_at_its_limit": (training(predicted=Predicted(seconds_per_step=1.0), host=host(network_bytes_per_second=series(1.1e9), link_bytes_per_second=1.25e9)), {"communication_bound"}),
    "nccl_over_sockets": (training(gpus=tuple(gpu(index, utilization_percent=waves) for index in range(4)), lines=log("train-01:1:2 [0] NCCL INFO Using network Socket")), {"communication_bound"}),
    "killed_rank": (training(exit_code=1, lines=log("failed (exitcode: -9) local_rank: 1 (pid: 4711) of binary: python")), {"rank_died"}),
    "ecc": (training(exit_code=1, events=(Event(START + 900, "ecc_uncorrected", None, 2),)), {"gpu_fault"}),
    "machine_off": (training(machine_ended_at=START + 1800, now=START + 2000), {"machine_ended"}),
    "starved": (training(gpus=(gpu(utilization_percent=sawtooth),)), {"data_starved"}),
    "starved_each_for_itself": (training(gpus=shifted), {"data_starved"}),
    "communication": (training(gpus=tuple(gpu(index, utilization_percent=waves) for index in range(4)), predicted=Predicted(communication_share=0.35)), {"communication_bound"}),
    "small_work": (training(gpus=tuple(gpu(index, utilization_percent=series(lambda at: 38 + 4 * sin(at))) for index in range(2))), {"small_work"}),
    "slower_than_planned": (training(predicted=Predicted(seconds_per_step=0.9)), {"slower_than_planned"}),
    "hang_in_collective": (training(points=points(seconds=1200), gpus=tuple(gpu(index, utilization_percent=series(100), power_watts=series(118)) for index in range(4))), {"stalled"}),
    "watchdog": (training(exit_code=1, lines=log("[rank2]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=911, OpType=ALLREDUCE) ran for 600011 milliseconds before timing out.", "failed (exitcode: -6) local_rank: 2")), {"stalled"}),
    "no_steps": (training(points=points(seconds=900), gpus=(gpu(utilization_percent=series(lambda at: 97.0 if at < 900 else 0.0)),)), {"no_steps"}),
    "loss_nan": (training(points=points(loss=lambda step: nan if step > 100 else 2.0)), {"loss_nan"}),
    "loss_diverged": (training(points=points(loss=lambda step: 40.0 if step > 100 else 2.0)), {"loss_diverged"}),
    "cpu_wheel": (training(points=(), exit_code=1, gpus=(gpu(utilization_percent=series(0)),), lines=log("AssertionError: Torch not compiled with CUDA enabled")), {"wrong_device"}),
    "trains_on_cpu": (training(gpus=(gpu(utilization_percent=series(0), power_watts=series(70)),), host=host(cpu_percent=series(80)), predicted=Predicted()), {"wrong_device"}),
    "disk_full": (training(exit_code=1, lines=log("OSError: [Errno 28] No space left on device: 'checkpoint-500/model.safetensors'")), {"disk_full"}),
    "shm_full": (training(exit_code=1, lines=log("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm): No space left on device")), {"shared_memory_full"}),
    "driver": (training(points=(), exit_code=1, lines=log("RuntimeError: The NVIDIA driver on your system is too old (found version 12040).")), {"versions"}),
    "hot": (training(gpus=(gpu(hot=0.6), gpu(1))), {"throttled_heat"}),
    "power_limit": (training(gpus=(gpu(capped=1.0, power_limit_watts=450.0, power_watts=series(445)),)), {"throttled_power"}),
    "xid_79": (training(exit_code=1, events=(Event(START + 900, "xid", 79, 3), Event(START + 901, "gpu_lost", None, 3))), {"gpu_fault"}),
    "xid_31": (training(exit_code=1, events=(Event(START + 900, "xid", 31, 1),)), {"gpu_program"}),
    "preempted": (training(spot=True, machine_ended_at=START + 1800, now=START + 2000), {"preempted"}),
    "neighbour": (training(neighbour_score=74), {"noisy_neighbour"}),
    # Serving.
    "no_blocks": (serving(serving=None, exit_code=1, lines=log("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.")), {"oom_serving_weights"}),
    "context": (serving(serving=None, exit_code=1, lines=log("ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (45120).")), {"oom_serving_context"}),
    "taken": (serving(serving=None, exit_code=1, lines=log("ValueError: Free memory on device (11.2/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB).")), {"oom_serving_taken"}),
    "cache_small": (serving(serving=endpoint(kv_cache_ratio=series(0.99), waiting=series(7)), lines=log("WARNING Sequence group 41 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.")), {"kv_cache_small"}),
    "leak": (serving(serving=endpoint(process_memory_bytes=series(lambda at: 20 * GIB + at / 3600 * GIB, seconds=4 * HOUR, every=60.0))), {"memory_leak"}),
    "leak_that_keeps": (serving(serving=endpoint(running=series(lambda at: 20 if at < 10000 else 1, seconds=4 * HOUR, every=60.0), process_memory_bytes=series(lambda at: 20 * GIB + at / 3600 * GIB, seconds=4 * HOUR, every=60.0))), {"memory_leak"}),
    "leak_that_ends_with_the_load": (serving(serving=endpoint(running=series(lambda at: 20 if at < 10000 else 0, seconds=5 * HOUR, every=60.0), process_memory_bytes=series(lambda at: 20 * GIB + min(at, 10000.0) / 3600 * GIB, seconds=5 * HOUR, every=60.0))), {"memory_leak"}),
    "leak_of_the_host": (serving(host=host(memory_used_bytes=series(lambda at: (100 + at / 3600 * 2) * GIB, seconds=4 * HOUR, every=60.0))), {"memory_leak"}),
    "queueing": (serving(lines=log("httpx.ReadTimeout: Read timed out"), serving=endpoint(waiting=series(40), ttft_p95_seconds=series(28), e2e_p95_seconds=series(36), running=series(64))), {"queueing"}),
    "computing": (serving(serving=endpoint(e2e_p95_seconds=series(48), e2e_p50_seconds=series(30))), {"computing"}),
    "tail": (serving(serving=endpoint(e2e_p95_seconds=series(60), e2e_p50_seconds=series(3))), {"tail_latency"}),
    "one_at_a_time": (serving(lines=log("upstream timed out"), serving=endpoint(running=series(1), waiting=series(25), e2e_p95_seconds=series(50))), {"synchronous"}),
    "loads_for_each_token": (serving(serving=endpoint(short_answers=(31.0, 28.4, 29.1))), {"loads_each_request"}),
    "loads_each_request": (serving(serving=None, lines=log(*["Loading checkpoint shards: 100%|##########| 4/4", 'INFO: 10.0.0.1 - "POST /generate HTTP/1.1" 200 OK'] * 5)), {"loads_each_request"}),
}  # fmt: skip


def with_noise(evidence: Evidence, *, every: int = 3) -> Evidence:
    """The same with gaps in its readings: one of `every` was not taken."""
    return replace(
        evidence,
        gpus=tuple(
            replace(
                one,
                utilization_percent=Series(one.utilization_percent.points[::1])
                if every <= 1
                else Series(
                    tuple(point for number, point in enumerate(one.utilization_percent.points) if number % every)
                ),
            )
            for one in evidence.gpus
        ),
    )
