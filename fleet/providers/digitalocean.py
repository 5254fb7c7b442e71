"""DigitalOcean's Droplets, GPU ones first: https://docs.digitalocean.com/reference/api/ (v2).

Two traps of this API: its list leaves GPU Droplets out unless they are asked for, and who destroys one Droplet again and again gets
the account flagged, so a machine is looked at before it is destroyed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    BilledCharge,
    Capability,
    CreateSpec,
    Ending,
    Field,
    ImageState,
    InstanceState,
    Offer,
    OfferQuery,
    ProviderImage,
    ProviderInstance,
    ProviderUsage,
    Ref,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.bills import LineIds
from fleet.providers.digitalocean_bills import invoices_between, line_of, touching
from fleet.providers.digitalocean_endings import ENDINGS, SEMANTICS
from fleet.providers.digitalocean_facts import image_of, instance_of, offers_of
from fleet.providers.digitalocean_metrics import QUESTIONS, usage_of
from fleet.providers.errors import NotFound
from fleet.providers.http import JsonApi, Problem, endpoint
from fleet.providers.orders import chosen_image, known_key, no_price_limit, on_demand, order_refusals, own_disk, tags_of
from fleet.providers.reading import MAX_PAGES, complete, endless, header_secret, mapping_of, path_of
from fleet.providers.registry import register
from fleet.providers.rows import Row, moment, promised, rows_of

LABEL = "DigitalOcean"
PAGE_SIZE = 200
WINDOW = timedelta(minutes=15)
# Destroying takes minutes at most.
DESTROY_PATIENCE = timedelta(minutes=30)
UNDER_WAY = {InstanceState.RUNNING, InstanceState.PROVISIONING}


@register
class DigitalOcean:
    kind: ClassVar[str] = "digitalocean"
    label: ClassVar[str] = LABEL
    fields: ClassVar[tuple[Field, ...]] = (
        Field(
            name="token",
            label=gettext_noop("API token"),
            help_text=gettext_noop("of the team whose Droplets are shown; to watch, read scopes are enough"),
            secret=True,
        ),
    )
    # No STOP: a Droplet that is off costs what it costs running. No BALANCE: the bill comes afterwards.
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.LIST,
            Capability.FIND,
            Capability.START,
            Capability.TERMINATE,
            Capability.REBOOT,
            Capability.CREATE,
            Capability.OFFERS,
            Capability.IMAGES,
            Capability.SAVE_IMAGE,
            Capability.METRICS,
            Capability.COSTS,
        }
    )
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ENDINGS
    semantics: ClassVar[StopSemantics] = SEMANTICS

    def __init__(self, options: Mapping[str, str]) -> None:
        token = header_secret(options, "token")
        self._api = JsonApi(
            label=LABEL,
            base_url=endpoint(self.kind, "https://api.digitalocean.com/v2/"),
            headers={"Authorization": f"Bearer {token}"},
            secrets=[token],
            problem=problem,
        )

    def verify(self) -> AccountInfo:
        account = mapping_of(self._api.get("account"), "account", LABEL)
        team = account.get("team") or {}
        return AccountInfo(str(team.get("uuid") or account.get("uuid") or ""))

    def instances(self) -> Iterator[ProviderInstance]:
        # Left alone, the list has no GPU Droplets; asked for them, it has no others.
        for kind in ("gpus", "droplets"):
            for row in self._every("droplets", "droplets", type=kind):
                with promised(LABEL):
                    made = instance_of(row)
                yield made

    def instance(self, ref: Ref) -> ProviderInstance | None:
        try:
            row = mapping_of(self._api.get(path_of("droplets", ref.external_id)), "droplet", LABEL)
        except NotFound:
            return None
        with promised(LABEL):
            return instance_of(row)

    def start(self, ref: Ref) -> None:
        found = self.instance(ref)
        if found is None:
            raise NotFound(f"{LABEL} has no Droplet {ref.external_id}.")
        if found.state not in UNDER_WAY:
            self._act(ref, "power_on")

    def reboot(self, ref: Ref) -> None:
        self._act(ref, "reboot")

    def terminate(self, ref: Ref) -> None:
        if self.instance(ref) is None or self._is_being_destroyed(ref):
            return
        try:
            self._api.send("DELETE", path_of("droplets", ref.external_id))
        except NotFound:
            return

    def create(self, spec: CreateSpec, token: str) -> Ref:
        image = chosen_image(spec.image_id, LABEL)
        own_disk(spec, LABEL)
        no_price_limit(spec, LABEL)
        on_demand(spec, LABEL)
        body: dict[str, object] = {
            "name": spec.name or token,
            "size": spec.offer_id,
            "image": int(image) if image.isdecimal() else image,
            "tags": tags_of(spec.labels, token),
            "monitoring": True,
        }
        if spec.region:
            body["region"] = spec.region
        if spec.ssh_public_key:
            body["ssh_keys"] = [self._key_id(spec.ssh_public_key, token)]
        if spec.user_data:
            body["user_data"] = spec.user_data
        with order_refusals():
            answer = self._api.send("POST", "droplets", json=body)
        droplet = mapping_of(answer, "droplet", LABEL)
        with promised(LABEL):
            return Ref(str(droplet["id"]), str((droplet.get("region") or {}).get("slug") or spec.region))

    def offers(self, query: OfferQuery) -> Iterator[Offer]:
        for row in self._every("sizes", "sizes"):
            with promised(LABEL):
                made = list(offers_of(row))
            yield from made

    def images(self) -> Iterator[ProviderImage]:
        for row in self._every("snapshots", "snapshots", resource_type="droplet"):
            with promised(LABEL):
                made = image_of(row)
            yield made

    def save_image(self, ref: Ref, name: str) -> ProviderImage:
        """The answer names the action, not the snapshot: images() finds it by its name."""
        answer = self._api.send(
            "POST", path_of("droplets", ref.external_id, "actions"), json={"type": "snapshot", "name": name}
        )
        mapping_of(answer, "action", LABEL)
        return ProviderImage(external_id="", name=name, region=ref.region, state=ImageState.PENDING)

    def metrics(self, refs: Sequence[Ref]) -> Iterator[ProviderUsage]:
        now = datetime.now(UTC)
        window = {"start": str(int((now - WINDOW).timestamp())), "end": str(int(now.timestamp()))}
        for ref in refs:
            answers = {
                name: self._api.get(f"monitoring/metrics/droplet/{path}", host_id=ref.external_id, **window, **asked)
                for name, (path, asked) in QUESTIONS.items()
            }
            with promised(LABEL):
                usage = usage_of(ref, answers)
            yield usage

    def charges(self, start: datetime, end: datetime) -> Iterator[BilledCharge]:
        preview = (self._api.get("customers/my/invoices", page="1", per_page="1") or {}).get("invoice_preview")
        invoices = list(self._every("customers/my/invoices", "invoices"))
        with promised(LABEL):
            wanted = invoices_between(invoices, preview, start, end)
        ids = LineIds()
        for invoice in wanted:
            items = list(self._every(path_of("customers", "my", "invoices", invoice), "invoice_items"))
            with promised(LABEL):
                lines = [line_of(item, ids) for item in items]
            yield from touching(iter(lines), start, end)

    def _act(self, ref: Ref, action: str) -> None:
        self._api.send("POST", path_of("droplets", ref.external_id, "actions"), json={"type": action})

    def _is_being_destroyed(self, ref: Ref) -> bool:
        """Whether it was asked for lately. What then is still there was forgotten, and has to be asked for anew."""
        oldest = datetime.now(UTC) - DESTROY_PATIENCE
        try:
            actions = list(self._every(path_of("droplets", ref.external_id, "actions"), "actions"))
        except NotFound:
            return True
        with promised(LABEL):
            asked = [row for row in actions if row.get("type") == "destroy" and row.get("status") != "errored"]
            return any((moment(row.get("started_at")) or oldest) >= oldest for row in asked)

    def _key_id(self, public_key: str, name: str) -> int:
        row = known_key(self._every("account/keys", "ssh_keys"), "public_key", public_key)
        if row is None:
            answer = self._api.send("POST", "account/keys", json={"name": name, "public_key": public_key})
            row = mapping_of(answer, "ssh_key", LABEL)
        with promised(LABEL):
            return int(row["id"])

    def _every(self, path: str, key: str, **query: str) -> Iterator[Row]:
        """All rows of all pages. `links.pages.next` says that there is more; no address of the answer is followed."""
        seen = 0
        for page in range(1, MAX_PAGES + 1):
            answer = self._api.get(path, page=str(page), per_page=str(PAGE_SIZE), **query)
            rows = rows_of(answer, key, LABEL)
            yield from rows
            seen += len(rows)
            if not ((answer.get("links") or {}).get("pages") or {}).get("next"):
                return complete(seen, (answer.get("meta") or {}).get("total"), LABEL)
        raise endless(LABEL, key)


def problem(body: Row) -> Problem:
    """{"id": "not_found", "message": "…"}"""
    return str(body["id"]), str(body["message"])
