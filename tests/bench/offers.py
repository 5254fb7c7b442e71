"""How long the search for offers takes over many of them: `python -m tests.bench.offers [--offers 50000] [--json]`.

Times, queries and sizes are those of tests.bench.instances: Django's test client, without a network, after one warming request.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.bench.ingest import servers
from tests.bench.instances import measure

OFFERS = 50_000
MODELS = ("H100 SXM", "H100 PCIe", "A100 SXM 80 GB", "L40S", "RTX 4090", "H200", "B200", "RTX A6000")
PAGE = "/t/acme/offers/"
PAGES = {
    "everything_by_fit": PAGE,
    "h100_by_fit": f"{PAGE}?gpu=H100&gpus=8&nodes=2&purpose=benchmark",
    "everything_by_price": f"{PAGE}?sort=price",
    "everything_page_500": f"{PAGE}?page=500",
}


def seed(count: int) -> None:
    """Offers of five providers, of which a third says nothing of its network; the same ones every time."""
    from django.utils import timezone

    from fleet.inventory.offers.models import Offer, OfferSource, SourceKind
    from fleet.teams.models import Membership, Role, Team, User

    team = Team.objects.create(name="Acme", slug="acme")
    user = User.objects.create_user("anna", password="correct horse")
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    now = timezone.now()
    source = OfferSource.objects.create(team=team, kind=SourceKind.IMPORT, name="Many", read_at=now)
    chance = random.Random(7)
    rows = (Offer(source=source, **_offer(number, chance, now)) for number in range(count))
    Offer.objects.bulk_create(rows, batch_size=2_000)


def _offer(number: int, chance: random.Random, now: datetime) -> dict[str, Any]:
    gpus, speed = chance.choice((1, 2, 4, 8)), chance.choice((None, 100.0, 1_000.0))
    return {
        "key": str(number),
        "provider": f"provider-{number % 5}",
        "instance_type": f"type-{number}",
        "gpu_model": chance.choice(MODELS),
        "gpu_count": gpus,
        "gpu_memory_mib": chance.choice((24_564, 46_068, 81_559)),
        "price_per_hour": Decimal(gpus * chance.randint(30, 900)) / 100,
        "currency": "USD",
        "vcpus": 8 * gpus,
        "internet_down_mbps": speed,
        "internet_up_mbps": speed,
        "seen_at": now,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--offers", type=int, default=OFFERS)
    parser.add_argument("--json", action="store_true", help="The last line is a JSON object.")
    arguments = parser.parse_args()
    with servers():
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings", "HASHED_STATIC": "0"}
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        from config.web import GC_THRESHOLDS

        gc.set_threshold(*GC_THRESHOLDS)
        settings.ALLOWED_HOSTS = ["testserver"]
        call_command("migrate", verbosity=0)
        seed(arguments.offers)
        results = {name: measure(address) for name, address in PAGES.items()}
    for name, result in results.items():
        print(f"{name:24} {result}")  # noqa: T201
    if arguments.json:
        print(json.dumps(results))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
