"""Runs a script as DeepSpeed would on a GPU: without the operator for CPUs that share memory, which would be compiled for minutes."""

from __future__ import annotations

import runpy
import sys

import deepspeed.ops

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
# The launcher puts the rank before the script.
script = next(word for word in sys.argv[1:] if word.endswith(".py"))
sys.argv = [script, *(word for word in sys.argv[1:] if word != script)]
sys.path.insert(0, "")
runpy.run_path(script, run_name="__main__")
