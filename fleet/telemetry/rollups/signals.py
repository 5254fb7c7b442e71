"""What those who keep something that was made of rollups must hear of."""

from __future__ import annotations

from django.dispatch import Signal

# Sent within the transaction that rolled hours again: `since`, the first of them, and `instance_ids`, whose machines they are of.
hours_rolled_again = Signal()
