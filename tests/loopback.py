"""Networks of their own for processes that listen, from which nobody outside can be reached."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest

_IS_ROOT = os.geteuid() == 0
# Gives the loopback of a new network a second address and a default route, as if there were a
# network beyond it, then becomes the command that follows.
_NEW_NETWORK = """
import ctypes, fcntl, os, socket, struct, sys

def address(text):
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))

control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(control, 0x8914, struct.pack("16sh22x", b"lo", 0x1))  # SIOCSIFFLAGS, IFF_UP
machine = struct.pack("16s16s8x", b"lo:1", address("192.0.2.1"))
fcntl.ioctl(control, 0x8916, machine)  # SIOCSIFADDR
device = ctypes.create_string_buffer(b"lo")
route = [0, *3 * [address("0.0.0.0")], 0x1, 0, 0, 0, 0, ctypes.addressof(device), 0, 0, 0]
fcntl.ioctl(control, 0x890B, struct.pack("L16s16s16sHhLPhPLLH", *route))  # SIOCADDRT
os.execv(sys.argv[1], sys.argv[1:])
"""
# Put before a command, it runs in a new network.
ISOLATED = ["unshare", "-n" if _IS_ROOT else "-rn", sys.executable, "-c", _NEW_NETWORK]


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
