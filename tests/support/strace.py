"""A Python process that strace watches: what it wrote, and which sockets it opened."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import eunoe

_MAKERS = ("creat", "mkdir", "mkdirat", "mknod", "mknodat", "link", "linkat", "symlink", "symlinkat", "renameat2")
_CALLS = ",".join(("network", "open", "openat", "rename", "renameat", *_MAKERS))
_WRITES = re.compile(rf"O_CREAT|O_WRONLY|O_RDWR|^(?:rename|renameat|{'|'.join(_MAKERS)})\(")
_DEVICES = re.compile(r'"/dev/(?:null|tty|shm/eunoe-[^"]*)"|"/proc/self/')
"""What may be opened for writing: nothing of it stays, or it is the folder of a store in memory."""
_TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Watch:
    """What a process did, as lines of strace."""

    output: str
    files: list[str]
    """What lies in its home and temporary folders when it has ended."""
    writes: list[str]
    """Files that it opened for writing anywhere but in its working folder, even if it removed them."""
    sockets: list[str]
    """Every socket it opened, of whatever family. A pair that the process speaks to itself by is none."""
    sends: list[str]
    """Every call that names the address of another."""


def watch(code: str, folder: Path, *arguments: str, **environment: str) -> Watch:
    """Run Python code with an empty home, in an environment that has nothing else in it.

    The test fails if strace is missing or may not look.
    """
    strace = shutil.which("strace")
    if strace is None:
        pytest.fail("strace is not installed: apt-get install strace (make setup does)")
    places = {name: folder / name.lower() for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    places |= {name: folder / name.lower() for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")}
    work, log = folder / "work", folder / "strace.log"
    for place in (*places.values(), work):
        place.mkdir(parents=True, exist_ok=True)
    # Nothing of the surroundings: some libraries keep quiet where they see a build server.
    own = {name: str(place) for name, place in places.items()} | environment
    own |= {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(Path(eunoe.__file__).parents[1])}
    command = [strace, "-f", "-qq", "-s", "256", "-o", str(log), "-e", f"trace={_CALLS}", sys.executable, "-c", code]
    done = subprocess.run(
        [*command, *arguments], cwd=work, env=own, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
    )
    logged = log.read_text(errors="replace").splitlines() if log.exists() else []
    lines = [line.partition(" ")[2].strip() for line in logged]  # each begins with the number of its process
    if not any(line.startswith(("open", "openat")) for line in lines):
        pytest.fail(f"strace could not look at the process (is ptrace forbidden in this container?): {done.stderr}")
    assert done.returncode == 0, done.stderr
    calls = [line for line in lines if not re.search(r"= -1 E(?:NOENT|EXIST|ACCES|PERM|ISDIR)\b", line)]
    return Watch(
        done.stdout,
        sorted(str(path.relative_to(folder)) for place in places.values() for path in place.rglob("*")),
        [line for line in calls if _WRITES.search(line) and not _DEVICES.search(line) and f'"{work}/' not in line],
        [line for line in lines if line.startswith("socket(")],
        [line for line in lines if re.match(r"(?:connect|send\w*)\(.*sa_family=", line)],
    )
