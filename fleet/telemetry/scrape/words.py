"""Why a target was not read, in the reader's language. `%(detail)s` is what the scrape noted beside the code."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.sources.models import PrometheusSource
from fleet.telemetry.words import Words

# By RefusedAddressError.code.
REFUSALS: Words = {
    "no_url": _("This is no web address. Write it like https://host.example:9400/metrics."),
    "scheme": _("Only http:// and https:// addresses with a host name are possible."),
    "port": _("A port lies between 1 and 65535."),
    "login": _("Leave user name and password out of the address; a token has a field of its own."),
    "metadata": _("%(detail)s is a cloud's metadata service. It is never contacted."),
    "private": _(
        "%(detail)s lies in a private or special network. The operator of this installation can allow it in ALLOWED_NETWORKS."
    ),
    "no_address": _("The name %(detail)s has no address."),
}
FAILURES: Words = {
    **{f"refused_{code}": text for code, text in REFUSALS.items()},
    "timeout": _(
        "No complete answer within %(detail)s s. Check that the exporter runs and that a firewall lets us in."
    ),
    "unreachable": _("Nobody accepts the connection. Check host and port, and that the exporter runs."),
    "tls": _("Its certificate is not trusted, or it speaks no TLS."),
    "broken": _("The connection broke off, or what came is damaged (%(detail)s)."),
    "redirect": _("It answers with a redirect (%(detail)s), which is not followed. Write the address it leads to."),
    "token": _("It wants another token, or one at all (HTTP %(detail)s)."),
    "status": _("It answers with HTTP %(detail)s."),
    "too_large": _("Its page is larger than %(detail)s MiB: this is no exporter of one machine."),
    "not_metrics": _("No metrics of a known exporter are there. The address often ends in /metrics."),
    "no_gpus": _("It shows no GPU. That is a failed collection, not an idle machine: look at its log."),
    "collection_failed": _("The exporter itself says that it could not read the GPUs: look at its log."),
    "too_many_gpus": _("It shows %(detail)s GPUs, more than one machine has: read each machine's own exporter."),
    "bad_labels": _("Its labels cannot be those of a GPU: %(detail)s"),
    "no_prometheus": _(
        "It answers, but not as a Prometheus does. The address is what stands before /api/v1/query; a login page answers like this, too."
    ),
    "too_many": _(
        "Its answer is larger than %(detail)s MiB even for half a minute. Split its machines over several sources, each with matchers of its own."
    ),
    "query": _("It refuses the question: %(detail)s"),
    "ssh_no_key": _("The team has no SSH key yet. Make one under Settings, SSH."),
    "ssh_no_key_fits": _("The machine does not let %(detail)s in with the team's key. Paste its public half there."),
    "ssh_host_key_new": _("Nobody has confirmed this machine's host key yet: %(detail)s"),
    "ssh_host_key_changed": _(
        "The machine shows another host key than the one that was confirmed: %(detail)s. Somebody may stand in between. "
        "Confirm it only if you know why it changed."
    ),
    "ssh_unreachable": _("Nobody accepts the SSH connection. Check host and port."),
    "ssh_forward": _("Over SSH, nobody accepts a connection on port %(detail)s of the machine's loopback."),
    "ssh_broken": _("The SSH connection broke off (%(detail)s)."),
    "not_stored": _("What it says could not be stored: %(detail)s"),
    "sealed": _("Its token cannot be opened with CREDENTIAL_KEYS. Type it again."),
    "bug": _("Reading it failed in a way nobody foresaw; the worker's log has it."),
}
YIELDS: Words = {
    "agent": _("The agent on this machine reports, so that this exporter stands by."),
    "exporter": _("Another exporter of this machine gives the same; only that one is stored."),
}


def failure_text(read: ScrapeTarget | PrometheusSource) -> str:
    """Plain text; "" for what is read without trouble."""
    known = FAILURES.get(read.error)
    return str(known) % {"detail": read.error_detail} if known else read.error


def refusal_text(code: str, subject: str) -> str:
    return str(REFUSALS[code]) % {"detail": subject}
