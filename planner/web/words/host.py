"""Why the rest of the machine should be as it is, and what owning one means."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

HOST: Mapping[str, str | Promise] = {
    "host.vcpus": _("%(per_gpu)s for each GPU at least: one drives it, the others load data. Rule of thumb."),
    "host.vcpus.tokenizing": _(
        "%(per_gpu)s for each GPU at least: text is tokenized while the GPUs wait for it. Tokenize beforehand and half will do."
    ),
    "host.memory": _(
        "The weights pass through it at the start (%(weights_gib)s GiB) and stay in the page cache for the next; 6 GiB for each process."
    ),
    "host.memory.offload": _(
        "What is offloaded lies here: %(offloaded_gib)s GiB, beside weights of %(weights_gib)s GiB and 6 GiB for each process."
    ),
    "host.system_disk": _("A CUDA image and one PyTorch environment unpack to some 30 GB. Rule of thumb."),
    "host.data_disk": _(
        "Weights %(weights_gib)s GiB, data %(dataset_gib)s GiB, and checkpoints of %(checkpoint_gib)s GiB each: %(kept)s are kept, and the next is written before the oldest goes."
    ),
    "host.data_disk.serving": _("The weights, %(weights_gib)s GiB, and room for the next version beside them."),
    "host.disk_bandwidth": _(
        "A start reads the weights within %(load_minutes)s minutes, and a checkpoint of %(checkpoint_gib)s GiB a node every %(interval_minutes)s minutes may hold up training by 5 %% at most."
    ),
    "host.disk_bandwidth.serving": _("A start or a restart reads the weights within %(load_minutes)s minutes."),
    "host.iops": _(
        "Reads come in pieces of %(piece_kib)s KiB; environments and small files want 1,000 whatever the run does."
    ),
    "host.node_network": _(
        "Each node sends %(gib_per_step)s GiB in a step of %(step_seconds)s s; slower, and the GPUs wait for it."
    ),
    "host.internet": _(
        "%(weights_gib)s GiB of weights take %(minutes_at_1_gbit)s minutes over 1 Gbit/s, while the GPUs are already billed."
    ),
    "host.tenancy.in_step": _("Several GPUs go in step: one slow neighbour slows all of them."),
    "host.tenancy.latency": _("A neighbour's peaks show as slow answers."),
    "host.tenancy.shared": _("One GPU that nobody waits for does not mind neighbours."),
    "host.region.personal_data": _(
        "Personal data stays under the law it was collected under; check the provider's contract too."
    ),
    "host.region.users": _(
        "Near the people who wait for the answers: each 1,000 km adds some 10 ms to the first token."
    ),
    "host.region.data": _("Where the data is: moving it costs time, and at many providers money on the way out."),
    "owning.never": _("Never: at this rent owning costs more however busy the GPUs are."),
    "owning.buy": _(
        "Owning is cheaper from %(break_even_percent)s %% utilization on, and yours is %(utilization_percent)s %%."
    ),
    "owning.rent": _(
        "Renting is cheaper: owning pays from %(break_even_percent)s %% utilization on, and yours is %(utilization_percent)s %%."
    ),
    "owning.rule_of_thumb": _("Rule of thumb: below %(percent)s %% steady utilization, rent."),
    "owning.left_out": _(
        "Not in the sum: lead time, taxes, a discount rate, moving the data out, and prices of GPUs that fall while you own one."
    ),
}
