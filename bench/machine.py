"""Where the figures were taken: what a reader needs to compare them with his own."""

import os
import platform
import subprocess
from pathlib import Path


def describe(work: Path) -> dict[str, str]:
    """Processor, memory, kernel, file system and interpreter, as far as the system tells."""
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{pages * page_bytes / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _file_system(work),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(work: Path) -> str:
    # df knows ext4 by name; `stat -f` calls it ext2/ext3.
    command = ["df", "--output=fstype", str(work)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.split()[-1]
