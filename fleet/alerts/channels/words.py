"""What went wrong with a channel, and what to do about it, for people."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

FAILURES: Mapping[str, str | Promise] = {
    "address": _("The address may not be reached from here: it lies in a private network that the operator has not allowed, or it is none. Check it."),
    "failed": _("Sending it failed inside Rackrent; it is tried again, and the operator finds why in the log."),
    "forbidden": _("The other side does not let us in. Look at its settings, make a new webhook there, and paste it here."),
    "gone": _("The webhook is no longer there: it was deleted, or the robot was removed from the group. Make a new one and paste it here."),
    "ip": _("The robot accepts messages from certain addresses only. Add this server's public address there."),
    "keyword": _("The robot wants a keyword in every message. Choose its signature instead, or add “Rackrent” as a keyword."),
    "left": _("Its owner is no longer in the team."),
    "mail_server": _("The mail server did not take it. The operator of this installation looks at EMAIL_HOST and its log."),
    "no_answer": _("No answer came in time, so nobody can tell whether it arrived."),
    "no_credentials": _("Its address and keys cannot be opened. Type them again, or let the operator look at CREDENTIAL_KEYS."),
    "no_mail_server": _("This installation has no mail server. Its operator sets EMAIL_HOST."),
    "not_found": _("There is nothing at this address, or no such chat. Copy it again from the other side."),
    "off": _("The channel was switched off."),
    "rate": _("The other side gets more than it takes; messages are gathered and sent later."),
    "recipient": _("The mail server refuses an address. Check it, or whether its mailbox is full."),
    "redirect": _("The address leads elsewhere, and redirects are not followed. Paste the address that it leads to."),
    "refused": _("The other side does not take this message; the next ones are sent all the same."),
    "server": _("The other side has trouble of its own; it is tried again."),
    "signature": _("The signature does not match. Paste the signing secret again, and check this server's clock."),
    "some_recipients": _("The mail server refused some of its addresses; the others have it."),
    "strange": _("A page answered instead of the service. Check the address, and proxies on the way."),
    "too_late": _("It could not be sent for a whole day."),
    "unauthorized": _("The key is not valid, or no longer. Paste a new one."),
    "uncertain": _("It was interrupted twice while it was sent. It may have arrived twice, so it is not sent again."),
    "unknown_kind": _("This release does not know this kind of channel."),
    "unreachable": _("The address cannot be reached; it is tried again."),
}  # fmt: skip


def failure_text(code: str) -> str:
    return str(FAILURES.get(code, code))
