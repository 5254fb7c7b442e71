"""The answer of a plan as the API's schema documents it; planner.web.answer makes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rest_framework import serializers

Fields = serializers.Serializer[dict[str, Any]]
_EXAMPLE = Path(__file__).with_name("example.json")


@cache
def example() -> dict[str, Any]:
    """A whole answer with one row of each list; the input that makes it is `example_input`."""
    found: dict[str, Any] = json.loads(_EXAMPLE.read_text(encoding="utf-8"))
    return found


EXAMPLE_INPUT = {
    "model": "meta-llama/Meta-Llama-3.1-8B",
    "method": "full",
    "samples": 20000,
    "tokens_per_sample": 600,
    "gpu": "h100-sxm-80",
    "driver": "570.124.06",
}


LONGEST_IN_EXAMPLE = 200


def shortened(answer: Any) -> Any:
    """An answer with the first row of each list and the beginning of files, for the example."""
    if isinstance(answer, dict):
        return {name: shortened(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [shortened(value) for value in answer[:1]]
    if isinstance(answer, str) and len(answer) > LONGEST_IN_EXAMPLE:
        return answer[:LONGEST_IN_EXAMPLE] + "…"
    return answer


def _number(help_text: str = "", *, null: bool = False) -> Any:
    return serializers.FloatField(help_text=help_text, allow_null=null)


def _count(help_text: str = "", *, null: bool = False) -> Any:
    return serializers.IntegerField(help_text=help_text, allow_null=null)


def _money(help_text: str = "", *, null: bool = False) -> Any:
    return serializers.DecimalField(max_digits=None, decimal_places=4, help_text=help_text, allow_null=null)


def _text(help_text: str = "", *, null: bool = False) -> Any:
    return serializers.CharField(help_text=help_text, allow_null=null)


def _words(options: Sequence[str], help_text: str = "", *, null: bool = False) -> Any:
    return serializers.CharField(help_text=f"{help_text} One of {', '.join(options)}.".strip(), allow_null=null)


def _sentences(help_text: str) -> Any:
    return serializers.ListField(child=serializers.CharField(), help_text=help_text)


class PlanSpan(Fields):
    """An amount between a low and a high end."""

    low = _number()
    expected = _number()
    high = _number()


class PlanMoneySpan(Fields):
    low = _money()
    expected = _money()
    high = _money()


class PlanPrice(Fields):
    per_hour = _money("Of all GPUs together.")
    per_gpu_hour = _money()
    currency = _text("ISO 4217.")
    kind = _words(["on-demand", "community", "spot", "team"], "“team” is a price that you gave.")
    provider = _text(null=True)
    sku = _text("What the provider calls the machine.", null=True)
    observed_on = serializers.DateField(allow_null=True, help_text="The day on which the price was read.")
    source = _text("Where it was read.", null=True)


class PlanLayout(Fields):
    data = _count("Data-parallel copies.")
    tensor = _count("Parts of each layer.")
    pipeline = _count("Stages.")
    context = _count("Parts of each sequence.")
    expert = _count("Ways over which experts are spread.")
    zero_stage = _count("0 to 3.")
    sequence_parallel = serializers.BooleanField()
    offload = _text("What waits in the machine's memory: none, optimizer, or all (weights too).")


class PlanOption(Fields):
    """What only training or only serving has is null for the other."""

    gpu = _text("Id in the catalogue.")
    gpu_name = _text()
    gpus = _count()
    machines = _count("Of eight GPUs at most.")
    card_bytes = _count("Memory of one card as its driver shows it.")
    fit = _words(["fits", "tight"], "“tight”: the expected bytes fit, the high end does not.")
    engine = _text("What runs it.")
    layout = PlanLayout()
    price = PlanPrice(allow_null=True, help_text="Null where no dated price is known for exactly so many.")
    step = _words(
        ["single", "batch", "data", "zero", "tensor", "pipeline"], "Training: how far up the ladder.", null=True
    )
    replicas = _count("Serving: copies of the server.", null=True)
    micro_batch = _count("Training: sequences of one GPU at a time.", null=True)
    gradient_accumulation = _count("Training.", null=True)
    checkpointing = _words(["none", "selective", "full"], "Training.", null=True)
    memory_bytes = PlanSpan(help_text="Of the fullest GPU, as the driver would show it.")
    steps = _count("Training: of the whole run.", null=True)
    step_seconds = PlanSpan(allow_null=True, help_text="Training.")
    hours = PlanSpan(allow_null=True, help_text="Training: the whole run, start, data and checkpoints included.")
    tokens_per_second = _number("All GPUs together: trained tokens, or tokens of answers.")
    mfu = _number("Training: model FLOPs utilization, 0 to 1.", null=True)
    first_token_seconds = PlanSpan(allow_null=True, help_text="Serving: one prompt on an idle server.")
    token_seconds = PlanSpan(allow_null=True, help_text="Serving: each further token, at the full load.")
    requests_at_a_time = _count("Serving: that the cache of all replicas holds.", null=True)
    cache_tokens = _count("Serving: of all replicas.", null=True)
    meets_targets = serializers.BooleanField(allow_null=True, help_text="Serving: the latencies that were asked for.")
    cost = PlanMoneySpan(allow_null=True, help_text="Training: the whole run, in the currency of the price.")
    cost_per_million_tokens = _money("Serving: of answers, at the full load.", null=True)


class PlanModel(Fields):
    name = _text()
    parameters = _count()
    active_parameters = _count("That one token meets.")
    layers = _count()
    hidden = _count()
    max_positions = _count("Null where it is not limited.", null=True)
    source = _text("Where its sizes were read.", null=True)


class PlanMemoryTerm(Fields):
    key = _text()
    name = _text()
    bytes = PlanSpan()
    counter = _words(["allocated", "reserved", "device"], "The first counter that shows it.")
    formula = _text()
    source = _text()


class PlanMemoryTotals(Fields):
    allocated = PlanSpan(help_text="What tensors hold.")
    reserved = PlanSpan(help_text="And what the allocator took beside.")
    device = PlanSpan(help_text="And what only the driver sees.")


class PlanMemory(Fields):
    """Bytes of the fullest GPU at the worst moment."""

    card_bytes = _count("As the driver shows it.")
    card_is_measured = serializers.BooleanField(help_text="Read from a card; else the usual share of the label.")
    label_gib = _number("What the label says.")
    totals = PlanMemoryTotals()
    terms = PlanMemoryTerm(many=True)


class PlanTimeTerm(Fields):
    key = _text()
    name = _text()
    seconds = PlanSpan(help_text="That add to the whole.")
    hidden_seconds = _number("That run beside other terms and cost nothing.")
    formula = _text()
    source = _text()


class PlanTime(Fields):
    key = _words(["step", "run", "first_token", "token"])
    terms = PlanTimeTerm(many=True)


class PlanNeed(Fields):
    key = _text()
    name = _text()
    unit = _words(["vcpus", "bytes", "iops", "bytes_per_second", "bits_per_second", "word"])
    minimum = serializers.JSONField(help_text="A number in `unit`, or a word.")
    recommended = serializers.JSONField(help_text="A number in `unit`, or a word.")
    why = _text()


class PlanStep(Fields):
    key = _words(["single", "batch", "data", "zero", "tensor", "pipeline"])
    name = _text()
    verdict = _words(["enough", "needed", "not_needed", "impossible"])
    verdict_words = _text()
    why = _text()
    changes = _sentences("What changes in a script for one GPU.")


class PlanEngine(Fields):
    engine = _text()
    reasons = _sentences("Why.")


class PlanFramework(Fields):
    name = _text()
    version = _text(null=True)


class PlanFinding(Fields):
    step = _text("What was checked.")
    level = _words(["full", "minor", "ptx-risk", "refused"])
    level_words = _text()
    text = _text()
    fix = _text(null=True)


class PlanSoftware(Fields):
    driver = _text("The one it is for.", null=True)
    level = _words(["full", "minor", "ptx-risk", "refused"])
    level_words = _text()
    torch = _text(null=True)
    cuda_tag = _text("Of torch's wheel index; null for the default one.", null=True)
    build = _text("Which build of torch that is.", null=True)
    frameworks = PlanFramework(many=True)
    findings = PlanFinding(many=True)


class PlanFile(Fields):
    name = _text()
    text = _text()


class PlanCommand(Fields):
    where = _words(["every-node", "first-node", "one-machine"])
    where_words = _text()
    text = _text("For bash, in the directory of the files.")
    note = _text()


class PlanArtefact(Fields):
    """What starts the best option with one launcher."""

    launcher = _text()
    name = _text()
    unfit = _text("Why this launcher cannot do it; null where it can.", null=True)
    files = PlanFile(many=True)
    commands = PlanCommand(many=True)
    notes = _sentences("What to know before.")


class PlanSource(Fields):
    name = _text()
    observed_on = serializers.DateField()


class PlanOwningCost(Fields):
    key = _text()
    name = _text()
    amount = _money("Over all years.")


class PlanBand(Fields):
    key = _text()
    name = _text()
    low_input = _money()
    high_input = _money()
    at_low = serializers.DecimalField(max_digits=None, decimal_places=3, allow_null=True)
    at_high = serializers.DecimalField(max_digits=None, decimal_places=3, allow_null=True)


class PlanComparison(Fields):
    """Break-even is a utilization, 0 to 1; null is never."""

    costs = PlanOwningCost(many=True)
    own_per_gpu_hour = _money("With every GPU busy all the time.")
    own_per_useful_gpu_hour = _money("At the utilization given.")
    rent_per_gpu_hour = _money()
    utilization = serializers.DecimalField(max_digits=None, decimal_places=6)
    break_even_utilization = serializers.DecimalField(max_digits=None, decimal_places=3, allow_null=True)
    owning_is_cheaper = serializers.BooleanField()
    sensitivity = PlanBand(many=True, help_text="Break-even with one input lower and higher.")
    advice = _sentences("What follows.")


class PlanOwning(Fields):
    gpus = _count()
    purchase_price = _money("Of one GPU.", null=True)
    purchase_source = PlanSource(allow_null=True)
    watts_per_gpu = _money(null=True)
    rent_per_gpu_hour = _money(null=True)
    comparison = PlanComparison(allow_null=True, help_text="Null where a price is not known.")


class PlanLeftOut(Fields):
    gpu = _text()
    gpu_name = _text()
    why = _text()


class PlanGuideStep(Fields):
    key = _text()
    name = _text()
    items = _sentences("What to do or check, in order.")


class PlanAnswer(Fields):
    """Sizes in bytes, times in seconds or hours as their names say, money in the currency of its price. Sentences in the language asked for."""

    work = _words(["training", "serving"])
    query = _text("The same plan as the query of the planner's page.")
    model = PlanModel()
    best = PlanOption(allow_null=True, help_text="The first choice, or of the chosen GPU; null where nothing fits.")
    by_gpu = PlanOption(many=True, help_text="The best option of each GPU, best first.")
    layouts = PlanOption(many=True, help_text="Every option on the GPU of `best`, best first.")
    left_out = PlanLeftOut(many=True, help_text="GPUs that cannot do it, and why.")
    what_ifs = _sentences("What would change the answer.")
    host = PlanNeed(many=True, help_text="The rest of a machine.")
    memory = PlanMemory(allow_null=True)
    times = PlanTime(many=True, allow_null=True)
    software = PlanSoftware(allow_null=True)
    artefacts = PlanArtefact(
        many=True, allow_null=True, help_text="Those that can do it first. Serving: of one replica."
    )
    owning = PlanOwning(allow_null=True)
    ladder = PlanStep(many=True, help_text="Training: the advice of experience, simplest first.")
    method = _sentences("Training: about the method itself.")
    engine = PlanEngine(allow_null=True, help_text="Serving: which engine.")
    guide = PlanGuideStep(many=True, help_text="Training: data, cleaning, privacy, evaluation.")
