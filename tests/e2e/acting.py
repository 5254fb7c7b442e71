"""One machine from its launch to its end, asked for in Chromium and proved by real adapters; the worker is the test's own hand."""

from __future__ import annotations

from collections.abc import Callable

from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.driver import drive
from fleet.inventory.operations.models import OPEN_STATES, Operation
from fleet.inventory.operations.sweeping import sweep
from fleet.inventory.poll import claim, poll_account

# More than any act takes; an operation that is still open then has failed the test.
MOST_ROUNDS = 40
LIVE_MS = 30_000


def poll(account: ProviderAccount) -> None:
    now = timezone.now()
    account.refresh_from_db()
    claim(account_id=account.pk, seen_next_poll_at=account.next_poll_at, now=now)
    account.refresh_from_db()
    assert poll_account(account=account, now=now).error is None


def prove(wait: Callable[[], None]) -> Operation:
    """Works on the newest operation until it is proved. `wait` lets time pass at the provider, between two looks."""
    newest = Operation.objects.order_by("-pk")[:1]
    for _round in range(MOST_ROUNDS):
        operation = newest.get()
        if operation.state not in OPEN_STATES:
            break
        # Nobody waits for a back-off here.
        Operation.objects.filter(pk=operation.pk).update(next_at=timezone.now())
        drive(operation_id=operation.pk)
        sweep(now=timezone.now())
        wait()
    operation = newest.get()
    assert operation.state == "proved", f"{operation}: {operation.state} {operation.error_detail}"
    return operation


def card_link(page: Page, act: str) -> Locator:
    """Exactly that act: "Start…" is also a part of "Restart…", which stands there until the card knows of the stop."""
    return page.locator("#acts").get_by_role("link", name=f"{act}…", exact=True)


def ask(page: Page, act: str, *, name: str, loses: bool = False) -> None:
    """Opens the question from the card and says yes by keyboard; what loses data only after the machine's name."""
    card_link(page, act).press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_contain_text(f"{act} ")
    if loses:
        button = dialog.locator(".risk.solid")
        expect(button).to_be_disabled()
        field = dialog.get_by_label("Type the machine’s name to confirm")
        field.fill("another")
        field.press("Enter")
        expect(dialog).to_be_visible()
        field.fill(name)
        expect(button).to_be_enabled()
        # From the field, as people do: Enter there must mean yes.
        field.press("Enter")
    else:
        dialog.locator("button:not([data-close])").press("Enter")
    expect(page.locator("#operation")).to_contain_text(f"{act} ")
    expect(page.locator("#operation [aria-current=step]")).to_be_visible()


def watch(page: Page, wait: Callable[[], None], state: str) -> Operation:
    """The page comes to the proof by itself, and to the state that it proves."""
    operation = prove(wait)
    expect(page.locator("#operation .steps li").last).to_contain_text("Proved", timeout=LIVE_MS)
    expect(page.locator("#operation [aria-current=step]")).to_have_count(0, timeout=LIVE_MS)
    assert Instance.objects.get(operations=operation).state == state
    return operation


def whole_life(
    page: Page, wait: Callable[[], None], *, order: Callable[[Page], None], stop_loses: bool = False
) -> None:
    """Launched, watched, saved, stopped, started, terminated; what `order` fills is the form of the launch."""
    page.goto("/t/acme/launch/")
    order(page)
    page.get_by_role("button", name="Launch, price not known").click()
    expect(page.locator("#operation")).to_contain_text("Asked for")
    machine = prove(wait).instance
    assert machine is not None
    page.wait_for_url(f"**/t/acme/instances/{machine.pk}/", timeout=LIVE_MS)
    expect(page.locator("#operation .steps li").last).to_contain_text("Proved", timeout=LIVE_MS)

    ask(page, "Save image", name=machine.name)
    watch(page, wait, "running")
    page.reload()
    ask(page, "Stop", name=machine.name, loses=stop_loses)
    watch(page, wait, "stopped")
    expect(card_link(page, "Start")).to_be_visible(timeout=LIVE_MS)
    ask(page, "Start", name=machine.name)
    watch(page, wait, "running")
    expect(card_link(page, "Terminate")).to_be_visible(timeout=LIVE_MS)
    ask(page, "Terminate", name=machine.name, loses=True)
    watch(page, wait, "terminated")
    acts = list(Operation.objects.order_by("pk").values_list("kind", "state"))
    assert acts == [(kind, "proved") for kind in ("launch", "save_image", "stop", "start", "terminate")]
    page.goto("/t/acme/operations/?state=proved")
    expect(page.locator("#operations tbody tr")).to_have_count(5)
