"""From a sample to the pixel: how long a page takes to show what a machine just measured. `python -m tests.bench.pixels --json`.

A machine posts through the real ingest while Chromium shows Overview and the machine's own page over the real websocket. The
delay runs from the moment of the sample to the first frame that shows it, so the sampling interval itself is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench.ingest import servers

SAMPLES = 60
# Chart lines are drawn at most once a second, so readings must not come in step with that.
PAUSE_SECONDS = (1.1, 1.9)
WATCH = """
(selector) => {
  window.seen = {};
  const note = (value) => requestAnimationFrame(() => { window.seen[value] ??= Date.now() / 1000; });
  if (selector.startsWith("chart:")) {
    const chart = document.querySelector(`[data-series-chart="${selector.slice(6)}"]`);
    setInterval(() => note(Math.round(chart.data?.[1].y.at(-1) ?? -1)), 10);
  } else {
    const place = document.querySelector(selector);
    new MutationObserver(() => note(parseInt(place.textContent))).observe(place, { childList: true, characterData: true, subtree: true });
  }
}
"""
PLACES = {
    "overview_tile": ("/t/acme/", "#m{pk} .gpu b"),
    "machine_tile": ("/t/acme/instances/{pk}/", ".biggpus .gpu b"),
    "machine_chart": ("/t/acme/instances/{pk}/", "chart:busy"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="The last line is a JSON object.")
    arguments = parser.parse_args()
    with servers():
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "HASHED_STATIC": "0",
            "ALLOWED_HOSTS": "127.0.0.1",
            "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        }
        import django

        django.setup()
        delays = measure()
    results = {name: summary(values) for name, values in delays.items()}
    for name, result in results.items():
        print(f"{name:16} p50 {result['p50_s']:.2f} s  p95 {result['p95_s']:.2f} s  of {result['samples']}")  # noqa: T201
    if arguments.json:
        print(json.dumps(results))  # noqa: T201
    return 0


def measure() -> dict[str, list[float]]:
    from django.core.management import call_command
    from django.utils import timezone

    from fleet.inventory.models import Instance
    from tests.e2e.chromium import CHROMIUM_ARGUMENTS
    from tests.e2e.reporting import enrol
    from tests.screenshots import PORT, web_process
    from tests.seed import seed_fleet

    call_command("migrate", verbosity=0)
    seed_fleet(now=timezone.now(), samples=False)
    machine = Instance.objects.get(name="train-h100-01")
    machine.agent.delete()
    url = f"http://127.0.0.1:{PORT}"
    reporter = enrol(url, machine)
    with web_process(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_ARGUMENTS)
        pages = {name: _open(browser, url, *place, machine.pk) for name, place in PLACES.items()}
        posted = {}
        for number in range(SAMPLES):
            posted[10 + number] = reporter.report(utilization_percent=10.0 + number)
            time.sleep(random.uniform(*PAUSE_SECONDS))
        seen = {name: page.evaluate("window.seen") for name, page in pages.items()}
    return {
        name: [moments[str(value)] - at for value, at in posted.items() if str(value) in moments]
        for name, moments in seen.items()
    }


def _open(browser: Any, url: str, address: str, selector: str, machine: int) -> Page:
    """A window of its own, so that none is in the background; watching once the socket stands."""
    from fleet.teams.models import User
    from tests.e2e.conftest import session_cookie
    from tests.seed import PEOPLE

    context = browser.new_context(viewport={"width": 1440, "height": 1200})
    context.add_cookies([session_cookie(User.objects.get(username=next(iter(PEOPLE))), url)])
    page: Page = context.new_page()
    page.goto(url + address.format(pk=machine))
    page.wait_for_selector("body[data-live-mode=socket]")
    page.evaluate(WATCH, selector.format(pk=machine))
    return page


def summary(delays: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(delays, n=20)
    return {"p50_s": round(statistics.median(delays), 3), "p95_s": round(cuts[-1], 3), "samples": len(delays)}


if __name__ == "__main__":
    sys.exit(main())
