"""What this machine can isolate: looked at, and then tried by really starting every backend."""

import os
import platform
import shutil
import subprocess
import sys

from sandmle.errors import ConfigError, SandboxError
from sandmle.records import Record
from sandmle.sandbox.backend import NEEDS_LINUX
from sandmle.sandbox.base import Capability
from sandmle.sandbox.cgroups import cgroup_kind
from sandmle.sandbox.config import BACKENDS, DEFAULT_BACKEND
from sandmle.sandbox.inner import landlock, seccomp
from sandmle.sandbox.settings import open_backend

_CGROUP_ENFORCES = (Capability.MEMORY, Capability.PROCESS_COUNT)
_TRY_USER_NAMESPACE = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)"
_ALLOW_USER_NAMESPACES = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
)

_NOTES = {"restricted": "weaker, and used only if named: keep hidden answers under another user or on another machine"}


class Finding(Record):
    """One thing of this machine that isolation rests on."""

    name: str
    is_there: bool
    detail: str
    remedy: str = ""
    """The command or setting that brings it; empty when it is there or nothing can be done."""


class BackendReport(Record):
    """How starting a backend went."""

    name: str
    works: bool
    capabilities: tuple[Capability, ...] = ()
    missing: tuple[Capability, ...] = ()
    note: str = ""
    """What who uses it must know."""
    reason: str = ""
    """Why it does not work."""


class MachineReport(Record):
    """Everything that ``sandmle doctor`` tells."""

    findings: tuple[Finding, ...]
    backends: tuple[BackendReport, ...]
    default: str = DEFAULT_BACKEND

    @property
    def default_works(self) -> bool:
        """Whether the default backend can be used."""
        return any(backend.works for backend in self.backends if backend.name == self.default)


def survey_machine() -> MachineReport:
    """Looks at this machine and starts every built-in backend once."""
    kernel = _kernel()
    if not kernel.is_there:
        backends = tuple(BackendReport(name=name, works=False, reason=NEEDS_LINUX) for name in BACKENDS)
        return MachineReport(findings=(kernel,), backends=backends)
    findings = (kernel, _landlock(), _seccomp(), _rights(), _cgroups(), _bubblewrap())
    return MachineReport(findings=findings, backends=tuple(_try_backend(name) for name in BACKENDS))


def _try_backend(name: str) -> BackendReport:
    try:
        with open_backend(name, workers=1) as sandbox:
            held = sandbox.capabilities
    except (SandboxError, ConfigError) as error:
        return BackendReport(name=name, works=False, reason=str(error))
    return BackendReport(
        name=name,
        works=True,
        capabilities=tuple(capability for capability in Capability if capability in held),
        missing=tuple(capability for capability in Capability if capability not in held),
        note=_NOTES.get(name, ""),
    )


def _kernel() -> Finding:
    is_linux = platform.system() == "Linux"
    remedy = "" if is_linux else NEEDS_LINUX
    detail = f"{platform.system()} {platform.release()} on {platform.machine()}"
    return Finding(name="kernel", is_there=is_linux, detail=detail, remedy=remedy)


def _landlock() -> Finding:
    version = landlock.abi_version()
    if version:
        enough = "" if version >= landlock.SCOPE_ABI else f"; the restricted sandbox needs {landlock.SCOPE_ABI}"
        return Finding(name="landlock", is_there=True, detail=f"version {version} of its interface{enough}")
    return Finding(
        name="landlock",
        is_there=False,
        detail="not offered by this kernel; the mount view alone confines files",
        remedy="Linux 5.13 or newer with landlock in its lsm= boot option",
    )


def _seccomp() -> Finding:
    try:
        seccomp.build()
    except OSError as error:
        return Finding(name="seccomp", is_there=False, detail=str(error.strerror), remedy="an x86-64 or arm64 machine")
    with open("/proc/self/status") as file:  # noqa: PTH123 - /proc has no size to read by
        has = any(line.startswith("Seccomp:") for line in file)
    detail = "system-call filters work" if has else "the kernel was built without system-call filters"
    return Finding(
        name="seccomp", is_there=has, detail=detail, remedy="" if has else "a kernel with CONFIG_SECCOMP_FILTER"
    )


def _rights() -> Finding:
    if os.geteuid() == 0:
        return Finding(name="namespaces", is_there=True, detail="made as root; user namespaces are not needed")
    done = subprocess.run([sys.executable, "-c", _TRY_USER_NAMESPACE], check=False)
    if done.returncode == 0:
        return Finding(name="namespaces", is_there=True, detail="made in unprivileged user namespaces")
    settings = [setting for path, bad, setting in _ALLOW_USER_NAMESPACES if _kernel_setting(path) == bad]
    remedy = f"sudo sysctl {settings[0]}" if settings else "root, or a container that allows user namespaces"
    return Finding(name="namespaces", is_there=False, detail="unprivileged user namespaces are refused", remedy=remedy)


def _kernel_setting(path: str) -> str:
    try:
        with open(f"/proc/sys/{path}") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def _cgroups() -> Finding:
    kind, reason = cgroup_kind()
    if kind == "none":
        remedy = "root, with a writable /sys/fs/cgroup (in a container: docker run --privileged --cgroupns=private)"
        return Finding(name="control groups", is_there=False, detail=reason, remedy=remedy)
    enforced = " and ".join(capability.value.replace("_", " ") for capability in _CGROUP_ENFORCES)
    return Finding(name="control groups", is_there=True, detail=f"cgroup {kind} bounds {enforced}, and counts CPU time")


def _bubblewrap() -> Finding:
    program = shutil.which("bwrap")
    if program is None:
        return Finding(
            name="bubblewrap",
            is_there=False,
            detail="not installed; only the bwrap backend needs it",
            remedy="sudo apt install bubblewrap",
        )
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return Finding(name="bubblewrap", is_there=True, detail=done.stdout.strip() or program)
