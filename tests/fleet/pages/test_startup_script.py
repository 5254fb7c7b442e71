"""The script of a first start: one's own, with the line that installs the agent before it."""

from __future__ import annotations

import pytest

from fleet.pages.startup import NotAShellScript, startup_script

LINE = "curl -fsSL http://127.0.0.1/agent/install.sh | sh -s -- --token rre_x"


def test_nothing_asked_is_nothing():
    assert startup_script("  \n") == ""


def test_ones_own_stays_as_it_is_without_the_agent():
    assert startup_script("#cloud-config\npackages: [git]\r\n") == "#cloud-config\npackages: [git]\n"


@pytest.mark.parametrize("own", ["", "apt-get install -y git", "echo a\necho b"])
def test_lines_without_a_first_line_of_their_own_become_a_script(own):
    assert startup_script(own, install=LINE) == f"#!/bin/sh\n({LINE}) || true\n{own}\n"


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/bin/bash -e", "#!/usr/bin/env bash"])
def test_the_first_line_stays_first(first):
    assert startup_script(f"{first}\necho a", install=LINE) == f"{first}\n({LINE}) || true\necho a\n"


@pytest.mark.parametrize("own", ["#cloud-config\nruncmd: []", "#!/usr/bin/env python3\nprint()", "# a remark\necho"])
def test_what_is_no_shell_script_takes_no_line_of_shell(own):
    with pytest.raises(NotAShellScript):
        startup_script(own, install=LINE)
