"""Names of the parts of a plan: terms of memory and time, needs of a machine, steps, costs."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

Words = Mapping[str, str | Promise]

MEMORY: Words = {
    "weights": _("Weights"),
    "gradients": _("Gradients"),
    "master_weights": _("32-bit master weights"),
    "optimizer": _("Optimizer states"),
    "optimizer_step": _("Optimizer at work"),
    "fp8_copies": _("FP8 copies of the weights"),
    "activations_norms": _("Activations: norms and residuals"),
    "activations_attention": _("Activations: attention"),
    "activations_scores": _("Activations: attention scores"),
    "activations_mlp": _("Activations: MLP"),
    "activations_adapters": _("Activations: adapters"),
    "checkpoints": _("Checkpointed activations"),
    "recomputed_layer": _("Layer that is computed again"),
    "logits": _("Logits and loss"),
    "unsharded_weights": _("Gathered weights"),
    "buckets": _("Communication buckets"),
    "dequantized": _("Unpacked weights"),
    "kv_cache": _("KV cache"),
    "activation_peak": _("Activations at their peak"),
    "cuda_graphs": _("CUDA graphs"),
    "runtime": _("Run time of the engine"),
    "workspaces": _("Library workspaces"),
    "allocator_slack": _("Slack of the allocator"),
    "cuda_context": _("CUDA context"),
    "nccl": _("NCCL buffers"),
}
TIMES: Words = {
    "matrices": _("Matrix products"),
    "head": _("Output layer"),
    "attention": _("Attention"),
    "traffic": _("Memory traffic of small operations"),
    "weights": _("Reading weights"),
    "loss": _("Loss"),
    "dequantize": _("Unpacking 4-bit weights"),
    "host": _("Launching kernels"),
    "optimizer": _("Optimizer"),
    "step": _("Once a step"),
    "bubble": _("Pipeline bubble"),
    "tensor_parallel": _("Exchange: tensor parallel"),
    "context_parallel": _("Exchange: context parallel"),
    "expert_parallel": _("Exchange: experts"),
    "pipeline_sends": _("Exchange: pipeline stages"),
    "shards": _("Exchange: gathered weights"),
    "gradients": _("Exchange: gradients"),
    "parameter_offload": _("Weights from host memory"),
    "activation_offload": _("Activations to host memory"),
    "prefill_matrices": _("Matrix products"),
    "prefill_attention": _("Attention"),
    "prefill_traffic": _("Memory traffic"),
    "prefill_tensor_parallel": _("Exchange: tensor parallel"),
    "prefill_launches": _("Launching kernels"),
    "cache": _("Reading the cache"),
    "launches": _("Launching kernels"),
    "scheduler": _("Scheduler"),
    "steps": _("Steps"),
    "data": _("Waiting for data"),
    "checkpoints": _("Writing checkpoints"),
    "start": _("Start: download, load, first steps"),
}
PARTS: Words = {
    "step": _("A step"),
    "run": _("The whole run"),
    "first_token": _("To the first token"),
    "token": _("Each further token"),
}
COUNTERS: Words = {
    "allocated": pgettext_lazy("memory", "allocated"),
    "reserved": pgettext_lazy("memory", "reserved"),
    "device": pgettext_lazy("memory", "device"),
}
COUNTER_MEANINGS: Words = {
    "allocated": _("what tensors hold: torch.cuda.max_memory_allocated"),
    "reserved": _("what the allocator took from the driver: torch.cuda.max_memory_reserved"),
    "device": _("what the driver shows for the card: nvidia-smi"),
}
NEEDS: Words = {
    "vcpus": "vCPUs",
    "memory": pgettext_lazy("of a machine", "Memory"),
    "system_disk": _("System disk"),
    "data_disk": _("Data disk"),
    "disk_bandwidth": _("Disk bandwidth"),
    "iops": "IOPS",
    "node_network": _("Network between machines"),
    "internet": _("Internet"),
    "tenancy": _("Tenancy"),
    "region": _("Region"),
}
NEED_VALUES: Words = {
    "exclusive": _("exclusive"),
    "shared": pgettext_lazy("tenancy", "shared"),
    "same_law": _("under the same law"),
    "same_region": _("the same region"),
    "near_users": _("near the users"),
    "any": pgettext_lazy("region", "any"),
}
STEPS: Words = {
    "single": _("One GPU"),
    "batch": _("A bigger batch"),
    "data": _("Data parallel"),
    "zero": "ZeRO",
    "tensor": _("Tensor parallel"),
    "pipeline": _("Pipeline"),
}
VERDICTS: Words = {
    "enough": _("chosen"),
    "needed": _("possible"),
    "not_needed": _("not needed"),
    "impossible": _("does not fit"),
}
FITS: Words = {"fits": _("fits"), "tight": _("tight")}
CHECKPOINTING: Words = {
    "none": pgettext_lazy("checkpointing", "none"),
    "selective": pgettext_lazy("checkpointing", "selective"),
    "full": pgettext_lazy("checkpointing", "full"),
}
OFFLOADS: Words = {
    "optimizer": _("optimizer in host memory"),
    "all": _("weights and optimizer in host memory"),
}
PRICE_KINDS: Words = {
    "on-demand": _("on demand"),
    "community": _("community hosts"),
    "spot": _("spot"),
    "team": _("your price"),
}
OWNING_COSTS: Words = {
    "hardware": _("Hardware, less resale"),
    "financing": _("Financing"),
    "maintenance": _("Maintenance"),
    "spares": _("Spares"),
    "network": _("Network"),
    "power": _("Power and place"),
    "staff": _("Staff"),
}
BANDS: Words = {
    "rent": _("Rent ± 30 %"),
    "price": _("Purchase price ± 15 %"),
    "years": _("A year less or more"),
    "residual": _("Resale ± 15 points"),
    "power": _("Power ± 30 %"),
    "staff": _("No staff, or twice as much"),
}
LEVELS: Words = {
    "full": _("full support"),
    "minor": _("minor-version compatibility"),
    "ptx-risk": _("may stop at PTX"),
    "refused": _("does not work"),
}
LAUNCHER_NAMES: Words = {
    "torchrun": "torchrun",
    "huggingface": "Hugging Face TRL",
    "accelerate": "accelerate",
    "deepspeed": "DeepSpeed",
    "megatron": "Megatron-LM",
    "colossalai": "ColossalAI",
    "paddle": "PaddlePaddle",
    "export": _("Export to Hugging Face"),
    "vllm": "vLLM",
    "tensorrt_llm": "TensorRT-LLM",
    "quantize": _("Quantization"),
}
PLACES: Words = {
    "every-node": _("on every machine"),
    "first-node": _("on the first machine"),
    "one-machine": _("on the machine"),
}
PRESETS: Words = {
    "lora-7b": _("7B LoRA on a 4090"),
    "qlora-8b": _("8B QLoRA on one card"),
    "full-13b": _("13B, all weights"),
    "full-70b": _("70B, all weights"),
    "long-context": _("8B at 64k tokens"),
    "serve-8b": _("8B chat on one card"),
    "serve-70b": _("70B serving"),
    "serve-moe": _("Mixture serving"),
}


def memory_word(key: str) -> str:
    return _word(MEMORY, key)


def time_word(key: str) -> str:
    return _word(TIMES, key)


def _word(words: Words, key: str) -> str:
    return str(words.get(key, key.replace("_", " ")))
