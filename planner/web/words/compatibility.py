"""What the checks of a stack say, and what they propose."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

COMPATIBILITY: Mapping[str, str | Promise] = {
    "compatibility.not_nvidia": _("%(gpu)s is not a CUDA part: drivers and wheels are not checked for it."),
    "compatibility.no_wheel": _("There is no build of torch %(torch)s for %(tag)s."),
    "compatibility.driver_before_gpu": _("Driver %(driver)s is older than %(gpu)s and does not see it."),
    "compatibility.driver_after_gpu": _("Driver %(driver)s no longer supports %(gpu)s."),
    "compatibility.driver_below_floor": _(
        "Driver %(driver)s cannot run CUDA %(cuda)s at all: that needs %(floor)s or newer."
    ),
    "compatibility.driver_full": _("Driver %(driver)s knows all of CUDA %(cuda)s."),
    "compatibility.driver_minor": _(
        "Driver %(driver)s runs CUDA %(cuda)s by minor-version compatibility: compiled code works, PTX does not. Everything works from %(needed)s."
    ),
    "compatibility.no_kernels": _(
        "torch %(torch)s for %(tag)s has no kernels for %(gpu)s (compute capability %(capability)s)."
    ),
    "compatibility.ptx": _(
        "Driver %(driver)s cannot compile the PTX of CUDA %(cuda)s: a package without compiled code for this GPU stops. That needs driver %(needed)s."
    ),
    "compatibility.release_unknown": _("%(framework)s %(version)s is not in the tables: it is not checked."),
    "compatibility.capability_below": _(
        "%(framework)s %(version)s needs compute capability %(lowest)s; %(gpu)s has less."
    ),
    "compatibility.torch_pin": _("%(framework)s %(version)s wants torch %(range)s, not %(torch)s."),
    "compatibility.cuda_major": _(
        "%(framework)s %(version)s is built for CUDA %(built)s, this torch for CUDA %(cuda)s: their libraries don't load together."
    ),
    "compatibility.cuda_pair_unpublished": _(
        "Nobody publishes %(framework)s %(version)s together with CUDA %(cuda)s: it may work and is not tested."
    ),
    "compatibility.cuda_range": _("%(framework)s %(version)s has no build for CUDA %(cuda)s."),
    "compatibility.source_build": _(
        "%(framework)s %(version)s has no wheel for torch %(torch)s (the newest is for %(newest)s): it is compiled on the machine, which takes long."
    ),
    "compatibility.framework_needs_driver": _(
        "%(framework)s %(version)s brings CUDA %(cuda)s or newer, which driver %(driver)s does not run."
    ),
    "compatibility.framework_cuda": _("%(framework)s %(version)s for CUDA %(cuda)s runs on driver %(driver)s."),
    "compatibility.cudnn_kernels": _(
        "cuDNN %(cudnn)s, which this build brings, starts at compute capability %(lowest)s: %(gpu)s is older."
    ),
    "compatibility.cudnn_major": _(
        "%(framework)s uses cuDNN %(cudnn)s, torch cuDNN %(torch)s: one process holds only one."
    ),
    "compatibility.system_cudnn": _("The image's own cuDNN %(found)s would be loaded before torch's %(compiled)s."),
    "compatibility.system_nccl": _(
        "The image's own NCCL %(found)s is older than torch's %(compiled)s and would be loaded first."
    ),
    "compatibility.python": _(
        "%(framework)s %(version)s is made for Python %(lowest)s to %(highest)s, not %(python)s."
    ),
    "compatibility.no_bf16": _("%(gpu)s has no BF16."),
    "compatibility.no_fp8": _("%(gpu)s does not calculate in FP8."),
    "compatibility.fp8_weights_only": _(
        "%(gpu)s does not calculate in FP8: weights in FP8 save memory there, but are unpacked to 16 bits for every product."
    ),
    "compatibility.no_int8": _("%(gpu)s has no INT8 kernels for language models."),
    "compatibility.no_flash": _("FlashAttention does not run on %(gpu)s: it needs Ampere or newer."),
    "compatibility.nvcc_part": _("nvcc %(nvcc)s cannot compile for %(gpu)s: that starts with CUDA %(first)s."),
    "compatibility.nvcc_differs": _(
        "%(framework)s compiles its operators with the image's nvcc %(nvcc)s, while torch is built with CUDA %(cuda)s."
    ),
    "compatibility.image_label": _(
        "The image asks for CUDA %(image)s; driver %(driver)s says %(cuda)s, so the container does not start."
    ),
    "compatibility.forward_geforce": _(
        "The image brings compatibility libraries for CUDA %(image)s, which GeForce cards refuse on driver %(driver)s (CUDA %(cuda)s)."
    ),
    "compatibility.no_peer": _(
        "%(gpu)s has no peer-to-peer access: data between cards goes through the memory of the machine."
    ),
    "compatibility.shared_memory": _(
        "Shared memory (/dev/shm) has only %(mebibytes)s MiB: NCCL and data loaders run out of it."
    ),
    "compatibility.fabric_manager": _(
        "The GPUs are joined by NVSwitch, but the fabric manager does not run: CUDA does not start."
    ),
    "fit.unreadable": _("“%(text)s” is no version of %(what)s: it is not checked."),
    "fit.no_driver": _("The driver of the machine is not known."),
    "fit.no_gpu": _("This GPU is not in the tables."),
    "fit.no_torch": _("No version of torch is known: nothing says which GPUs it has kernels for."),
    "fit.own_build": _("torch %(torch)s is in no table: nothing says which GPUs it has kernels for."),
    "fit.cpu_build": _("torch %(torch)s is built without CUDA: it uses no GPU."),
    "fit.fix.cuda_build": _("Install a build of torch for CUDA."),
    "fit.driver_floor": _("Drivers older than %(floor)s cannot run its CUDA %(cuda)s at all."),
    "fit.driver_ptx": _(
        "Drivers from %(floor)s to below %(needed)s run its CUDA %(cuda)s, but do not compile PTX for it: a package without compiled code for the GPU stops."
    ),
    "compatibility.fix.newer_driver": _(
        "Take a machine with driver %(driver)s or newer; inside a container it cannot be changed."
    ),
    "compatibility.fix.older_branch": _("Take a machine with a driver of branch %(branch)s."),
    "compatibility.fix.other_tag": _("Install torch %(torch)s from PyTorch's own wheel index, tag %(tag)s."),
    "compatibility.fix.other_build": _("Install torch %(torch)s, tag %(tag)s."),
    "compatibility.fix.other_gpu": _("Take another GPU."),
    "compatibility.fix.separate_environment": _("Give %(framework)s %(version)s an environment or image of its own."),
    "compatibility.fix.same_major": _(
        "Take the build of %(framework)s %(version)s for torch's CUDA, or torch for its CUDA."
    ),
    "compatibility.fix.build_from_source": _(
        "Build %(framework)s %(version)s on a development image with torch's nvcc (pip install --no-build-isolation), or use PyTorch's own attention (sdpa)."
    ),
    "compatibility.fix.library_path": _("Take the image's %(library)s out of LD_LIBRARY_PATH: torch brings its own."),
    "compatibility.fix.python": _("Use a Python from %(lowest)s to %(highest)s."),
    "compatibility.fix.dtype": _("Calculate in %(dtype)s."),
    "compatibility.fix.attention": _("Use PyTorch's own attention (sdpa)."),
    "compatibility.fix.skip_cuda_check": _(
        "Set DS_SKIP_CUDA_CHECK=1 (only the minor differs), or take a development image of CUDA %(cuda)s."
    ),
    "compatibility.fix.devel_image": _("Take a development image of CUDA %(cuda)s."),
    "compatibility.fix.image_tag": _(
        "Take an image for CUDA %(cuda)s or older; where minor-version compatibility is enough, NVIDIA_DISABLE_REQUIRE=1 starts this one."
    ),
    "compatibility.fix.no_compat_libraries": _(
        "Take /usr/local/cuda/compat out of LD_LIBRARY_PATH, or an image for an older CUDA."
    ),
    "compatibility.fix.no_peer": _(
        "Set NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1, and count on the speed of PCIe only."
    ),
    "compatibility.fix.shared_memory": _("Start the container with --shm-size=16g or --ipc=host."),
    "compatibility.fix.fabric_manager": _(
        "The provider must start nvidia-fabricmanager of the driver's version; until then return the machine."
    ),
}
