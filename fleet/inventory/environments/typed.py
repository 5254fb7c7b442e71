"""Versions as people type them: checked where they come in, so that what counts most is at least a version."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from packaging.version import InvalidVersion, Version

from fleet.inventory.environments.versions import MAX_CHARS, MAX_PACKAGES, SINGLE, package_name
from fleet.inventory.environments.writing import EnvironmentRefused

PACKAGE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:==|\s)\s*(?P<version>\S+)")
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def typed_versions(singles: Mapping[str, str], packages: Mapping[str, str]) -> dict[str, Any]:
    """As Environment keeps them. Raises EnvironmentRefused, which names the field."""
    typed: dict[str, Any] = {
        name: checked(name, singles[name].strip()) for name in SINGLE if singles.get(name, "").strip()
    }
    if len(packages) > MAX_PACKAGES:
        raise EnvironmentRefused(_("At most %(most)d packages: name those that matter.") % {"most": MAX_PACKAGES}, field="packages")  # fmt: skip
    named = {checked_name(name): checked("packages", version) for name, version in packages.items()}
    return typed | ({"frameworks": named} if named else {})


def checked(field: str, text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        text_shown = text[:MAX_CHARS]
        raise EnvironmentRefused(
            _("“%(text)s” is no version. Write it like 570.124.06 or 2.8.0+cu128.") % {"text": text_shown}, field=field
        ) from None
    if len(text) > MAX_CHARS:
        raise EnvironmentRefused(_("A version has at most %(most)d characters.") % {"most": MAX_CHARS}, field=field)
    return text


def checked_name(name: str) -> str:
    if not NAME.fullmatch(name) or len(name) > MAX_CHARS:
        raise EnvironmentRefused(
            _("“%(text)s” is no name of a package.") % {"text": name[:MAX_CHARS]}, field="packages"
        )
    return package_name(name)


def packages_of_text(text: str) -> dict[str, str]:
    """One a line, as `torch==2.8.0+cu128` or `torch 2.8.0+cu128`. Raises EnvironmentRefused with the line."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not (stripped := line.strip()):
            continue
        match = PACKAGE.fullmatch(stripped)
        if match is None:
            shown = {"line": number, "text": stripped[:MAX_CHARS]}
            raise EnvironmentRefused(
                _("Line %(line)d: “%(text)s”. Write a name and a version, like torch==2.8.0+cu128.") % shown,
                field="packages",
            )
        found[match["name"]] = match["version"]
    return found


def text_of_packages(packages: Mapping[str, str]) -> str:
    return "\n".join(f"{name}=={version}" for name, version in sorted(packages.items()))
