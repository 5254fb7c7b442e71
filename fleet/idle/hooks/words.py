"""What became of pre-stop actions, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.idle.hooks.models import HookRun, HookState

FAILURES: Mapping[str, str | Promise] = {
    "said_no": gettext_lazy("it ended with an error"),
    "no_end": gettext_lazy("it had not ended in time"),
    "no_answer": gettext_lazy("the agent did not answer"),
    "no_way": gettext_lazy("there is no way to the machine any more"),
    "not_looked_at": gettext_lazy("nobody could look whether the machine has one"),
    "unsafe_file": gettext_lazy("others than root could write it, so it was not run"),
    "address_refused": gettext_lazy("its address is not one that Rackrent may reach"),
    "ssh_no_key_fits": gettext_lazy("the machine does not take the team's SSH key"),
    "ssh_host_key_new": gettext_lazy("nobody has confirmed the machine's host key"),
    "ssh_host_key_changed": gettext_lazy("the machine shows another host key than the one that was confirmed"),
    "ssh_unreachable": gettext_lazy("SSH to the machine could not be opened"),
    "ssh_broken": gettext_lazy("SSH to the machine broke off"),
}


def hook_words(run: HookRun) -> str:
    """As in "pre-stop action (over SSH): it ended with an error (status 3): disk full". The last line is the machine's own word."""
    said = {"way": run.get_way_display(), "state": run.get_state_display()}
    text = _("pre-stop action (%(way)s): %(state)s") % said
    if run.state == HookState.FAILED:
        why = str(FAILURES.get(run.code, run.code))
        text = _("pre-stop action (%(way)s): %(why)s") % {**said, "why": why}
    if run.exit_code:
        text = _("%(text)s (status %(code)d)") % {"text": text, "code": run.exit_code}
    return f"{text}: {run.last_line}" if run.last_line else text
