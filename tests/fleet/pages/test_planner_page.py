"""The planner's page: a plan is an address, every preset answers, what is wrong stays in the form beside its field."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from planner.web.form import GROUPS
from planner.web.inputs import PlanInput
from planner.web.presets import PRESETS, preset_queries
from planner.web.query import data_of, query_of
from planner.web.words import SENTENCES

PAGE = "/t/acme/planner/"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
}


@pytest.fixture
def browser(vera, as_user):
    """A viewer may plan."""
    return as_user(vera)


def part(browser, query: str, trigger: str = "plan-form"):
    return browser.get(f"{PAGE}?{query}", headers={"HX-Request": "true", "HX-Trigger": trigger})


def plain(answer) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.text)))


def found(pattern: str, text: str) -> str:
    """The first group of the first match."""
    match = re.search(pattern, text)
    assert match, pattern
    return match[1]


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_answers_at_its_own_address(browser, name):
    answer = browser.get(f"{PAGE}?{preset_queries()[name]}")
    assert answer.status_code == 200
    assert 'id="h-best"' in answer.text
    assert answer.text.count('aria-current="true"') >= 3
    assert not re.search(r"%\(\w+\)s|{{|{%", answer.text)


def test_the_presets_fit_where_their_names_say(browser):
    assert "1 × GeForce RTX 4090 24GB:" in plain(browser.get(f"{PAGE}?{preset_queries()['lora-7b']}"))
    assert "tight" not in plain(browser.get(f"{PAGE}?{preset_queries()['qlora-8b']}")).split("GPUs can do it")[0]


@pytest.mark.parametrize(
    "data",
    [
        *PRESETS.values(),
        {"config": LLAMA, "method": "full", "samples": 77},
        {"shape": "name=Own,layers=16,hidden=2048,heads=32,intermediate=8192,vocab=32000", "epochs": 0.5},
        {"gpu_ids": ["l4-24", "a10-24"], "price_kinds": ["spot"], "packed": False, "budget": "12.50", "compiled": True},
    ],
    ids=str,
)
def test_a_plan_comes_back_out_of_its_address(data):
    asked = PlanInput(data=data)
    assert asked.is_valid(), asked.errors
    query = query_of(asked.validated_data)
    again = PlanInput(data=data_of(QueryDict(query)))
    assert again.is_valid(), again.errors
    assert query_of(again.validated_data) == query
    assert len(query) < 2048
    same = {name: again.validated_data[name] for name in data if name not in {"config", "gpu_ids", "price_kinds"}}
    assert same == {name: asked.validated_data[name] for name in same}


def test_the_address_is_always_the_shortest_one(browser):
    answer = browser.get(f"{PAGE}?work=training&model=&samples=20000&method=qlora&utm=1")
    assert (answer.status_code, answer.headers["Location"]) == (302, "?method=qlora")
    assert browser.get(f"{PAGE}?work=training").headers["Location"] == PAGE
    assert browser.get(f"{PAGE}?method=qlora").status_code == 200


def test_an_answer_alone_brings_its_address(browser):
    answer = part(browser, "work=training&method=qlora&samples=20000&model=")
    assert answer.headers["HX-Replace-Url"] == f"{PAGE}?method=qlora"
    assert part(browser, "method=qlora", trigger="").headers["HX-Push-Url"] == f"{PAGE}?method=qlora"
    assert "HX-Request" in answer.headers["Vary"]
    assert answer.text.lstrip().startswith('<div class="stack" id="plan-answer"')
    assert 'id="plan-said" hx-swap-oob' in answer.text
    assert "<html" not in answer.text


def test_going_back_in_the_browser_gets_the_whole_page(browser):
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<html" in browser.get(PAGE, headers=headers).text


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        ("samples=-3", "samples", "Give a whole number from 1"),
        ("epochs=NaN", "epochs", "Give a number from 0.001"),
        ("model=nobody/nothing", "model", "The catalogue does not have this model"),
        ("shape=layers%3Dx", "shape", "heads is missing"),
        ("gpu=h1000", "gpu", "Give one of"),
        ("config=%7B%22a", "config", "This is no JSON"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_stays_in_it(browser, query, name, said):
    answer = browser.get(f"{PAGE}?{query}&epochs=2" if name != "epochs" else f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert json.loads(found(r'plan-errors-data" type="application/json">(.+?)</script>', answer.text))[name]
    assert said in plain(answer) or name == "config"
    value = parse_qs(query)[name][0]
    if name not in {"gpu", "config"}:
        assert f'name="{name}" value="{value}"' in unescape(answer.text)
    swapped = part(browser, query)
    assert swapped.headers["HX-Retarget"] == "#plan-errors"
    assert said in unescape(swapped.text).encode().decode("unicode_escape", "replace")
    assert "HX-Replace-Url" not in swapped.headers


def test_a_pasted_config_becomes_a_shape_in_the_address_and_the_rest_stays(browser):
    sent = {"config": json.dumps(LLAMA), "query": "method=full&samples=500&model=Qwen%2FQwen2.5-7B"}
    answer = browser.post(f"{PAGE}config/", sent)
    address = urlsplit(answer.headers["Location"])
    assert (answer.status_code, address.path) == (302, "../")
    asked = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert "layers=16,hidden=2048" in asked.pop("shape")
    assert asked == {"method": "full", "samples": "500"}
    assert "llama, 1.5 B" in plain(browser.get(f"{PAGE}?{address.query}"))


def test_an_uploaded_config_is_read_too(browser):
    file = SimpleUploadedFile("config.json", json.dumps(LLAMA).encode())
    assert browser.post(f"{PAGE}config/", {"file": file}).status_code == 302


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"model_type": "llama", "hidden_size"', "This is no JSON from line 1"),
        (json.dumps({**LLAMA, "model_type": "warp"}), "warp is not an architecture"),
        (json.dumps({**LLAMA, "hidden_size": -1}), "hidden_size is -1"),
        (json.dumps({**LLAMA, "vocab_size": 10**15}), "vocab_size is 1000000000000000"),
        (json.dumps({**LLAMA, "num_hidden_layers": "16"}), 'num_hidden_layers is "16"'),
        ("", "Paste a config.json"),
    ],
)
def test_a_config_that_cannot_be_names_its_field_and_is_kept(browser, text, said):
    answer = browser.post(f"{PAGE}config/", {"config": text, "query": "method=full&samples=x&epochs=2"})
    assert answer.status_code == 400
    assert said in plain(answer)
    assert text in unescape(answer.text)
    assert 'name="query" value="method=full&amp;epochs=2"' in answer.text


def test_a_file_that_is_no_text_is_refused(browser):
    file = SimpleUploadedFile("config.json", b"\xff\xfe\x00\x01" * 50)
    answer = browser.post(f"{PAGE}config/", {"file": file})
    assert (answer.status_code, "This is no JSON" in plain(answer)) == (400, True)


def test_an_error_message_is_explained(browser):
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    for headers in ({}, {"HX-Request": "true"}):
        answer = browser.post(f"{PAGE}symptom/", {"text": text}, headers=headers)
        assert "TORCH" in plain(answer) or "torch 2.7 or newer" in plain(answer)
        assert ("<html" in answer.text) is not bool(headers)
    assert "None of the known messages" in plain(browser.post(f"{PAGE}symptom/", {"text": "all is well"}))


def test_what_was_pasted_is_shown_as_text(browser):
    answer = browser.post(f"{PAGE}symptom/", {"text": "<script>alert(1)</script>"})
    assert "<script>alert" not in answer.text


def test_the_page_asks_the_database_nothing_of_its_own(browser):
    browser.get(PAGE)
    counts = set()
    for query in ("", "?method=qlora", "?work=serving"):
        with CaptureQueriesContext(connection) as queries:
            browser.get(f"{PAGE}{query}")
        counts.add(len(queries))
    with CaptureQueriesContext(connection) as queries:
        part(browser, "")
    assert len(counts) == 1
    assert len(queries) < counts.pop()


def test_strangers_and_other_teams_see_nothing(client, charlie, as_user):
    assert client.get(PAGE).status_code == 302
    assert as_user(charlie).get(PAGE).status_code == 404


def test_every_field_of_the_input_has_its_place_in_the_form():
    shown = [name for group in GROUPS for name in group.names]
    assert sorted(shown) == sorted({*PlanInput().fields} - {"work", "config"})


ADVICE = {
    "the ladder": (
        "method=full&gpu=h100-sxm-80",
        ["One GPU is too small", "init_process_group", "DistributedSampler", "LOCAL_RANK"],
    ),
    "engines": ("work=serving&seconds_per_token=0.01", ["TensorRT-LLM: the lowest latency", "Start with vLLM"]),
    "vLLM": ("work=serving", ["vLLM: no compiling"]),
    "four bits": ("work=serving&weight_format=awq-int4", ["Four-bit weights only together with an evaluation"]),
    "a card less": (
        "method=full&gpu=h100-sxm-80&model=meta-llama%2FLlama-2-13b-hf",
        ["more memory on each card would save"],
    ),
    "the machine": (
        "personal_data=true",
        ["vCPUs", "System disk", "IOPS", "Internet", "Tenancy", "Personal data stays"],
    ),
    "rent or buy": (
        "gpu=h100-sxm-80",
        ["Rule of thumb: below 70 % steady utilization, rent", "Break-even", "Rent ± 30 %"],
    ),
    "never": ("gpu=rtx-3090-24", ["Never: at this rent owning costs more"]),
    "an old driver": ("gpu=h100-sxm-80&driver=525.60.13", ["for driver 525.60.13", "minor-version compatibility"]),
    "the guide": ("samples=300", ["De-identification", "Terminology", "Refusal", "300 samples teach a format"]),
    "data for all weights": ("method=full&samples=500", ["mostly forgets"]),
    "no peer access": ("gpu=rtx-4090-24&count=2", ["no peer-to-peer access"]),
    "artefacts": ("gpu=h100-sxm-80", ["torchrun", "accelerate", "DeepSpeed", "install.sh", "Copy"]),
    "left out": ("compute_dtype=fp8", ["has no FP8"]),
}


@pytest.mark.parametrize("name", list(ADVICE))
def test_the_advice_of_experience_is_in_the_plan(browser, name):
    query, sentences = ADVICE[name]
    shown = plain(browser.get(f"{PAGE}?{query}"))
    assert [sentence for sentence in sentences if sentence not in shown] == []


def test_a_slow_link_shows(browser):
    query = "method=full&model=meta-llama%2FMeta-Llama-3.1-70B&gpu=h100-sxm-80&count=32"
    told = [plain(part(browser, f"{query}&link={link}")) for link in ("ethernet-10", "infiniband-400")]
    slow, fast = (found(r"H100 SXM5 80GB: (.+?),", text) for text in told)
    assert slow != fast
    assert all("Exchange: gradients" in text for text in told)


def test_prices_show_their_day_and_source(browser):
    answer = browser.get(f"{PAGE}?gpu=h100-sxm-80")
    assert re.search(
        r'<time datetime="20\d\d-\d\d-\d\d" title="[^"]+">20\d\d-\d\d-\d\d</time> \(\d+ days? old\)', answer.text
    )


def test_the_page_speaks_chinese(browser):
    text = plain(browser.get(f"{PAGE}?method=qlora", headers={"Accept-Language": "zh-hans"}))
    assert "什么会改变结果" in text
    assert "显存" in text or "权重" in text
    with translation.override("en"):
        english = [str(said) for key, said in SENTENCES.items() if key.startswith(("guide.", "advice.", "host."))]
    assert [said for said in english if "%" not in said and said in text] == []
