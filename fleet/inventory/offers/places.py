"""What is known of those who make offers, beyond the offers: what can be done there from here, the team's rating, how its machines fared."""

from __future__ import annotations

from collections.abc import Collection

from fleet.inventory.offers.models import ProviderScore, ScoreKind
from fleet.inventory.offers.score import Place
from fleet.providers.base import Capability
from fleet.providers.registry import adapters


class Places:
    """By team and provider. One query, however many offers are asked about."""

    def __init__(self, team_ids: Collection[int], *, has_image: bool | None = None) -> None:
        scores = ProviderScore.objects.filter(team__in=team_ids)
        rows = scores.values_list("team_id", "provider", "kind", "value")
        self._stars = {(team, name, kind): stars for team, name, kind, stars in rows}
        self._has_image = has_image
        self._known: dict[tuple[int, str], Place] = {}

    def of(self, team_id: int, provider: str) -> Place:
        key = (team_id, provider)
        if key not in self._known:
            self._known[key] = self._place(key)
        return self._known[key]

    def _place(self, key: tuple[int, str]) -> Place:
        adapter = adapters().get(key[1])
        able = adapter.capabilities if adapter else frozenset()
        return Place(
            adapter=adapter is not None,
            creates=Capability.CREATE in able,
            saves_images=Capability.SAVE_IMAGE in able,
            has_image=self._has_image,
            support=self._stars.get((*key, ScoreKind.SUPPORT)),
            health=self._stars.get((*key, ScoreKind.HEALTH)),
        )


def provider_label(kind: str) -> str:
    """The provider's own spelling where an adapter knows it."""
    adapter = adapters().get(kind)
    return adapter.label if adapter else kind
