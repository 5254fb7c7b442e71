"""Versions of the packages beside torch and the frameworks of the tables: those that our tests run the scripts with."""

from __future__ import annotations

PACKAGES = {
    "transformers": "5.24.0",
    "accelerate": "1.15.0",
    "peft": "0.21.2",
    "trl": "1.16.0",
    "datasets": "5.2.0",
}
# Not run by our tests: the newest of their kind, by their own metadata.
UNTESTED = {
    "megatron-bridge": "0.3.1",
    "paddlenlp": "2.8.1",
}


def requirement(name: str) -> str:
    return f"{name}=={PACKAGES.get(name) or UNTESTED[name]}"
