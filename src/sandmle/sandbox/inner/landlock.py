"""Landlock: the kernel's own access rules for one process and its children, on top of the mount view."""

import ctypes
import functools
import os

from sandmle.sandbox.inner import kernel

# Landlock's system calls have the same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15

_READ = EXECUTE | READ_FILE | READ_DIR
_WRITE = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)
# What each ABI version added.
_FS_BY_ABI = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
_NET_ABI, _NET_ALL = 4, 0b11  # TCP bind and connect
SCOPE_ABI, _SCOPE_ALL = 6, 0b11  # abstract unix sockets, signals


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


@functools.cache
def abi_version() -> int:
    """Returns the kernel's Landlock ABI version, 0 where there is none."""
    try:
        return kernel.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def restrict(
    readable: tuple[str, ...], writable: tuple[str, ...], *, listable: tuple[str, ...] = (), without: int = 0
) -> None:
    """Confines this process: reads below ``readable``, writes only below ``writable``, no TCP, no outside signals.

    Does nothing where the kernel has no Landlock; the caller declares capabilities accordingly.

    Args:
        readable: Files, or folders with all below them.
        writable: The same, to be read and written.
        listable: Folders below which names may be listed, and no more.
        without: Rights that are not given anywhere.

    Raises:
        OSError: The kernel has Landlock but refused a rule.
    """
    abi = abi_version()
    if abi == 0:
        return
    handled = sum(bits for version, bits in _FS_BY_ABI.items() if version <= abi)
    attr = _RulesetAttr(handled, _NET_ALL if abi >= _NET_ABI else 0, _SCOPE_ALL if abi >= SCOPE_ABI else 0)
    size = 8 if abi < _NET_ABI else 16 if abi < SCOPE_ABI else 24
    ruleset = kernel.syscall(_CREATE_RULESET, ctypes.byref(attr), ctypes.c_size_t(size), ctypes.c_uint32(0))
    given = handled & ~without
    try:
        for paths, access in ((readable, _READ), (writable, _READ | _WRITE), (listable, READ_DIR)):
            for path in paths:
                _allow(ruleset, path, access & given)
        kernel.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return  # what this user cannot reach needs no rule
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - pathlib costs an import in the forked child
            access &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
        rule = _PathBeneathAttr(access, fd)
        kernel.syscall(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(fd)
