from __future__ import annotations

import pytest

from fleet.providers.base import Billing, InstanceState

from .conftest import FREE, HELD, WORKING


@pytest.fixture
def page(alice, as_user):
    return lambda: as_user(alice).get("/t/acme/").text


def test_every_gpu_is_a_tile_in_its_state(page, make_machine):
    make_machine(readings=[WORKING, HELD, FREE])
    text = page()
    for state in ("working", "held", "free"):
        assert text.count(f'<i class="gpu" data-s="{state}" data-gpu=') == 1


def test_the_key_counts_gpus_and_their_part_of_the_price(page, make_machine):
    make_machine(readings=[WORKING, WORKING, HELD, FREE], price="8.00")
    text = page()
    assert "<span>Working <b>2</b></span><small>$4.00/h</small>" in text
    assert "<span>Held idle <b>1</b></span><small>$2.00/h</small>" in text


def test_the_strip_agrees_with_the_key(page, make_machine):
    make_machine(readings=[WORKING, HELD, FREE, FREE], price="8.00")
    text = page()
    assert '$8<span class="cents">.00</span><small>/h</small>' in text
    assert '$6<span class="cents">.00</span><small>/h</small>' in text
    assert "$2.00 held idle, $4.00 free" in text
    assert "75% of burn" in text


def test_a_price_that_is_not_known_is_said_and_not_counted_as_nothing(page, make_machine):
    make_machine(name="known", readings=[WORKING], price="8.00")
    make_machine(name="dark", readings=[WORKING], price=None)
    assert "price × now, 1 machine without a price" in page()


def test_without_any_price_the_burn_rate_is_unknown(page, make_machine):
    make_machine(readings=[WORKING], price=None)
    text = page()
    assert "no machine has a known price" in text
    assert "$0.00" not in text


def test_what_no_part_records_yet_is_unknown_with_its_reason(page, make_machine):
    make_machine(readings=[WORKING])
    text = page()
    assert "nothing is counted yet" in text
    assert "rules not looked at yet" in text


def test_currencies_stand_side_by_side(page, make_machine):
    make_machine(name="here", readings=[WORKING], price="8.00")
    make_machine(name="there", readings=[WORKING], price="50.00", currency="CNY")
    text = page()
    assert '$8<span class="cents">.00' in text
    assert "+ ¥50.00" in text


def test_silence_turns_a_machine_unknown_and_hatches_its_tiles(page, make_machine):
    make_machine(readings=[WORKING, WORKING], seconds=840)
    text = page()
    assert 'data-worst="unknown"' in text
    assert text.count('<i class="gpu" data-s="unknown" data-gpu=') == 2
    assert "silent 14 min" in text
    assert 'class="age old"' in text


def test_gpus_that_never_reported_are_drawn_as_unknown(page, make_instance):
    make_instance(gpus=0, gpu_model="H100 SXM")
    page_without = page()
    assert 'data-s="unknown" style' not in page_without
    instance = make_instance(name="listed", gpus=0)
    instance.gpu_count = 4
    instance.save()
    assert page().count('<i class="gpu" data-s="unknown" style=""><b></b></i>') == 4


def test_a_stopped_machine_pays_only_its_disk(page, make_machine):
    make_machine(
        readings=[WORKING], state=InstanceState.STOPPED, billing=Billing.STORAGE, storage_price_per_hour="0.11"
    )
    text = page()
    assert "<span>Stopped <b>1</b></span><small>$0.11/h disk</small>" in text


@pytest.mark.parametrize(("gpus", "density"), [(32, "xl"), (33, "l"), (161, "m"), (321, "s"), (641, "xs")])
def test_tiles_shrink_with_the_fleet(page, make_instance, gpus, density):
    make_instance(gpus=0, gpu_model="H100 SXM")
    from fleet.inventory.models import Instance

    Instance.objects.update(gpu_count=gpus)
    assert f'data-density="{density}"' in page()


def test_each_project_shows_what_its_gpus_do(page, make_machine, project):
    make_machine(readings=[WORKING, HELD], price="8.00", project=project)
    text = page()
    assert "Vision" in text
    assert 'aria-label="Working $4.00, Held idle $4.00"' in text


def test_names_from_machines_are_escaped(page, make_machine):
    make_machine(name="<img src=x onerror=alert(1)>", readings=[HELD])
    text = page()
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text


def test_another_teams_machines_are_not_here(page, make_machine, charlie, as_user):
    make_machine(name="secret-01", readings=[WORKING])
    assert "secret-01" not in as_user(charlie).get("/t/rival/").text
    assert as_user(charlie).get("/t/acme/pulse/").status_code == 404
    assert as_user(charlie).get("/t/acme/states/").status_code == 404


def test_a_team_without_machines_has_an_empty_chart(alice, as_user):
    assert as_user(alice).get("/t/acme/states/").status_code == 200


def test_the_page_speaks_chinese(alice, as_user, make_machine):
    make_machine(readings=[HELD])
    text = as_user(alice).get("/t/acme/", headers={"Accept-Language": "zh-CN"}).text
    for words in ("当前花费", "占而不用", "需要处理", "机群"):
        assert words in text
