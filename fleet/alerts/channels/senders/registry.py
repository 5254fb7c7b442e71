"""All senders, by name."""

from __future__ import annotations

from fleet.alerts.channels.senders.base import Sender
from fleet.alerts.channels.senders.dingtalk import DingTalk
from fleet.alerts.channels.senders.discord import Discord
from fleet.alerts.channels.senders.email import Email
from fleet.alerts.channels.senders.feishu import Feishu
from fleet.alerts.channels.senders.ntfy import Ntfy
from fleet.alerts.channels.senders.pagerduty import PagerDuty
from fleet.alerts.channels.senders.slack import Slack
from fleet.alerts.channels.senders.teams import Teams
from fleet.alerts.channels.senders.telegram import Telegram
from fleet.alerts.channels.senders.webhook import Webhook
from fleet.alerts.channels.senders.wecom import WeCom

SENDERS: dict[str, Sender] = {
    sender.name: sender
    for sender in (
        Email(),
        Slack(),
        Teams(),
        Discord(),
        Telegram(),
        Feishu(),
        DingTalk(),
        WeCom(),
        PagerDuty(),
        Ntfy(),
        Webhook(),
    )
}
