"""What is rented: from an offer, or by the provider's own name of it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.inventory.act_forms import OnceForm
from fleet.inventory.adapters import can
from fleet.inventory.machine_forms import PriceField
from fleet.inventory.models import Image, ProviderAccount, SshKey
from fleet.inventory.offers.models import Offer
from fleet.inventory.words import MARKETS
from fleet.pages.startup import NotAShellScript, startup_script
from fleet.providers.base import Capability, CreateSpec, Market
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team

MACHINE_NAME = RegexValidator(
    r"^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z",
    _("Use lower-case letters, digits and hyphens, a letter or digit at both ends."),
)
# What the smallest of the providers takes.
MAX_USER_DATA = 16_384
# The install line that is put before one's own script.
ROOM_FOR_INSTALL = 1_024


def renting_accounts(team: Team) -> QuerySet[ProviderAccount]:
    """Accounts that may act, at providers whose adapters rent."""
    rows = ProviderAccount.objects.filter(team=team, monitor_only=False, enabled=True, disconnected_at=None)
    able = [account.pk for account in rows.only("kind") if can(account, Capability.CREATE)]
    return ProviderAccount.objects.filter(pk__in=able).order_by("name")


class LaunchForm(OnceForm):
    """With `offer` the account, the type, the region and the market are the offer's. `spec()` is what is ordered."""

    account = forms.ModelChoiceField(ProviderAccount.objects.none(), label=_("Account"))
    offer_id = LineField(
        label=_("Type"), max_length=200, help_text=_("as the provider names it, for example gpu_8x_h100_sxm5")
    )
    region = LineField(label=_("Region"), max_length=80, required=False)
    market = forms.ChoiceField(
        label=_("Market"),
        choices=[(market.value, word) for market, word in MARKETS.items() if market != Market.UNKNOWN],
    )
    name = LineField(label=_("Name"), max_length=60, validators=[MACHINE_NAME])
    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), required=False, empty_label=_("none"))
    image_id = LineField(
        label=_("Image"),
        max_length=300,
        required=False,
        help_text=_("id at the provider; some have a default, some need one"),
    )
    disk_gb = forms.IntegerField(
        label=_("Disk, GB"),
        min_value=1,
        max_value=1_000_000,
        required=False,
        help_text=_("empty: as the provider sets it"),
    )
    max_price_per_hour = PriceField(label=_("At most, an hour"), help_text=_("a bid, where machines are sold by bids"))
    ssh_key = forms.BooleanField(label=_("Let in the team’s SSH key"), required=False, initial=True)
    install_agent = forms.BooleanField(
        label=_("Install the agent"),
        required=False,
        initial=True,
        help_text=_("its first start runs the install line with a token for this one machine, valid for two hours"),
    )
    user_data = forms.CharField(
        label=_("Startup script"),
        required=False,
        max_length=MAX_USER_DATA - ROOM_FOR_INSTALL,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono"}),
        help_text=_("shell; runs once at the first start. Put no secrets into it: providers show it again."),
    )

    override_reason = LineField(
        label=_("Why the block does not count"),
        max_length=300,
        required=False,
        help_text=_("kept with the launch and in the audit log"),
    )

    def __init__(
        self, *args: Any, team: Team, offer: Offer | None = None, may_override: bool = False, **kwargs: Any
    ) -> None:
        """`may_override`: something may be blocked, and this person may say why it does not count."""
        super().__init__(*args, **kwargs)
        if not may_override:
            del self.fields["override_reason"]
        self.offer, self.key_row = offer, SshKey.objects.filter(team=team).first()
        if offer is not None:
            for name in ("account", "offer_id", "region", "market"):
                del self.fields[name]
        else:
            self._choose("account", renting_accounts(team))
        self._choose("project", Project.objects.filter(team=team, archived_at=None).order_by("name"))
        if self.key_row is None:
            del self.fields["ssh_key"]
        self.fields["image_id"].widget.attrs["list"] = "own-images"

    def _choose(self, name: str, rows: QuerySet[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        try:
            startup_script(values.get("user_data", ""), install="true" if values.get("install_agent") else "")
        except NotAShellScript:
            self.add_error(
                "user_data",
                gettext(
                    "This is no shell script, so the install line cannot be put into it. Do not install the agent, or write the line yourself."
                ),
            )
        return values

    def chosen_account(self) -> ProviderAccount:
        account = self.offer.source.account if self.offer else self.cleaned_data["account"]
        assert account is not None, "only offers of accounts are launched"
        return account

    def spec(self, *, install: str) -> CreateSpec:
        """Of a valid form. `install`: the agent's install line, "" where it is not wanted."""
        values, offer = self.cleaned_data, self.offer
        key = self.key_row.public_key if self.key_row and values.get("ssh_key") else ""
        return CreateSpec(
            name=values["name"],
            offer_id=offer.external_id if offer else values["offer_id"],
            region=offer.region if offer else values["region"],
            market=Market(offer.market if offer else values["market"]),
            gpu_count=(offer.gpu_count if offer else None) or 1,
            image_id=values["image_id"],
            disk_gb=values["disk_gb"],
            max_price_per_hour=values["max_price_per_hour"],
            ssh_public_key=key,
            user_data=startup_script(values["user_data"], install=install),
        )


def images_of(accounts: QuerySet[ProviderAccount], offer: Offer | None) -> QuerySet[Image]:
    """To choose from: what the accounts themselves have saved or used."""
    rows = Image.objects.filter(gone_at=None).order_by("-owned", "name")
    rows = rows.filter(account=offer.source.account) if offer else rows.filter(account__in=accounts)
    return rows[:200]
