"""Versions of frameworks and libraries, read from the names of their metadata: nothing is imported or run."""

from __future__ import annotations

import glob
import os
import re
import sys

_PLACES = (
    "usr/lib/python3/dist-packages",
    "usr/local/lib/python3*/*-packages",
    "opt/conda/lib/python3*/site-packages",
    "opt/conda/envs/*/lib/python3*/site-packages",
    "opt/*/lib/python3*/site-packages",
    "venv/lib/python3*/site-packages",
    "root/miniconda3/lib/python3*/site-packages",
    "root/miniconda3/envs/*/lib/python3*/site-packages",
    "root/*/lib/python3*/site-packages",
    "workspace/*/lib/python3*/site-packages",
    "home/*/*/lib/python3*/site-packages",
)
_LIBRARY_PLACES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/local/cuda/lib64", "usr/lib64")
_MOST_PLACES = 48
_FRAMEWORKS = frozenset(
    [
        "accelerate",
        "bitsandbytes",
        "deepspeed",
        "diffusers",
        "flash_attn",
        "flax",
        "jax",
        "jaxlib",
        "keras",
        "lightning",
        "llama_cpp_python",
        "megatron_core",
        "onnxruntime_gpu",
        "peft",
        "pytorch_lightning",
        "ray",
        "sglang",
        "tensorflow",
        "tensorrt",
        "tensorrt_llm",
        "torch",
        "torchvision",
        "transformer_engine",
        "transformers",
        "triton",
        "trl",
        "unsloth",
        "vllm",
        "xformers",
    ]
)
_METADATA = re.compile(r"^([A-Za-z0-9_.]+)-([^-]+)\.(dist|egg)-info$")
_BUNDLED = re.compile(r"^nvidia_(cudnn|nccl)(_cu\d+)?$")
_SHARED = re.compile(r"^lib(cudnn|nccl)\.so\.(\d+\.\d+[\d.]*)$")


def versions(root: str = "/") -> dict[str, object]:
    """``frameworks``, ``cudnn``, ``nccl``, ``python``: of several installations the first one found."""
    frameworks: dict[str, str] = {}
    libraries: dict[str, str] = {}
    for place in _directories(root):
        for name, version in _installed(place):
            bundled = _BUNDLED.match(name)
            if bundled:
                libraries.setdefault(bundled.group(1), version)
            elif name in _FRAMEWORKS:
                frameworks.setdefault(name, version)
    libraries = {**_shared_libraries(root), **libraries}
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"python": python, **libraries, **({"frameworks": frameworks} if frameworks else {})}


def places_with(package: str, root: str = "/") -> list[str]:
    """Directories of packages that hold this one."""
    return [place for place in _directories(root) if any(name == package for name, _ in _installed(place))]


def _directories(root: str) -> list[str]:
    found = [path for pattern in _PLACES for path in sorted(glob.glob(root + pattern))]
    return list(dict.fromkeys(found))[:_MOST_PLACES]


def _installed(place: str) -> list[tuple[str, str]]:
    matches = [_METADATA.match(name) for name in _listed(place)]
    return [(match.group(1).lower().replace(".", "_"), match.group(2)) for match in matches if match]


def _shared_libraries(root: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in _LIBRARY_PLACES:
        for match in filter(None, (_SHARED.match(name) for name in _listed(root + place))):
            # libcudnn.so.9 and libcudnn.so.9.8.0 are one library: the longer name says more
            if len(match.group(2)) > len(found.get(match.group(1), "")):
                found[match.group(1)] = match.group(2)
    return found


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
