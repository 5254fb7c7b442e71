"""What each finding is, in one line."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TITLES: Mapping[str, str | Promise] = {
    "oom_activations": _("Out of GPU memory: activations"),
    "oom_model": _("Out of GPU memory: the model itself does not fit"),
    "oom_optimizer": _("Out of GPU memory: optimizer states"),
    "oom_logits": _("Out of GPU memory: logits and loss"),
    "oom_attention": _("Out of GPU memory: attention scores"),
    "oom_fragmentation": _("Out of GPU memory although enough is free: fragmentation"),
    "oom_another_process": _("Out of GPU memory: another process holds it"),
    "oom_unknown": _("Out of GPU memory"),
    "oom_serving_weights": _("The weights leave no memory for a KV cache"),
    "oom_serving_context": _("The longest context does not fit into the KV cache"),
    "oom_serving_taken": _("Another process holds the GPU memory that the server wants"),
    "oom_serving_warmup": _("The server runs out of GPU memory as it warms up"),
    "oom_serving_running": _("The server runs out of GPU memory while it serves"),
    "kv_cache_small": _("The KV cache is too small for this load"),
    "host_memory": _("The machine ran out of memory and the kernel ended the run"),
    "disk_full": _("The disk is full"),
    "shared_memory_full": _("Shared memory is full"),
    "versions": _("Versions do not fit together"),
    "wrong_device": _("The CPU does the work while GPUs are paid for"),
    "stalled": _("The run stands: ranks wait for each other"),
    "no_steps": _("No step for a long time"),
    "loss_nan": _("The loss is no number any more"),
    "loss_diverged": _("The loss runs away"),
    "throttled_heat": _("GPUs are slowed because they are too hot"),
    "throttled_power": _("GPUs are slowed by a low power limit"),
    "data_starved": _("GPUs wait for data"),
    "data_starved_disk": _("GPUs wait for data: the disk is at its limit"),
    "data_starved_cpu": _("GPUs wait for data: the CPU is at its limit"),
    "communication_bound": _("GPUs wait for each other"),
    "small_work": _("GPUs have too little to do at a time"),
    "slower_than_planned": _("Slower than planned"),
    "gpu_fault": _("A GPU failed under the run"),
    "gpu_program": _("The program made an error on a GPU"),
    "preempted": _("The spot machine was taken away"),
    "machine_ended": _("The machine ended before the run did"),
    "noisy_neighbour": _("Other tenants of the host may slow this run"),
    "memory_leak": _("The server's memory grows and does not come back"),
    "loads_each_request": _("The model is loaded anew for requests"),
    "synchronous": _("Requests are worked off one at a time"),
    "queueing": _("Requests wait for their turn"),
    "tail_latency": _("A few requests take far longer than the others"),
    "computing": _("The work of a request itself takes too long"),
}
