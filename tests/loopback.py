"""Networks of their own for processes that listen, in which there is nothing but loopback."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest

_IS_ROOT = os.geteuid() == 0
# Brings the loopback of a new network up, then becomes the command that follows.
_LOOPBACK_ONLY = """
import fcntl, os, socket, struct, sys
flags = struct.pack("16sh22x", b"lo", 0x1)  # IFF_UP
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, flags)  # SIOCSIFFLAGS
os.execv(sys.argv[1], sys.argv[1:])
"""
# Put before a command, it runs in a new network.
ISOLATED = ["unshare", "-n" if _IS_ROOT else "-rn", sys.executable, "-c", _LOOPBACK_ONLY]


def _isolation_fails():
    if shutil.which("unshare") is None:
        return True
    return subprocess.run([*ISOLATED, "/bin/true"], capture_output=True, check=False).returncode


needs_isolation = pytest.mark.skipif(
    bool(_isolation_fails()), reason="no network namespace of its own can be made here (unshare -n)"
)


@contextlib.contextmanager
def shared_network():
    """Yields what to put before several commands so that they run in one new network."""
    wait = "import sys; print('up', flush=True); sys.stdin.read()"
    keeper = subprocess.Popen(
        [*ISOLATED, sys.executable, "-c", wait],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert keeper.stdout.readline() == "up\n"
        user = [] if _IS_ROOT else ["--user", "--preserve-credentials"]
        yield ["nsenter", f"--target={keeper.pid}", "--net", *user]
    finally:
        keeper.communicate()
