"""What stops add to the rooms below when the app is ready."""

from __future__ import annotations

from fleet.idle.shutdown import links, words
from fleet.idle.shutdown.withholding import in_use
from fleet.inventory.operations.withholding import register_objection


def register() -> None:
    words.register()
    links.register()
    register_objection(in_use)
