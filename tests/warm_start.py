"""Starts commands without importing JAX and its friends again for each: about two seconds saved.

    python warm_start.py SOCKET_FD [MODULE ...]

imports the libraries and these modules, then makes of every request a forked process that runs a
module as `python -m MODULE` would. Of this project's `experiments` nothing else is imported before,
and no device is touched. `WarmStarter` is the other end: `start` returns something like a
`subprocess.Popen`.
"""

import contextlib
import json
import os
import pathlib
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).parents[1]
PRELOADED = (
    "flax.linen",
    "jax.experimental.multihost_utils",
    "matplotlib.figure",
    "ml_collections.config_flags",
    "optax",
    "orbax.checkpoint",
    "tensorboardX",
    "tqdm",
    "hvin_jax.planner_files",
    "hvin_jax.tasks.datasets",
)


def serve(connection):
    """Forks a process for each request; returns, in that process, the module that it is to run."""
    wake_up, on_child = socket.socketpair()
    on_child.setblocking(False)
    wake_up.setblocking(False)
    signal.set_wakeup_fd(on_child.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    for source in (connection, wake_up):
        selector.register(source, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is wake_up:
                with contextlib.suppress(BlockingIOError):
                    wake_up.recv(4096)
                _report_ended(connection)
                continue
            message, files, _, _ = socket.recv_fds(connection, 1 << 20, 2)
            if not message:
                sys.exit(0)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for source in (connection, wake_up, on_child):
                    source.close()
                return _become(json.loads(message), files)
            for file in files:
                os.close(file)
            connection.send(json.dumps({"started": pid}).encode())


def _report_ended(connection):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        connection.send(
            json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode()
        )


def _become(request, files):
    import jax

    for target, file in zip((1, 2), files, strict=True):
        os.dup2(file, target)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [os.getcwd(), *filter(None, path)]
    # What JAX reads from the environment when it is imported.
    for name, kind in (("compilation_cache_dir", str), ("platforms", str)):
        if value := os.environ.get(f"JAX_{name.upper()}"):
            jax.config.update(f"jax_{name}", kind(value))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    sys.argv = ["", *request["arguments"]]
    return request["module"]


class WarmStarter:
    """Starts modules in processes that have imported everything already."""

    def __init__(self, prefix=(), also=()):
        """Starts the server.

        Args:
          prefix: what to put before its command, for instance to be in another network.
          also: modules to preload besides.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection = ours
        self._server = subprocess.Popen(
            [*prefix, sys.executable, __file__, str(theirs.fileno()), *also],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        )
        theirs.close()
        self._codes = {}
        self._turn = threading.Lock()

    def start(self, module, arguments, *, folder, environment):
        """Starts `python -m module arguments` in a folder."""
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        request = {
            "module": module,
            "arguments": [str(x) for x in arguments],
            "folder": str(folder),
            "environment": environment,
        }
        socket.send_fds(self._connection, [json.dumps(request).encode()], [out_end, err_end])
        os.close(out_end)
        os.close(err_end)
        message = {}
        while "started" not in message:
            message = self._receive()
        return WarmProcess(self, message["started"], os.fdopen(out), os.fdopen(err))

    def code(self, pid):
        """The exit code of a process; None while it is running."""
        with self._turn:
            self._connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while pid not in self._codes:
                    self._receive()
            self._connection.setblocking(True)
        return self._codes.get(pid)

    def _receive(self):
        message = json.loads(self._connection.recv(1 << 16))
        if "ended" in message:
            self._codes[message["ended"]] = message["code"]
        return message

    def close(self):
        """Ends the server; what it has started goes on."""
        self._connection.close()
        self._server.wait()


class WarmProcess:
    """What `subprocess.Popen` would be, as far as tests need it."""

    def __init__(self, starter, pid, stdout, stderr):
        self._starter, self.pid, self.stdout, self.stderr = starter, pid, stdout, stderr
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            self.returncode = self._starter.code(self.pid)
        return self.returncode

    def wait(self, timeout=None):
        end = time.monotonic() + (timeout or float("inf"))
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.005)
        return self.returncode

    def communicate(self, timeout=None):
        texts = {}
        readers = [
            threading.Thread(target=lambda x=x: texts.update({x: x.read()}), daemon=True)
            for x in (self.stdout, self.stderr)
        ]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        said = texts[self.stdout], texts[self.stderr]
        self.stdout.close()
        self.stderr.close()
        return said

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    for name in (*PRELOADED, *sys.argv[2:]):
        __import__(name)
    module_to_run = serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module(module_to_run, run_name="__main__", alter_sys=True)
