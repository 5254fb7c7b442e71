"""The planner's page: `python -m tests.bench.plan_page --json`.

Server: the answer to each preset as htmx asks for it, whole catalogue, seen by Django's test client. Browser: from a key in Chromium to the
first frame with the new answer, through a real web process, the form's own wait included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench.ingest import servers

ROUNDS = 5
KEYS = 30
# Of one kind: training over the whole catalogue.
TYPED_INTO = "?method=qlora"
WATCH = """
() => {
  window.frames_ = [];
  document.getElementById("in-samples").addEventListener("input", () => { window.typed = performance.now(); });
  document.body.addEventListener("htmx:afterSwap", ({ detail }) => {
    if (detail.target.id !== "plan-answer") return;
    const typed = window.typed;
    requestAnimationFrame(() => setTimeout(() => window.frames_.push(performance.now() - typed)));
  });
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="The last line is a JSON object.")
    arguments = parser.parse_args()
    with servers():
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "HASHED_STATIC": "0",
            "ALLOWED_HOSTS": "127.0.0.1,testserver",
            "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        }
        import django

        django.setup()
        results = measure()
    for name, milliseconds in results.items():
        print(f"{name:24} {milliseconds:7.0f} ms")  # noqa: T201
    if arguments.json:
        print(json.dumps({name: round(value, 1) for name, value in results.items()}))  # noqa: T201
    return 0


def measure() -> dict[str, float]:
    from django.core.management import call_command
    from django.utils import timezone

    from planner.web.presets import preset_queries
    from tests.seed import seed_fleet

    call_command("migrate", verbosity=0)
    seed_fleet(now=timezone.now(), samples=False)
    client = _client()
    served = {name: _served(client, query) for name, query in preset_queries().items()}
    each = {name: statistics.median(wall for wall, _ in seconds) for name, seconds in served.items()}
    busy = [min(cpu for _, cpu in seconds) for seconds in served.values()]
    typed = _typed()
    return {
        **{f"server {name}": 1000 * seconds for name, seconds in each.items()},
        "server median": 1000 * statistics.median(each.values()),
        "server cpu median": 1000 * statistics.median(busy),
        "typed median": statistics.median(typed),
        "typed p95": statistics.quantiles(typed, n=20)[-1],
    }


def _client() -> Any:
    from django.test import Client

    from fleet.teams.models import User
    from tests.seed import PEOPLE

    client = Client()
    user = User.objects.get(username=next(iter(PEOPLE)))
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def _served(client: Any, query: str) -> list[tuple[float, float]]:
    """Seconds by the clock and of the processor; the first answer fills what is kept between requests and does not count."""
    seconds = []
    for _ in range(ROUNDS + 1):
        begun, worked = time.perf_counter(), time.process_time()
        answer = client.get(f"/t/acme/planner/?{query}", headers={"HX-Request": "true"})
        seconds.append((time.perf_counter() - begun, time.process_time() - worked))
        assert answer.status_code == 200
    return seconds[1:]


def _typed() -> list[float]:
    """Milliseconds from a key to the frame with its answer."""
    from fleet.teams.models import User
    from tests.e2e.chromium import CHROMIUM_ARGUMENTS
    from tests.e2e.conftest import session_cookie
    from tests.screenshots import PORT, web_process
    from tests.seed import PEOPLE

    url = f"http://127.0.0.1:{PORT}"
    with web_process(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_ARGUMENTS)
        context = browser.new_context(viewport={"width": 1440, "height": 1000})
        context.add_cookies([session_cookie(User.objects.get(username=next(iter(PEOPLE))), url)])  # type: ignore[list-item]
        page: Page = context.new_page()
        page.goto(f"{url}/t/acme/planner/{TYPED_INTO}")
        page.evaluate(WATCH)
        for number in range(KEYS):
            page.locator("#in-samples").fill(str(10_000 + 997 * number))
            page.wait_for_timeout(1500)
        milliseconds: list[float] = page.evaluate("window.frames_")
    return milliseconds[1:]


if __name__ == "__main__":
    sys.exit(main())
