from __future__ import annotations

from django.core.management import call_command


def test_every_text_has_its_translation():
    call_command("messages", check=True)
