"""Programs that some tests drive. Absent, they skip the test on a person's machine and fail it in CI, which installs them."""

from __future__ import annotations

import os
import shutil

import pytest


def needs(program: str) -> str:
    """The path of `program`; its Debian package is listed in .ci/packages."""
    # Daemons lie where only root's PATH leads.
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin:/sbin")
    if path is None:
        reason = f"{program} is not installed (.ci/packages names its Debian package)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
