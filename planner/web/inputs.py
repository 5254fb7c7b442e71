"""What a plan is asked with: the one definition behind the page, the API and the command."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from planner.catalogue.config_fields import LONGEST_TEXT, ConfigError
from planner.catalogue.gpus import gpus
from planner.catalogue.hf_config import shape_from_config
from planner.catalogue.links import NETWORKS
from planner.catalogue.models import models
from planner.catalogue.shape_text import LONGEST_LINE, shape_of
from planner.shapes import ModelShape
from planner.web.fields import amount, choice, choices, flag, line, real, whole
from planner.web.words import sentence

# As nvidia-smi shows it, or its branch alone.
_DRIVER = re.compile(r"[0-9]{3}(\.[0-9]{1,4}){0,2}")
USUAL_MODEL = "meta-llama/Meta-Llama-3.1-8B"
LORA_TARGETS = {"all": ("q", "k", "v", "o", "gate", "up", "down"), "attention": ("q", "k", "v", "o")}
WEIGHT_FORMATS = [
    ("bf16", "BF16"),
    ("fp16", "FP16"),
    ("fp32", "FP32"),
    ("fp8", "FP8"),
    ("int8", "INT8"),
    ("gptq-int8", "INT8 (GPTQ)"),
    ("gptq-int4", "INT4 (GPTQ)"),
    ("awq-int4", "INT4 (AWQ)"),
    ("nf4", "NF4 (bitsandbytes)"),
]
CACHE_TYPES = [("bf16", "BF16"), ("fp16", "FP16"), ("fp8", "FP8"), ("int8", "INT8"), ("fp32", "FP32")]


GPU_CHOICES = [(gpu.id, gpu.name) for gpu in gpus().values()]


class PlanInput(serializers.Serializer[dict[str, Any]]):
    """Every field has a default, so that nothing at all asks for the usual plan."""

    work = choice(_("Work"), [("training", _("Training")), ("serving", _("Serving"))], "training")
    model = line(
        _("Model"),
        200,
        help_text=_("Its name on Hugging Face, out of the catalogue. Empty with a config or a shape."),
    )
    config: Any = serializers.JSONField(
        label="config.json",
        default="",  # type: ignore[arg-type]  # the stubs know objects only
        help_text=_("A model's config.json from Hugging Face, as text or as an object; goes before the model."),
    )
    shape = line(
        _("Shape"),
        LONGEST_LINE,
        help_text=_(
            "A model's sizes: layers=32,hidden=4096,heads=32,kv_heads=8,intermediate=14336,vocab=128256. Goes before the model."
        ),
    )

    method = choice(
        _("Method"),
        [("full", _("All weights")), ("lora", "LoRA"), ("qlora", "QLoRA")],
        "lora",
    )
    sequence_length = whole(_("Sequence length"), 16, 2_000_000, 2048, help_text=_("Tokens of the longest sequence."))
    global_batch = whole(
        _("Global batch"), 1, 65_536, 64, help_text=_("Sequences of one optimizer step, all GPUs together.")
    )
    samples = whole(_("Samples"), 1, 10**12, 20_000, help_text=_("In the training data."))
    epochs = real(_("Epochs"), 0.001, 1000, 3.0, help_text=_("Times through the data."))
    tokens_per_sample = whole(_("Tokens a sample"), 1, 2_000_000, 600, help_text=_("On average."))
    packed = flag(
        _("Packed"),
        default=True,
        help_text=_("Samples are joined until a sequence is full; else each is padded or stands alone."),
    )
    lora_rank = whole(_("LoRA rank"), 1, 1024, 16)
    lora_targets = choice(_("LoRA on"), [("all", _("all linear layers")), ("attention", _("attention only"))], "all")
    optimizer = choice(
        _("Optimizer"),
        [
            ("adamw", "AdamW"),
            ("adamw-8bit", _("AdamW, 8 bits")),
            ("adamw-8bit-paged", _("AdamW, 8 bits, paged")),
            ("adafactor", "Adafactor"),
            ("sgd", "SGD"),
            ("sgd-momentum", _("SGD with momentum")),
            ("muon", "Muon"),
        ],
        "adamw",
    )
    master_weights = flag(
        _("32-bit master weights"), default=True, help_text=_("The optimizer works on 32-bit copies of 16-bit weights.")
    )
    compute_dtype = choice(
        _("Arithmetic"), [("bf16", "BF16"), ("fp16", "FP16"), ("fp8", "FP8"), ("fp32", "FP32 / TF32")], "bf16"
    )
    attention = choice(
        _("Attention"), [("flash", "FlashAttention"), ("sdpa", "PyTorch SDPA"), ("eager", "eager")], "flash"
    )
    logits = choice(
        _("Loss"),
        [("full", _("whole logits")), ("chunked", _("in chunks")), ("fused", _("fused kernel"))],
        "full",
    )
    checkpointing = choice(
        _("Activation checkpointing"),
        [("", _("as needed")), ("none", _("none")), ("selective", _("selective")), ("full", _("full"))],
        "",
    )
    compiled = flag("torch.compile")
    deadline_hours = real(_("Done within"), 0.01, 100_000, help_text=_("Hours; empty for no deadline."))
    budget = amount(_("Spend at most"), "0.01", "10000000", help_text=_("For the whole run; empty for no limit."))

    concurrency = whole(_("Requests at a time"), 1, 100_000, 16)
    prompt_tokens = whole(_("Prompt"), 1, 2_000_000, 1000, help_text=_("Tokens."))
    output_tokens = whole(_("Answer"), 1, 1_000_000, 300, help_text=_("Tokens."))
    engine = choice(
        _("Engine"),
        [("vllm", "vLLM"), ("tensorrt-llm", "TensorRT-LLM"), ("sglang", "SGLang"), ("transformers", "transformers")],
        "vllm",
    )
    weight_format = choice(_("Weights"), WEIGHT_FORMATS, "bf16")
    kv_dtype = choice(_("Cache"), CACHE_TYPES, "bf16")
    max_model_len = whole(_("Longest context"), 16, 10_000_000, help_text=_("Tokens; empty for prompt and answer."))
    memory_utilization = real(_("Share of the card"), 0.1, 0.99, 0.9, help_text=_("That the engine may take."))
    first_token_seconds = real(_("First token within"), 0.001, 3600, help_text=_("Seconds; empty for any."))
    seconds_per_token = real(_("Each token within"), 0.0001, 60, help_text=_("Seconds; empty for any."))

    priority = choice(
        _("Best is"), [("money", _("cheapest")), ("time", _("soonest")), ("simplicity", _("simplest"))], "money"
    )
    gpu_ids = choices(_("Only these GPUs"), GPU_CHOICES, (), help_text=_("None chosen: the whole catalogue."))
    most_gpus = whole(_("GPUs at most"), 1, 512, 64)
    price_kinds = choices(
        _("Prices"),
        [("on-demand", _("on demand")), ("community", _("community hosts")), ("spot", _("spot"))],
        ("on-demand", "community"),
    )
    currency = choice(_("Currency"), [("USD", "USD"), ("CNY", "CNY"), ("EUR", "EUR")], "USD")
    link = choice(_("Network between machines"), [("", _("what is usual")), *((name, name) for name in NETWORKS)], "")
    personal_data = flag(_("Personal data"), help_text=_("Decides where machines may stand."))
    gpu = choice(
        _("GPU"), [("", _("the best")), *GPU_CHOICES], "", help_text=_("Whose layouts and details are answered.")
    )
    count = whole(_("Number of GPUs"), 1, 512, help_text=_("Of the chosen GPU; empty for the best."))
    driver = line(_("Driver"), 40, help_text=_("Of the machine, as nvidia-smi shows it; empty for the newest."))
    price_per_gpu_hour = amount(
        _("Your price"), "0.0001", "10000", help_text=_("An hour for one of the chosen GPUs, where you know better.")
    )

    utilization = amount(
        _("Utilization"), "0.01", "1", "0.6", help_text=_("Share of all hours in which owned GPUs would work.")
    )
    purchase_price = amount(_("Price of one GPU"), "1", "10000000", help_text=_("With its share of the server."))
    years = amount(_("Years"), "0.5", "15", "3")
    residual_share = amount(_("Resale"), "0", "1", "0.3", help_text=_("Share of the price that is left in the end."))
    watts_per_gpu = amount(_("Power of one GPU"), "1", "10000", help_text=_("Watts, with its share of the server."))
    power = choice(_("Power"), [("colocation", _("colocation")), ("own-room", _("own room"))], "colocation")
    colocation_price = amount(
        _("Colocation"), "1", "10000", "200", help_text=_("A kW and month, electricity included.")
    )
    electricity_price = amount(_("Electricity"), "0.001", "10", "0.12", help_text=_("A kWh, in an own room."))
    pue = amount(
        "PUE", "1", "3", "1.4", help_text=_("Power of the building over that of the machines, in an own room.")
    )
    staff_per_year = amount(
        _("Staff"), "0", "10000000", help_text=_("A year, for these GPUs; empty: a part of a person.")
    )
    maintenance_share = amount(_("Maintenance"), "0", "1", "0.03", help_text=_("Share of the price a year."))
    spares_share = amount(_("Spares"), "0", "1", "0.05", help_text=_("Share of the price."))
    network_share = amount(_("Network"), "0", "1", "0.1", help_text=_("Share of the price: switches and cables."))
    financed_share = amount(_("Financed"), "0", "1", "0.5", help_text=_("Share of the price that is borrowed."))
    interest = amount(_("Interest"), "0", "1", "0.08", help_text=_("A year."))

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := [str(name) for name in data if name not in self.fields]):
            raise ValidationError({unknown[0][:100]: [self._unknown(unknown[0])]})
        return super().to_internal_value(data)

    def _unknown(self, name: str) -> str:
        if close := difflib.get_close_matches(name, self.fields, n=1):
            return gettext("There is no such field here. Did you mean `%(name)s`?") % {"name": close[0]}
        return gettext("There is no such field here. It takes: %(names)s.") % {"names": ", ".join(self.fields)}

    def validate_model(self, name: str) -> str:
        if name and name not in models():
            close = difflib.get_close_matches(name, models(), n=3, cutoff=0.3)
            if not close:
                raise ValidationError(
                    gettext("The catalogue does not have this model. Give its config.json or its shape.")
                )
            text = gettext(
                "The catalogue does not have this model. Near: %(near)s. Else give its config.json or its shape."
            )
            raise ValidationError(text % {"near": ", ".join(close)})
        return name

    def validate_config(self, config: Any) -> str:
        return checked_config(config)

    def validate_shape(self, text: str) -> str:
        if text:
            _shape_or_refusal(shape_of, text)
        return text

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        longest, asked = given.get("max_model_len"), given["prompt_tokens"] + given["output_tokens"]
        if given["work"] == "serving" and longest is not None and longest < asked:
            text = gettext("Prompt and answer take %(asked)s tokens: give as many, or leave it empty.")
            raise ValidationError({"max_model_len": text % {"asked": asked}})
        return given

    def validate_driver(self, text: str) -> str:
        if text and not _DRIVER.fullmatch(text):
            raise ValidationError(gettext("Give a version like 550.54.15."))
        return text


@cache
def input_fields() -> Mapping[str, Any]:
    """The fields by name, to read; a serializer copies all of them each time it is made."""
    return dict(PlanInput().fields)


def checked_config(config: Any) -> str:
    """The text of a config.json that describes a model, or "". Raises ValidationError with the sentence that names its field."""
    if config in ("", None):
        return ""
    text = config if isinstance(config, str) else json.dumps(config)
    if len(text) > LONGEST_TEXT:
        text = text[: LONGEST_TEXT + 1]
    _shape_or_refusal(shape_from_config, text)
    return text


def _shape_or_refusal(read: Any, text: str) -> ModelShape:
    try:
        shape: ModelShape = read(text)
    except ConfigError as error:
        raise ValidationError(sentence(error.reason)) from None
    return shape


def shape_of_input(given: Mapping[str, Any]) -> ModelShape:
    """Of validated input: the pasted config, else the typed shape, else the model of the catalogue."""
    if given["config"]:
        return shape_from_config(given["config"])
    if given["shape"]:
        return shape_of(given["shape"])
    return models()[given["model"] or USUAL_MODEL].shape
