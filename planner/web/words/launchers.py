"""What goes with files and commands: notes, why a launcher does not fit, and what is wrong with an input."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

LAUNCHERS: Mapping[str, str | Promise] = {
    "launch.error.count": _("Name at least one host, and 1 to 128 GPUs on each."),
    "launch.error.dash": _("This may not begin with a dash: a program would take it for an option."),
    "launch.error.driver": _("A driver is written like 570.124.06."),
    "launch.error.empty": _("This may not be empty."),
    "launch.error.gpus": _("The layout needs %(layout)s GPUs, the hosts have %(place)s."),
    "launch.error.host": _("“%(host)s” is no host name or address."),
    "launch.error.port": _("A port from 1024 to 65535 is needed."),
    "launch.error.unprintable": _("At most %(limit)s printable characters, on one line."),
    "launch.note.install": _(
        "Run install.sh once on every machine, then `. .venv/bin/activate` in the shell that runs the commands."
    ),
    "launch.note.no_stack": _(
        "No stack in the tables runs this on this GPU and driver: the commands are right, but you install the software yourself."
    ),
    "launch.note.dataset": _(
        "The data is a .jsonl file, one example a line, with `text`, with `messages`, or with `prompt` and `completion`; or the id of such a set on the Hugging Face hub."
    ),
    "launch.note.dataset_file": _("The data is a .jsonl file with `text` in each line."),
    "launch.note.resume": _(
        "A run that was stopped goes on from its newest checkpoint: start it with the same command."
    ),
    "launch.note.attention": _(
        "Attention runs on PyTorch's own FlashAttention kernels (sdpa): no package has to be compiled."
    ),
    "launch.note.modules": _(
        "Adapters sit on layers with the names that Llama, Qwen and Mistral use; other families name them otherwise."
    ),
    "launch.note.same_paths": _(
        "Model, data and output must have the same paths on every host; a shared disk is the simplest."
    ),
    "launch.note.ddp": _(
        "Starts one process on each GPU; each keeps the whole model and gradients are averaged (DDP)."
    ),
    "launch.note.fsdp2": _(
        "Starts one process on each GPU; weights, gradients and optimizer are split between them (FSDP2)."
    ),
    "launch.note.trl": _("Starts Hugging Face's trainer (TRL) with one process on each GPU."),
    "launch.note.deepspeed": _("Starts DeepSpeed with ZeRO stage %(stage)s, as deepspeed.json says."),
    "launch.note.nvcc": _(
        "The optimizer on the CPU is compiled when it starts: the machine needs nvcc of torch's CUDA and a C++ compiler."
    ),
    "launch.note.megatron": _("Starts Megatron-LM; set TRAIN_STEPS to samples × epochs / global batch."),
    "launch.note.megatron_start": _("Starts Megatron-LM."),
    "launch.note.megatron_checkout": _(
        "MEGATRON names a checkout of NVIDIA/Megatron-LM, at the release of megatron-core that is installed."
    ),
    "launch.note.megatron_import": _("Turns the weights into a checkpoint of Megatron, once."),
    "launch.note.megatron_export": _("Turns Megatron's checkpoint back into a model of Hugging Face."),
    "launch.note.megatron_data": _("Turns the data (.jsonl with `text`) into token files, once."),
    "launch.note.rope_base": _(
        "Compare --rotary-base and --norm-epsilon with rope_theta and rms_norm_eps of the model's config.json: Megatron's defaults are 10000 and 1e-5."
    ),
    "launch.note.colossalai": _("Starts ColossalAI with the plugin that plugin.json names."),
    "launch.note.colossalai_torch": _(
        "ColossalAI 0.5.0 needs torch 2.5.1 or older: give it an environment of its own. It has no kernels for Blackwell."
    ),
    "launch.note.paddle": _("Starts PaddlePaddle's fleet with one process on each GPU."),
    "launch.note.paddle_index": _(
        "PaddlePaddle's GPU wheels are on its own index, one for each CUDA; its model library PaddleNLP downloads weights in its own format."
    ),
    "launch.note.export": _(
        "Only for what is not yet in Hugging Face's format: a run that reached its end has written output/model by itself."
    ),
    "launch.note.merge": _("Adds the adapters to the base model's weights: what comes out needs no PEFT."),
    "launch.note.gather_deepspeed": _("Joins the parts that DeepSpeed's ranks wrote."),
    "launch.note.gather_sharded": _("Joins the newest checkpoint of a run that was stopped before its end."),
    "launch.note.vllm": _("Starts the server; set API_KEY to a secret of your own first."),
    "launch.note.ray": _("Joins the hosts to one cluster (Ray), before the server starts."),
    "launch.note.probe": _("Shows that the server answers."),
    "launch.note.api_key": _("Without --api-key anybody who reaches the port may use the model."),
    "launch.note.local_only": _(
        "The server listens on this machine alone: put a TLS proxy before it, or tunnel the port over SSH."
    ),
    "launch.note.evaluate": _(
        "Weights in four bits only after an evaluation with your own questions: run the quantization recipe's second command."
    ),
    "launch.note.trt_convert": _("Turns the weights into a checkpoint of TensorRT-LLM, quantized if the plan says so."),
    "launch.note.trt_build": _("Compiles the engine; this takes minutes to an hour."),
    "launch.note.trt_serve": _("Serves the engine with OpenAI's interface."),
    "launch.note.trt_gpu": _(
        "An engine runs only on the kind of GPU that it was built on (%(gpu)s), and with the TensorRT-LLM that built it."
    ),
    "launch.note.trt_key": _("trtllm-serve knows no keys: let only a proxy that asks for one reach its port."),
    "launch.note.trt_wheels": _(
        "The wheels are on NVIDIA's own index; NVIDIA's container is the easier way. TENSORRT_LLM names a checkout of the same release, for its examples."
    ),
    "launch.note.quantize.int8": _(
        "INT8 for weights and activations (SmoothQuant, then GPTQ): faster from Turing on, except on B300."
    ),
    "launch.note.quantize.gptq-int8": _("INT8 for weights only (GPTQ): half the memory, hardly any loss."),
    "launch.note.quantize.gptq-int4": _("INT4 for weights in groups of 128 (GPTQ): a quarter of the memory."),
    "launch.note.quantize.awq-int4": _("INT4 for weights (AWQ), which keeps the channels that activations need most."),
    "launch.note.quantize.fp8": _(
        "FP8 for weights, and for activations as they come: needs no calibration, and Ada, Hopper or newer to be faster."
    ),
    "launch.note.quantize.nf4": _(
        "NF4 for weights (bitsandbytes): needs no calibration; meant for QLoRA and for trying things out."
    ),
    "launch.note.quantize_judge": _("Compares perplexity before and after, and fails if it rose by more than 2 %%."),
    "launch.note.calibration_texts": _(
        "calibration.jsonl holds a few hundred texts like those that the model will serve, with `text` in each line."
    ),
    "launch.note.evaluation_texts": _(
        "evaluation.jsonl holds texts of your field that are in neither training nor calibration."
    ),
    "launch.unfit.training_only": _("This launcher trains; the plan serves."),
    "launch.unfit.serving_only": _("This launcher serves; the plan trains."),
    "launch.unfit.splits_the_model": _(
        "It does not split a model's layers or sequences (tensor, pipeline, context or expert parallelism)."
    ),
    "launch.unfit.fp8": _("It does not train in FP8."),
    "launch.unfit.fp16_master": _("Training all weights in FP16 needs master weights in FP32."),
    "launch.unfit.dtype": _("It does not run in %(dtype)s."),
    "launch.unfit.optimizer": _("It has no %(optimizer)s."),
    "launch.unfit.sharded_optimizer": _("%(optimizer)s does not work on split states here."),
    "launch.unfit.offload": _(
        "It neither moves activations to the machine's memory nor steps inside the backward pass."
    ),
    "launch.unfit.optimizer_offload": _("It cannot move the optimizer alone to the machine's memory in this layout."),
    "launch.unfit.parameter_offload": _("It cannot move weights to the machine's memory in this layout."),
    "launch.unfit.sharded_four_bits": _("Weights in four bits cannot be split here: use DDP, or 16-bit LoRA."),
    "launch.unfit.sharded_fp16": _("FP16 with split states needs DeepSpeed."),
    "launch.unfit.four_bits": _("It does not train adapters on weights in four bits."),
    "launch.unfit.adapters": _("It trains all weights, not adapters, in this layout."),
    "launch.unfit.zero_1": _("It does not split the optimizer alone (ZeRO 1)."),
    "launch.unfit.zero_2": _("It splits the optimizer (ZeRO 1), not gradients or weights beyond it."),
    "launch.unfit.zero_with_split": _(
        "It does not combine this ZeRO stage or adapters with tensor or pipeline parallelism."
    ),
    "launch.unfit.virtual_pipeline": _("It does not interleave pipeline stages here."),
    "launch.unfit.chunked": _("It has no loss in chunks."),
    "launch.unfit.context": _("It has no context, expert or pipeline parallelism for this."),
    "launch.unfit.positions": _("It does not know this kind of position encoding."),
    "launch.unfit.one_node": _("Engines over several machines are not made here."),
    "launch.unfit.replicas": _("It serves one copy of the model: start it once for each replica."),
    "launch.unfit.weight_format": _("It has no weights in %(format)s."),
    "launch.unfit.kv_dtype": _("It has no cache in %(dtype)s."),
    "launch.unfit.nothing_to_quantize": _("The plan serves the weights as they are."),
}
