"""The system calls that Python's standard library does not offer, through libc."""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
# Found here, once, rather than in every fork.
_syscall, _prctl, _capset = _libc.syscall, _libc.prctl, _libc.capset
_unshare, _setns, _mount, _umount2 = _libc.unshare, _libc.setns, _libc.mount, _libc.umount2

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

ALL_BUT_PROCESSES = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_NODIRATIME = 0x800
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_RELATIME = 0x200000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
# NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock bit.
SECURE_ALL_LOCKED = 0x01 | 0x02 | 0x04 | 0x08 | 0x40 | 0x80

_NUMBERS = {
    "x86_64": {"pivot_root": 155, "keyctl": 250},
    "aarch64": {"pivot_root": 41, "keyctl": 219},
}
_MACHINE = os.uname().machine
_LAST_CAPABILITY = 63
_CAPABILITY_HEADER = (ctypes.c_uint32 * 2)(0x20080522, 0)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()
_CHUNK = 1 << 20


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """Makes a raw system call; pointers are given as ctypes objects.

    Raises:
        OSError: The call failed.
    """
    return _check(_syscall(ctypes.c_long(number), *arguments), f"system call {number}")


def read_all(fd: int) -> bytes:
    """Reads a descriptor to its end."""
    parts = []
    while part := os.read(fd, _CHUNK):
        parts.append(part)
    return b"".join(parts)


def put(path: str, data: bytes, flags: int = os.O_WRONLY) -> None:
    """Writes a file without Python's file objects, which cost more than the write in a fork.

    Raises:
        OSError: It cannot be opened or written.
    """
    fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def unshare(flags: int) -> None:
    """Moves this process into new namespaces (for CLONE_NEWPID: its future children)."""
    _check(_unshare(flags), "unshare")


def setns(fd: int, flags: int) -> None:
    """Joins a namespace by its descriptor, or those of a process, that the flags name, by the process's descriptor."""
    _check(_setns(fd, flags), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mounts; strings are host paths or options, empty ones are passed as NULL."""
    _check(
        _mount(
            source.encode() or None,
            target.encode(),
            kind.encode() or None,
            ctypes.c_ulong(flags),
            options.encode() or None,
        ),
        f"mount {kind or source} on {target}",
    )


def umount(target: str) -> None:
    """Detaches a mount at once; it vanishes when its last user is gone."""
    _check(_umount2(target.encode(), MNT_DETACH), f"umount {target}")


def bind(source: str, target: str, *, read_only: bool = True, extra: int = MS_NOSUID | MS_NODEV) -> None:
    """Makes a file or folder appear at another place.

    Flags that the source mount already carries are kept, since an unprivileged user namespace may not drop them.
    """
    mount(source, target, flags=MS_BIND | MS_REC)
    flags = MS_BIND | MS_REMOUNT | extra | (MS_RDONLY if read_only else 0)
    present = os.statvfs(target).f_flag
    for seen, flag in ((os.ST_RDONLY, MS_RDONLY), (os.ST_NOEXEC, MS_NOEXEC), (os.ST_NOATIME, MS_NOATIME)):
        if present & seen:
            flags |= flag
    if present & os.ST_RELATIME:
        flags |= MS_RELATIME
    if present & os.ST_NODIRATIME:
        flags |= MS_NODIRATIME
    mount("", target, flags=flags)


def pivot_root(new_root: str) -> None:
    """Makes a mount the root of this mount namespace and detaches the old one."""
    os.chdir(new_root)
    syscall(_number("pivot_root"), ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    umount(".")
    os.chdir("/")


def new_session_keyring() -> None:
    """Joins a fresh session keyring, so that no key of the caller is reachable (keyrings pass through namespaces)."""
    keyctl_join_session_keyring = 1
    try:
        syscall(_number("keyctl"), ctypes.c_int(keyctl_join_session_keyring), None)
    except OSError as error:
        # ENOSYS: a kernel without keys; EPERM and EDQUOT: a container's own filter already denies them.
        if error.errno not in (1, 38, 122):
            raise


def prctl(option: int, value: int = 0, extra: int = 0) -> None:
    """Calls prctl with up to two arguments."""
    zero = ctypes.c_ulong(0)
    _check(_prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(extra), zero, zero), f"prctl {option}")


def drop_bounding_set() -> None:
    """Gives up the right to ever gain a capability; needs CAP_SETPCAP, so it comes before changing the user."""
    if _prctl(PR_CAPBSET_READ, 0, 0, 0, 0) == 0:
        return  # the server has done it for all its forks
    # The one that is asked for comes last.
    for capability in range(_LAST_CAPABILITY, -1, -1):
        # EINVAL past the kernel's last capability.
        _prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)


def drop_capabilities() -> None:
    """Gives up every capability for good: ambient, permitted, effective and inheritable sets."""
    _prctl(PR_SET_SECUREBITS, ctypes.c_ulong(SECURE_ALL_LOCKED), 0, 0, 0)
    _prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), 0, 0, 0)
    _check(_capset(ctypes.byref(_CAPABILITY_HEADER), ctypes.byref(_NO_CAPABILITIES)), "capset")


def _number(name: str) -> int:
    if _MACHINE not in _NUMBERS:
        raise OSError(38, f"the sandbox does not know this machine's system calls ({_MACHINE})")
    return _NUMBERS[_MACHINE][name]
