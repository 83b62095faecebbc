"""A process that stands still before and after each of its system calls, so that others can look at what it does."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator

_TRACE_ME, _GO_TO_NEXT_CALL, _SET_OPTIONS = 0, 24, 0x4200
_END_WITH_TRACER = 0x100000
_libc = ctypes.CDLL(None, use_errno=True)


def _trace(request: int, pid: int, data: int = 0) -> None:
    if _libc.ptrace(request, pid, ctypes.c_void_p(0), ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), "this process may not be traced")


def stand_still() -> None:
    """Called by a child: from here on its parent leads it from call to call."""
    _trace(_TRACE_ME, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


def stops(pid: int) -> Iterator[None]:
    """Lead a child from call to call until it ends, which it must do without an error."""
    _, status = os.waitpid(pid, 0)
    assert os.WIFSTOPPED(status), status
    _trace(_SET_OPTIONS, pid, _END_WITH_TRACER)
    while True:
        _trace(_GO_TO_NEXT_CALL, pid)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            assert status == 0, status
            return
        yield
