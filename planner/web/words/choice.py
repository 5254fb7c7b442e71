"""Advice on how to split a run, which engine to serve with, and what would change the answer."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

ADVICE: Mapping[str, str | Promise] = {
    "advice.single.does_not_fit": _(
        "One GPU is too small, even with one sequence at a time and everything recomputed."
    ),
    "advice.single.too_slow": _("One sequence at a time on one GPU works and leaves it half busy."),
    "advice.single.enough": _("One GPU with one sequence at a time is all this run needs."),
    "advice.single.sooner": _("One GPU with one sequence at a time is all this run needs."),
    "advice.batch.does_not_fit": _("A bigger batch on one GPU does not fit."),
    "advice.batch.too_slow": _("One GPU with a bigger batch works; more GPUs are quicker or cheaper here."),
    "advice.batch.enough": _(
        "One GPU is enough: a bigger micro-batch keeps it busy, accumulation makes up the rest of the batch."
    ),
    "advice.batch.sooner": _(
        "One GPU is enough: a bigger micro-batch keeps it busy, accumulation makes up the rest of the batch."
    ),
    "advice.batch.not_needed": _("Not needed: one sequence at a time is enough."),
    "advice.data.does_not_fit": _(
        "Copies of the whole model, one on each GPU, do not fit: weights, gradients and optimizer states are too big for one card."
    ),
    "advice.data.too_slow": _("A copy of the model on each GPU works; this run goes further."),
    "advice.data.enough": _(
        "A copy of the model on each GPU: the least exchange between GPUs of all ways to use several."
    ),
    "advice.data.sooner": _("It would fit on fewer GPUs; copies of the model on several are done sooner."),
    "advice.data.not_needed": _("Not needed: one GPU is enough."),
    "advice.zero.does_not_fit": _(
        "Sharding the states over all GPUs does not fit either: what a layer needs while it works is too big, or the batch has too few sequences."
    ),
    "advice.zero.too_slow": _("Sharding the states over the GPUs works; splitting the layers is quicker here."),
    "advice.zero.enough": _(
        "The GPUs share gradients and optimizer states (ZeRO), so that each holds a part. Stage 3 shares the weights too; it does not always take less than stage 2."
    ),
    "advice.zero.sooner": _("It would fit with less; sharding leaves room for a bigger micro-batch, which is quicker."),
    "advice.zero.not_needed": _("Not needed: the states fit on each GPU."),
    "advice.tensor.does_not_fit": _("Splitting each layer inside a node does not fit yet."),
    "advice.tensor.too_slow": _("Splitting each layer works; a pipeline on top is quicker here."),
    "advice.tensor.enough": _(
        "Each layer is split over GPUs that NVLink joins. It exchanges activations in every layer, so that it stays inside a node."
    ),
    "advice.tensor.sooner": _("Sharding alone would fit; splitting the layers is quicker on these links."),
    "advice.tensor.not_needed": _("Not needed: no layer is too big for a GPU."),
    "advice.pipeline.enough": _(
        "The layers stand in a line over nodes: little is exchanged, at the price of a bubble while the line fills and drains."
    ),
    "advice.pipeline.sooner": _(
        "It would fit without; the line is quicker across slow links, at the price of a bubble while it fills and drains."
    ),
    "advice.pipeline.not_needed": _("Not needed: the model fits without."),
    "change.none": _("Nothing: the script stays as it is."),
    "change.micro_batch": _("The batch size per GPU; nothing else."),
    "change.accumulation": _(
        "Gradient accumulation keeps the global batch: loss divided by its steps, optimizer once per round."
    ),
    "change.launcher_only": _("With the Trainer or Accelerate only the launcher: torchrun instead of python."),
    "change.process_group": _('In a script of your own: one process a GPU, joined by init_process_group("nccl").'),
    "change.device": _("The device is LOCAL_RANK, not 0."),
    "change.sampler": _(
        "A DistributedSampler, and set_epoch at the start of each epoch: else every GPU sees the same data."
    ),
    "change.wrapper_ddp": _("The model is wrapped in DistributedDataParallel."),
    "change.rank_zero": _("Only rank 0 logs and saves."),
    "change.wrapper_fsdp": _(
        "fully_shard on each layer and then on the model (FSDP2), or a DeepSpeed configuration, in place of DDP."
    ),
    "change.optimizer_after_wrap": _("The optimizer is made after sharding, from the sharded parameters."),
    "change.sharded_checkpoint": _("Checkpoints are sharded: gathered once for the export, not at every save."),
    "change.parallel_layers": _("Linear layers are replaced: columns for q, k, v, gate and up, rows for o and down."),
    "change.same_data_in_group": _(
        "All GPUs of a tensor-parallel group read the same data; the sampler counts groups, not GPUs."
    ),
    "change.megatron": _("Weights are converted to Megatron's format and back for the export."),
    "change.stages": _("The model is cut into stages; embeddings and head weigh as much as some layers."),
    "change.schedule": _(
        "A schedule runs micro-batches through the stages (1F1B): at least as many as stages, better four times as many."
    ),
    "change.loss_on_last_stage": _("The loss exists on the last stage only; logging moves there."),
    "engine.vllm": _(
        "vLLM: no compiling, continuous batching, new models within days. To iterate with and to go live."
    ),
    "engine.tensorrt_llm": _(
        "TensorRT-LLM: the lowest latency, at the price of compiling for one GPU, one batch and one length, again after every change."
    ),
    "engine.vllm_first": _(
        "Start with vLLM and measure; compile once the model no longer changes and the latency is worth it."
    ),
    "engine.transformers_for_tests": _(
        "For one person at a time, transformers itself is enough; it does not batch requests."
    ),
    "engine.int4_needs_evaluation": _(
        "Four-bit weights only together with an evaluation on your own tasks: what is lost differs from model to model and shows last in small talk."
    ),
    "method.full_with_little_data": _(
        "Full fine-tuning with %(samples)s samples mostly forgets: an adapter learns as much from so few and costs a fraction."
    ),
    "method.qlora_costs_speed": _(
        "QLoRA saves memory, not time: weights are unpacked at every use. Where LoRA fits, it is quicker."
    ),
    "method.beyond_positions": _(
        "The model was made for %(most)s positions, not for %(asked)s: its positions have to be stretched first."
    ),
    "whatif.memory": _("%(percent)s %% more memory on each card would save %(cards)s cards."),
    "whatif.offload.cards": _(
        "With the optimizer in the machine's memory (DeepSpeed) it fits on %(left)s cards of this kind instead of %(cards)s, but takes longer."
    ),
    "whatif.lora.cards": _(
        "With LoRA instead of full fine-tuning it fits on %(left)s cards of this kind instead of %(cards)s."
    ),
    "whatif.lora.hours": _("LoRA instead of full fine-tuning takes %(percent)s %% less time."),
    "whatif.qlora.cards": _("With a 4-bit base (QLoRA) it fits on %(left)s cards of this kind instead of %(cards)s."),
    "whatif.qlora.hours": _("A 4-bit base (QLoRA) takes %(percent)s %% less time here."),
    "whatif.optimizer_8bit.cards": _(
        "With the 8-bit optimizer it fits on %(left)s cards of this kind instead of %(cards)s."
    ),
    "whatif.optimizer_8bit.hours": _("The 8-bit optimizer takes %(percent)s %% less time here."),
    "whatif.chunked_logits.cards": _(
        "With the loss computed in chunks it fits on %(left)s cards of this kind instead of %(cards)s."
    ),
    "whatif.chunked_logits.hours": _(
        "The loss computed in chunks leaves room for more and takes %(percent)s %% less time."
    ),
    "whatif.flash.cards": _("With FlashAttention it fits on %(left)s cards of this kind instead of %(cards)s."),
    "whatif.flash.hours": _("FlashAttention takes %(percent)s %% less time."),
    "whatif.half_sequence.cards": _(
        "With sequences half as long it fits on %(left)s cards of this kind instead of %(cards)s."
    ),
    "whatif.half_sequence.hours": _("Sequences half as long take %(percent)s %% less time."),
    "whatif.fp8_weights.cards": _("With FP8 weights it takes %(left)s cards of this kind, %(cards)s fewer."),
    "whatif.int4_weights.cards": _(
        "With 4-bit weights it takes %(left)s cards of this kind, %(cards)s fewer; only together with an evaluation."
    ),
    "whatif.fp8_cache.cards": _("With an FP8 cache it takes %(left)s cards of this kind, %(cards)s fewer."),
    "unsuitable.no_rate": _("%(gpu)s: nobody publishes what it computes in this type, or its bandwidth."),
    "unsuitable.cuda_only": _("%(gpu)s: the kernels for these weights exist for CUDA only."),
    "unsuitable.fp8": _("%(gpu)s has no FP8: that starts with compute capability 8.9."),
    "unsuitable.engine": _("%(gpu)s is too old for %(engine)s, which needs compute capability %(needed)s."),
    "unsuitable.memory": _("%(gpu)s: even spread over %(most)s cards each needs %(needed_gib)s GiB of its %(gib)s."),
    "unsuitable.load": _("%(gpu)s: so many requests take more than %(most)s cards."),
    "unsuitable.cache": _("%(gpu)s: beside the weights there is no room for one request."),
    "unsuitable.no_layout": _(
        "%(gpu)s: no number of cards divides the batch, or no launcher trains this way with this optimizer and type."
    ),
}
