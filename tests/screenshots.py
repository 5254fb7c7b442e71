"""The pictures of docs/screenshots: the made-up fleet of tests/seed.py on a running server, wide and narrow, light and dark.

`make screenshots`; Chromium must be installed. The servers are the run's own and start empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.bench.ingest import servers
from tests.e2e.chromium import CHROMIUM_ARGUMENTS, wait_for_server

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "screenshots"
PORT = int(os.environ.get("RACKRENT_BENCH_PORT", "26010"))
SIZES = {1440: 1_180, 390: 1_600}
LARGEST_BYTES = 400_000


def main() -> int:
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "HASHED_STATIC": "0", "ALLOWED_HOSTS": "127.0.0.1"}
        # Playwright's loop runs in this thread, where Django then refuses to ask the database.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        pages = seeded_pages()
        with web_process(), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_ARGUMENTS)
            sizes = [take(browser, *shot) for shot in shots(pages)]
    return int(max(sizes) > LARGEST_BYTES)


def seeded_pages() -> dict[str, str]:
    from django.utils import timezone

    from tests.seed import seed_fleet

    team = seed_fleet(now=timezone.now())
    machine = team.instances.get(name="train-h100-01")
    return {
        "overview": "/t/acme/",
        "instances": "/t/acme/instances/",
        "instance": f"/t/acme/instances/{machine.pk}/",
    }


@contextmanager
def web_process() -> Iterator[None]:
    words = ["-m", "uvicorn", "config.asgi:application", "--port", str(PORT), "--log-level", "warning"]
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT)
    try:
        wait_for_server(f"http://127.0.0.1:{PORT}", process)
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


def shots(pages: dict[str, str]) -> Iterator[tuple[str, str, int, str]]:
    for name, address in pages.items():
        for width in SIZES:
            for scheme in ("light", "dark"):
                yield name, address, width, scheme


def take(browser: Browser, name: str, address: str, width: int, scheme: str) -> int:
    """Writes one picture and returns its size in bytes."""
    from django.utils import timezone

    from tests.seed import PASSWORD, keep_fresh

    url = f"http://127.0.0.1:{PORT}"
    size = {"width": width, "height": SIZES[width]}
    context = browser.new_context(viewport=size, color_scheme=scheme, locale="en-GB", timezone_id="Europe/Berlin")  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{url}/login/")
    page.get_by_label("User name").fill("anna")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/t/**")
    keep_fresh(now=timezone.now())
    page.goto(url + address)
    # The chart of the day comes after the page.
    page.wait_for_load_state("networkidle")
    time.sleep(1)
    path = TARGET / f"{name}-{width}-{scheme}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    context.close()
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1000} kB")  # noqa: T201
    return path.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
