"""A seccomp filter, assembled in plain Python: system calls that ML code has no use for are denied.

It is a list of denials, closed at the top: calls newer than this list, calls of another ABI (32-bit, x32) and all
socket families but unix are denied as well.
"""

import ctypes
import functools
import platform
import struct

from sandmle.sandbox.inner import kernel

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_PRETEND, _EPERM, _ENOMEM, _ENOSYS, _ENOTSUP, _EAFNOSUPPORT = 0, 1, 12, 38, 95, 97

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_NEWEST = 462  # mseal; what came later is denied

# Numbers as (x86_64, aarch64); None where the architecture lacks the call.
_DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "perf_event_open": (298, 241),
    # namespaces, mounts and roots
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "listmount": (458, 458), "statmount": (457, 457), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "mknod": (133, None), "mknodat": (259, 33), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    # the kernel itself
    "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, None), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "syslog": (103, 116), "personality": (135, 92),
    "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "lookup_dcookie": (212, 18),
    "vhangup": (153, 58), "nfsservctl": (180, 42), "uselib": (134, None), "ustat": (136, None),
    "sysfs": (139, None), "_sysctl": (156, None), "seccomp": (317, 277),
    # keys, clocks, names, users
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145),
    "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "setgroups": (116, 159), "capset": (126, 91),
    # memory and queues that no limit of the sandbox counts
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "memfd_secret": (447, 447), "mlockall": (151, 230), "vmsplice": (278, 75),
    # tables of the whole machine
    "io_setup": (206, 0),
    # what other processes read and open
    "cachestat": (451, 451), "inotify_init": (253, None), "inotify_init1": (294, 26),
}  # fmt: skip
# What a fork of the server must still do before it is the code. To code they give nothing: it has no capability.
_OF_THE_FORK = frozenset({"setns", "setgroups", "setresgid", "setresuid", "capset"})
# What one process may do to another one of its user, or to that user's files, whatever Landlock says.
_SHARED_USER: dict[str, tuple[int | None, int | None, int]] = {
    # copying a file sets its mode and times: to say no would fail honest code, to do it would reach any file
    "chmod": (90, None, _PRETEND), "fchmod": (91, 52, _PRETEND), "fchmodat": (268, 53, _PRETEND),
    "fchmodat2": (452, 452, _PRETEND), "utime": (132, None, _PRETEND), "utimes": (235, None, _PRETEND),
    "futimesat": (261, None, _PRETEND), "utimensat": (280, 88, _PRETEND),
    "chown": (92, None, _EPERM), "fchown": (93, 55, _EPERM), "lchown": (94, None, _EPERM),
    "fchownat": (260, 54, _EPERM), "setxattr": (188, 5, _ENOTSUP), "lsetxattr": (189, 6, _ENOTSUP),
    "fsetxattr": (190, 7, _ENOTSUP), "removexattr": (197, 14, _ENOTSUP), "lremovexattr": (198, 15, _ENOTSUP),
    "fremovexattr": (199, 16, _ENOTSUP),
    # no network namespace: no socket at all but connected pairs, which cannot be given another address
    "socket": (41, 198, _EAFNOSUPPORT), "bind": (49, 200, _EPERM), "connect": (42, 203, _EPERM),
    "getxattr": (191, 8, _ENOTSUP), "lgetxattr": (192, 9, _ENOTSUP), "fgetxattr": (193, 10, _ENOTSUP),
    "listxattr": (194, 11, _ENOTSUP), "llistxattr": (195, 12, _ENOTSUP), "flistxattr": (196, 13, _ENOTSUP),
    # memory that no limit of one process counts
    "memfd_create": (319, 279, _ENOSYS),
}  # fmt: skip
# Calls that name a process: which of their arguments must be 0, meaning the caller itself.
_OWN_PROCESS_ONLY: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "setpriority": (141, 140, (0, 1)), "sched_setaffinity": (203, 122, (0,)),
    "sched_setscheduler": (144, 119, (0,)), "sched_setparam": (142, 118, (0,)), "sched_setattr": (314, 274, (0,)),
    "ioprio_set": (251, 30, (1,)),
}  # fmt: skip
# Limits of another process: a low one would end process 1, which looks like a fault of the sandbox's own.
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
# sync and syncfs: they flush disks of the machine, in a wait that no signal ends.
_FLUSH = ((162, 81), (306, 267))
_MMAP, _MEMFD = {"x86_64": 9, "aarch64": 222}, {"x86_64": 319, "aarch64": 279}
_MAP_HUGETLB, _MFD_HUGETLB = 0x40000, 0x4
_SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_LEASE, _NOTIFY = 1024, 1026
_CLONE = {"x86_64": (56, 435), "aarch64": (220, 435)}
_SOCKET = {"x86_64": (41, 53), "aarch64": (198, 199)}
_IOCTL = {"x86_64": 16, "aarch64": 29}
_PRCTL = {"x86_64": 157, "aarch64": 167}
# Every CLONE_NEW*, and CLONE_PARENT: a sibling's end is told to the server, and its process 1 would wait for that.
_NAMESPACE_FLAGS = 0x7E028080
_AF_UNIX = 1
_TERMINAL_IOCTLS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_PRCTL_DUMPABLE = 4

_LD_NR, _LD_ARCH = 0, 4
_BPF_LD, _BPF_JEQ, _BPF_JGE, _BPF_JSET, _BPF_RET = 0x20, 0x15, 0x35, 0x45, 0x06


class _SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class _Program:
    """A filter that is being put together, one instruction of four numbers after the other."""

    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, int, int]] = []

    def deny_if(self, test: int, value: int, code: int) -> None:
        """Denies when the loaded word passes a test."""
        self.instructions.append((test, 0, 1, value))
        self.instructions.append((_BPF_RET, 0, 0, _ERRNO | code))

    def check(self, number: int, *checks: tuple[int, int, int, int, bool]) -> None:
        """Decides on one call by the low halves of its arguments: ``(index, test, value, errno, deny_when_true)``."""
        body: list[tuple[int, int, int, int]] = []
        for index, test, value, code, deny_when_true in checks:
            body.append((_BPF_LD, 0, 0, 16 + 8 * index))
            body.append((test, 0, 1, value) if deny_when_true else (test, 1, 0, value))
            body.append((_BPF_RET, 0, 0, _ERRNO | code))
        body.append((_BPF_RET, 0, 0, _ALLOW))
        self.instructions.append((_BPF_JEQ, 0, len(body), number))
        self.instructions.extend(body)

    def check_unless(self, number: int, first: int, allowed: tuple[int, int], code: int) -> None:
        """Denies one call if its first argument is ``first``, unless another one is as ``(index, value)`` says."""
        index, value = allowed
        self.instructions += [
            (_BPF_JEQ, 0, 6, number),
            (_BPF_LD, 0, 0, 16),
            (_BPF_JEQ, 0, 3, first),
            (_BPF_LD, 0, 0, 16 + 8 * index),
            (_BPF_JEQ, 1, 0, value),
            (_BPF_RET, 0, 0, _ERRNO | code),
            (_BPF_RET, 0, 0, _ALLOW),
        ]


@functools.cache
def build(machine: str | None = None, *, shared_user: bool = False, for_server: bool = False) -> bytes:
    """Returns the filter program for this machine as raw BPF; made once per process and its forks.

    Args:
        machine: The architecture; this one by default.
        shared_user: The code runs as the user of other processes, in their namespaces: also deny what would reach
            them or their files, and every socket but connected pairs.
        for_server: For a server whose forks inherit it: leaves out what they need to become the code, and for which
            code itself has no right.

    Raises:
        OSError: The architecture is not known.
    """
    machine = machine or platform.machine()
    if machine not in _ARCH:
        raise OSError(_ENOSYS, f"the sandbox has no system-call filter for {machine}")
    column = 0 if machine == "x86_64" else 1
    program = _Program()
    program.instructions.append((_BPF_LD, 0, 0, _LD_ARCH))
    program.instructions.append((_BPF_JEQ, 1, 0, _ARCH[machine]))
    program.instructions.append((_BPF_RET, 0, 0, _ERRNO | _ENOSYS))
    program.instructions.append((_BPF_LD, 0, 0, _LD_NR))
    # x32 calls carry a high bit, so they fall under this too.
    program.deny_if(_BPF_JGE, _NEWEST + 1, _ENOSYS)
    clone, clone3 = _CLONE[machine]
    program.deny_if(_BPF_JEQ, clone3, _ENOSYS)  # its flags are behind a pointer; libc falls back to clone
    for name, numbers in _DENIED.items():
        number = numbers[column]
        if number is not None and not (for_server and name in _OF_THE_FORK):
            program.deny_if(_BPF_JEQ, number, _EPERM)
    if shared_user:
        _deny_reaching_others(program, machine, column)
    program.check(clone, (0, _BPF_JSET, _NAMESPACE_FLAGS, _EPERM, True))
    for number in _SOCKET[machine]:
        program.check(number, (0, _BPF_JEQ, _AF_UNIX, _EAFNOSUPPORT, False))
    program.check(_IOCTL[machine], *((1, _BPF_JEQ, request, _EPERM, True) for request in _TERMINAL_IOCTLS))
    program.check(_FCNTL[machine], *((1, _BPF_JEQ, command, _EPERM, True) for command in (_LEASE, _NOTIFY)))
    for number in (numbers[column] for numbers in _FLUSH):
        program.deny_if(_BPF_JEQ, number, _PRETEND)
    # Huge pages of the machine's pool: no control group of the sandbox counts them.
    program.check(_MMAP[machine], (3, _BPF_JSET, _MAP_HUGETLB, _ENOMEM, True))
    program.check(_MEMFD[machine], (1, _BPF_JSET, _MFD_HUGETLB, _ENOMEM, True))
    program.check(_PRLIMIT[machine], (0, _BPF_JEQ, 0, _EPERM, False))
    # Dumpable it may be made, not the opposite: that would hide a process from its own /proc.
    program.check_unless(_PRCTL[machine], _PRCTL_DUMPABLE, (1, 1), _EPERM)
    program.instructions.append((_BPF_RET, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program.instructions)


def _deny_reaching_others(program: _Program, machine: str, column: int) -> None:
    for *numbers, code in _SHARED_USER.values():
        number = numbers[column]
        if number is not None:
            program.deny_if(_BPF_JEQ, number, code)
    for name, (*known, arguments) in _OWN_PROCESS_ONLY.items():
        checks = [(index, _BPF_JEQ, 0, _EPERM, False) for index in arguments]
        if name == "ioprio_set":
            checks.append((0, _BPF_JEQ, 1, _EPERM, False))  # a process, not a group or a user
        program.check(known[column], *checks)
    program.check(
        _SOCKETPAIR[machine],
        (0, _BPF_JEQ, _AF_UNIX, _EAFNOSUPPORT, False),
        # Stream (1) and sequenced packets (5) stay connected; datagrams (2, and 3 taken for it) can be sent anywhere.
        (1, _BPF_JSET, 2, _EAFNOSUPPORT, True),
        (1, _BPF_JSET, 1, _EAFNOSUPPORT, False),
    )


def install(program: bytes) -> None:
    """Puts a filter on this process and its children, for good. Needs no_new_privs.

    Raises:
        OSError: The kernel refused the filter.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = _SockFprog(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    kernel.prctl(kernel.PR_SET_SECCOMP, kernel.SECCOMP_MODE_FILTER, ctypes.addressof(fprog))
