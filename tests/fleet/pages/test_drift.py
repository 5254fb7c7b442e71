"""A machine that is not what was rented says so, on its page and in the list."""

from __future__ import annotations

from .conftest import WORKING


def test_another_model_is_said_on_the_page_and_in_the_list(alice, as_user, make_machine):
    machine = make_machine(readings=[WORKING], gpu_model="A100 SXM 80 GB")
    client = as_user(alice)
    assert "H100 SXM, rented as A100 SXM 80 GB" in client.get(f"/t/acme/instances/{machine.pk}/").text
    assert "not as rented" in client.get("/t/acme/instances/").text


def test_what_was_rented_says_nothing(alice, as_user, make_machine, make_instance):
    machine = make_machine(readings=[WORKING, WORKING], gpu_model="H100 SXM", gpu_memory_mib=81_920)
    make_instance(name="unreported", gpu_model="H100 SXM")
    client = as_user(alice)
    assert "Not what was rented" not in client.get(f"/t/acme/instances/{machine.pk}/").text
    assert "not as rented" not in client.get("/t/acme/instances/").text
