"""A handful of quick attacks at start-up: a sandbox that does not hold what it claims refuses to start."""

import os
import socket
import tempfile
from pathlib import Path

from sandmle.errors import SandboxUnavailableError
from sandmle.records import ExecStatus, Limits
from sandmle.sandbox.base import Capability, ExecRequest, Sandbox

_CANARY = "sandmle-canary"
_PROBE = """
import ctypes, os, socket
broken = []
def held(name, attack):
    try:
        result = attack()
    except Exception:
        return
    if result:
        broken.append(name)
libc = ctypes.CDLL(None, use_errno=True)
secret = {secret!r}
held("reads a host file", lambda: open(secret).read())
held("sees the host's files", lambda: {names_hidden} and os.path.exists(os.path.dirname(secret)))
held("writes to the libraries", lambda: open(os.__file__, "a") and True)
held("writes to the inputs", lambda: open("input/planted", "w") and True)
held("opens a network socket", lambda: socket.socket(socket.AF_INET) and True)
held("opens a vsock", lambda: socket.socket(40) and True)
held("keeps root", lambda: os.getuid() == 0 or os.geteuid() == 0)
held("has capabilities", lambda: any(
    int(line.split()[1], 16) for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm", "CapInh"))))
held("traces processes", lambda: libc.ptrace(0, 0, 0, 0) == 0)
held("makes a user namespace", lambda: libc.unshare(0x10000000) == 0)
held("mounts", lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)
held("reads process 1", lambda: open("/proc/1/environ", "rb").read())
held("reads its parent", lambda: open(f"/proc/{{os.getppid()}}/environ", "rb").read())
held("signals the caller", lambda: os.getppid() != 1 and os.kill({caller}, 0) is None)
held("opens a unix socket of the host", lambda: socket.socket(1).connect({server!r}) is None)
held("sees other processes", lambda: [
    name for name in os.listdir("/proc") if name.isdigit() and name not in ("1", str(os.getpid()))])
held("inherits descriptors", lambda: [fd for fd in os.listdir("/proc/self/fd")
                                      if int(fd) > 3 and os.path.exists("/proc/self/fd/" + fd)])
held("imports the author", lambda: __import__("sandmle.authoring") and True)
held("inherits the environment", lambda: os.environ.get({canary!r}))
print("broken:" + ";".join(broken))
"""


def run_self_test(sandbox: Sandbox) -> None:
    """Runs the attacks.

    Args:
        sandbox: A backend that can already execute.

    Raises:
        SandboxUnavailableError: An attack succeeded, or the probe did not run.
    """
    with tempfile.TemporaryDirectory(prefix=f"sandmle-{os.getpid()}-") as name:
        folder = Path(name)
        workspace, inputs = folder / "workspace", folder / "inputs"
        workspace.mkdir()
        inputs.mkdir()
        secret = folder / "secret"
        secret.write_text(_CANARY)
        server = folder / "socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(server))
            listener.listen()
            server.chmod(0o666)
            code = _PROBE.format(
                secret=str(secret),
                canary=_CANARY,
                names_hidden=Capability.FILESYSTEM in sandbox.capabilities,
                caller=os.getpid(),
                server=str(server),
            )
            limits = Limits(wall_s=20, memory_mb=1024)
            result = sandbox.execute(ExecRequest(code, workspace, inputs, limits))
    last = result.stdout.strip().splitlines()[-1:] or [""]
    if result.status is not ExecStatus.OK or not last[0].startswith("broken:"):
        raise SandboxUnavailableError(
            f"the {sandbox.name} sandbox failed its self-test: {result.status} {result.stderr.strip()[-300:]}"
        )
    broken = last[0].removeprefix("broken:")
    if broken:
        raise SandboxUnavailableError(f"the {sandbox.name} sandbox does not hold: code {broken.replace(';', ', ')}")
