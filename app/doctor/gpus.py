"""GPUs: can torch use those that the machine has?"""

from __future__ import annotations

import os
import re
import sys

from glpilot.app.doctor.report import Finding, Report, show_bytes


def probe(report: Report) -> None:
    """Says nothing without torch, which is reported as a package."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    devices = [name for name in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", name)]
    available = torch.cuda.is_available()
    report.findings += check_gpu(len(devices), available)
    report.facts["GPUs"] = "none"
    if available:
        properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        report.facts["GPUs"] = ", ".join(f"{gpu.name} ({show_bytes(gpu.total_memory)})" for gpu in properties)
        if "NCCL" not in report.facts.get("Horovod operations", "NCCL"):
            report.facts["GPUs"] += "; without NCCL, Horovod copies through host memory"


def check_gpu(num_devices: int, cuda_available: bool) -> list[Finding]:
    """`num_devices`: GPUs that the operating system shows."""
    if num_devices == 0 or cuda_available:
        return []
    return [
        Finding(
            f"the system shows {num_devices} GPU(s), and torch can use none",
            "check nvidia-smi, and CUDA_VISIBLE_DEVICES; the driver must support CUDA 12.1",
        )
    ]
