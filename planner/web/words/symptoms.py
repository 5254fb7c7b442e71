"""What an error message means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

SYMPTOMS: Mapping[str, str | Promise] = {
    "symptom.driver-insufficient.cause": _(
        "The machine's driver is older than the CUDA of the image, or the container was started without its GPU."
    ),
    "symptom.driver-insufficient.fix": _(
        "Check that the container was given a GPU; then take an image with an older CUDA, or a machine with a newer driver. A tenant cannot change the driver."
    ),
    "symptom.driver-too-old-torch.cause": _(
        "The driver knows CUDA up to %(cuda)s, and torch was built for a newer major. Since torch 2.11 the default build is for CUDA 13."
    ),
    "symptom.driver-too-old-torch.fix": _(
        "Install the build of torch for CUDA 12 (tags cu126 and cu128 of PyTorch's own wheel index; for vLLM its +cu129 build), or take a machine with driver 580 or newer."
    ),
    "symptom.forward-compat-804.cause": _(
        "The image brings a CUDA library newer than the kernel's driver. Only data-centre GPUs accept that."
    ),
    "symptom.forward-compat-804.fix": _(
        "Take /usr/local/cuda/compat out of LD_LIBRARY_PATH, or an image with an older CUDA, or a machine with a newer driver."
    ),
    "symptom.container-requirement.cause": _(
        "The image asks for CUDA %(cuda)s on its label, and the driver says less."
    ),
    "symptom.container-requirement.fix": _(
        "Take an image for the driver's CUDA; where minor-version compatibility is enough, NVIDIA_DISABLE_REQUIRE=1 skips the check."
    ),
    "symptom.ptx-unsupported-toolchain.cause": _(
        "A package has no compiled code for this GPU, and the driver is too old to compile the PTX that it brings. Minor-version compatibility does not cover that."
    ),
    "symptom.ptx-unsupported-toolchain.fix": _(
        "Take a machine with a newer driver, or a package built for this GPU or with an older CUDA; another attention backend may also avoid it."
    ),
    "symptom.no-kernel-image.cause": _(
        "The package has no kernels for this GPU: the GPU is newer than the build (Blackwell before CUDA 12.8), or too old for it (Pascal and Volta after CUDA 12.6)."
    ),
    "symptom.no-kernel-image.fix": _(
        "Blackwell: torch 2.7 or newer, tag cu128 or newer. V100: tag cu126, or cu128 up to torch 2.10. P40 and P100: tag cu126."
    ),
    "symptom.nvcc-unsupported-arch.cause": _("The CUDA toolkit of the image does not know compute_%(arch)s."),
    "symptom.nvcc-unsupported-arch.fix": _(
        "Take a development image with a toolkit that does (89 and 90: 11.8; 100 and 120: 12.8; 103 and 121: 12.9), or set TORCH_CUDA_ARCH_LIST to an older part of the same major."
    ),
    "symptom.ptxas-unknown-arch.cause": _("The assembler that Triton brings does not know sm_%(arch)s."),
    "symptom.ptxas-unknown-arch.fix": _(
        "Point TRITON_PTXAS_PATH at the ptxas of a newer toolkit, or take a newer triton with its torch."
    ),
    "symptom.cudnn8-missing.cause": _(
        "A package was built for cuDNN 8; the environment has cuDNN 9, whose files have other names."
    ),
    "symptom.cudnn8-missing.fix": _(
        "Upgrade the package (ctranslate2: 4.5 or newer), or stay at torch 2.3 with cuDNN 8."
    ),
    "symptom.cudnn-version-clash.cause": _(
        "torch was built with cuDNN (%(compiled)s) and found (%(found)s): a cuDNN of the system comes first in LD_LIBRARY_PATH."
    ),
    "symptom.cudnn-version-clash.fix": _(
        "Take that directory out of LD_LIBRARY_PATH, or remove the system's cuDNN: torch brings its own."
    ),
    "symptom.nccl-symbol.cause": _("An older NCCL than torch was built with was loaded: it has no %(symbol)s."),
    "symptom.nccl-symbol.fix": _(
        "Keep one nvidia-nccl package, in the version that torch asks for, and clear LD_LIBRARY_PATH."
    ),
    "symptom.nvjitlink-symbol.cause": _(
        "A library of CUDA %(major)s.%(minor)s found an older libnvJitLink of the system before its own."
    ),
    "symptom.nvjitlink-symbol.fix": _(
        "Take /usr/local/cuda out of LD_LIBRARY_PATH, or put torch's nvidia/nvjitlink/lib before it."
    ),
    "symptom.libcudart-missing.cause": _(
        "A compiled extension was built for CUDA %(major)s; the environment has another major."
    ),
    "symptom.libcudart-missing.fix": _(
        "Install the extension for torch's CUDA, or torch for the extension's. Packages of cu12 and cu13 don't mix."
    ),
    "symptom.flash-attn-abi.cause": _("The flash-attn wheel was built for another torch, CUDA or C++ ABI."),
    "symptom.flash-attn-abi.fix": _(
        "Take the wheel whose name has your CUDA, torch and ABI, or build it (pip install --no-build-isolation)."
    ),
    "symptom.flash-attn-arch.cause": _("FlashAttention needs Ampere or newer; this GPU is older."),
    "symptom.flash-attn-arch.fix": _("Use PyTorch's own attention (attn_implementation=sdpa) or another GPU."),
    "symptom.bf16-unsupported.cause": _("The model's type is BF16, which Volta and Turing don't have."),
    "symptom.bf16-unsupported.fix": _("Run it in half precision (--dtype half)."),
    "symptom.vllm-cc-too-low.cause": _("vLLM does not support this GPU: it is Pascal or older."),
    "symptom.vllm-cc-too-low.fix": _("Take another GPU, or llama.cpp."),
    "symptom.torch-cpu-build.cause": _("The torch that is installed has no CUDA."),
    "symptom.torch-cpu-build.fix": _("Install it again from the wheel index of a CUDA tag."),
    "symptom.deepspeed-cuda-mismatch.cause": _(
        "DeepSpeed compiles its operators with the machine's nvcc, which is not of the CUDA that torch was built with."
    ),
    "symptom.deepspeed-cuda-mismatch.fix": _(
        "Take a development image of torch's CUDA; where only the minor differs, DS_SKIP_CUDA_CHECK=1 is enough."
    ),
    "symptom.bnb-no-binary.cause": _("This bitsandbytes has no build for torch's CUDA."),
    "symptom.bnb-no-binary.fix": _("Upgrade bitsandbytes, or set BNB_CUDA_VERSION to the nearest build."),
    "symptom.nvml-mismatch.cause": _(
        "The driver's packages were upgraded while the old module is loaded, or a driver was installed inside the container."
    ),
    "symptom.nvml-mismatch.fix": _(
        "Restart the machine, or load its modules anew; remove driver packages from the image."
    ),
    "symptom.nvml-unknown.cause": _("The container lost its GPU while it ran: systemd wrote its device rules anew."),
    "symptom.nvml-unknown.fix": _(
        "Restart the container; give it its devices explicitly (--device, or CDI) so that it stays."
    ),
    "symptom.fabric-802.cause": _(
        "The machine's NVSwitch has no running fabric manager, or one of another version than the driver."
    ),
    "symptom.fabric-802.fix": _("Only the provider can start nvidia-fabricmanager: report it and return the machine."),
    "symptom.rtx40-p2p.cause": _("The driver refuses peer-to-peer access between GeForce cards."),
    "symptom.rtx40-p2p.fix": _(
        "Set NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1 (accelerate launch does it by itself); in vLLM turn its own all-reduce off."
    ),
    "symptom.nccl-shm.cause": _(
        "Shared memory (/dev/shm) is full: a container gets 64 MiB of it if nobody asks for more."
    ),
    "symptom.nccl-shm.fix": _(
        "Start the container with --shm-size=16g or --ipc=host; NCCL_SHM_DISABLE=1 is the last resort, and slow."
    ),
    "symptom.nccl-timeout.cause": _(
        "A collective (%(operation)s, number %(sequence)s) waited %(timeout_ms)s ms for a process that is slow, dead, or somewhere else in the program."
    ),
    "symptom.nccl-timeout.fix": _(
        "Find the rank whose last completed number is the lowest and read its own error first: out of memory, a dead node, a bad link. Raise the timeout only for long preprocessing."
    ),
    "symptom.device-assert.cause": _(
        "An index is out of range on the GPU: a token beyond the vocabulary, a label beyond the classes, a position beyond the longest. Everything after it in this process fails."
    ),
    "symptom.device-assert.fix": _(
        "Run once with CUDA_LAUNCH_BLOCKING=1 or on the CPU to see where; resize the embeddings where tokens were added."
    ),
}
