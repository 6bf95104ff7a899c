"""What hostile code must not see, reach or become."""

import os
import secrets
from pathlib import Path

import pytest

from sandmle.sandbox.base import Capability, Sandbox
from sandmle.sandbox.testing.helpers import assert_held, needs, output, run


class ConfinementTests:
    """Attacks on files, processes, the network and rights."""

    def test_a01_a02_s16_hidden_files_are_nowhere(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Answers beside the inputs, and files of the host's temporary and home folders, are in no visible folder."""
        needs(sandbox, Capability.FILE_CONTENTS)
        names_hidden = Capability.FILESYSTEM in sandbox.capabilities
        name = f"answers-{secrets.token_hex(6)}.csv"
        inputs, private = tmp_path / "task" / "public", tmp_path / "task" / "private"
        for folder in (inputs, private):
            folder.mkdir(parents=True)
        inputs.chmod(0o755)
        (private / name).write_text("id,y\n")
        attacks = f"""
            for path in ({str(private / name)!r}, "input/../../private/{name}", "/proc/1/root{private / name}",
                         "/proc/self/cwd/../..{private / name}", "/proc/thread-self/root{private / name}"):
                held("opens " + path, lambda: open(path).read())
            libraries = {{"/usr", "/proc", sys.prefix, sys.base_prefix}}
            def walk():
                for folder, folders, names in os.walk("/"):
                    folders[:] = [name for name in folders if os.path.join(folder, name) not in libraries]
                    if {name!r} in names:
                        return folder
            held("walks to the answers", walk)
            held("sees the task's folder", lambda: {names_hidden} and os.path.exists({str(tmp_path)!r}))
        """
        assert_held(sandbox, tmp_path, attacks, inputs=inputs)

    def test_a04_other_processes_memory(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Process 1 of the sandbox can be neither read nor traced."""
        needs(sandbox, Capability.PROCESS_CONTENTS)
        attacks = """
            import resource
            for pid in {1, os.getppid() or 1}:
                held(f"limits {pid}", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
                for name in ("environ", "mem", "maps", "stack", "auxv"):
                    held(f"reads {name} of {pid}", lambda: open(f"/proc/{pid}/{name}", "rb").read(100))
                for name in ("root", "cwd", "exe", "fd", "map_files"):
                    held(f"follows {name} of {pid}", lambda: os.listdir(f"/proc/{pid}/{name}") or True)
                held(f"attaches to {pid}", lambda: libc.ptrace(16, pid, 0, 0) == 0)
                held(f"seizes {pid}", lambda: libc.ptrace(0x4206, pid, 0, 0) == 0)
                held(f"takes descriptors of {pid}",
                     lambda: libc.syscall(438, os.pidfd_open(pid), 0, 0) >= 0)
            class Span(ctypes.Structure):
                _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))
            buffer = ctypes.create_string_buffer(8)
            near, far = Span(ctypes.addressof(buffer), 8), Span(id(held), 8)
            held("process_vm_readv", lambda: libc.process_vm_readv(
                os.getppid(), ctypes.byref(near), 1, ctypes.byref(far), 1, 0) > 0)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a05_no_descriptor_is_inherited(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Only the standard three are open, and none of them is a socket of the sandbox."""
        code = """
            import os, stat
            kinds = [stat.S_IFMT(os.fstat(fd).st_mode) for fd in range(3)]
            print(kinds[0] == stat.S_IFCHR, kinds[1:] == [stat.S_IFIFO] * 2)
            listing = os.listdir("/proc/self/fd")
            print(sorted(fd for fd in listing if os.path.exists("/proc/self/fd/" + fd)))
        """
        assert output(sandbox, tmp_path, code) == "True True\n['0', '1', '2']\n"

    def test_a07_frames_and_modules_hold_nothing_of_others(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """All objects that Python can reach are searched for another request's code, seed and paths."""
        token = f"token{secrets.token_hex(8)}"
        output(sandbox, tmp_path / token, f"secret = '{token}'", rng_seed=1)
        half = len(token) // 2
        code = f"""
            import gc, sys
            wanted = "".join([{token[:half]!r}, {token[half:]!r}])
            found = set()
            def look(thing, where):
                text = thing.decode("latin1") if isinstance(thing, bytes) else thing
                if isinstance(text, str) and wanted in text:
                    found.add(where)
            frame = sys._getframe()
            while frame:
                for name, value in list(frame.f_locals.items()):
                    if name not in ("wanted", "found"):
                        look(value, name)
                        look(repr(value)[:100000], name)
                frame = frame.f_back
            for thing in gc.get_objects():
                if isinstance(thing, dict):
                    for key, value in list(thing.items()):
                        if key != "wanted":
                            look(value, key)
                elif isinstance(thing, (list, tuple)):
                    for value in thing:
                        look(value, type(thing))
            print(sorted(map(str, found)))
        """
        assert output(sandbox, tmp_path / "other", code) == "[]\n"

    def test_a08_files_by_handle(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Files cannot be opened by a guessed handle."""
        needs(sandbox, Capability.SYSCALLS)
        attacks = """
            handle = ctypes.create_string_buffer(128)
            root = os.open(".", os.O_RDONLY)
            mount = ctypes.byref(ctypes.c_int())
            held("name_to_handle_at", lambda: libc.name_to_handle_at(root, b".", handle, mount, 0) == 0)
            held("open_by_handle_at", lambda: libc.open_by_handle_at(root, handle, 0) >= 0)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a10_devices(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """There are no disks, no kernel memory, no kernel log; kernel settings cannot be written."""
        attacks = """
            for path in ("/dev/vda", "/dev/sda", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/net/tun",
                         "/proc/kcore", "/proc/kmsg", "/proc/kallsyms-", "/proc/sysrq-trigger"):
                held("opens " + path, lambda: os.open(path, os.O_RDWR) >= 0)
                held("reads " + path, lambda: os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 10))
            for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches"):
                held("writes " + path, lambda: open(path, "w") and True)
            held("finds sysfs", lambda: os.listdir("/sys"))
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a13_a14_planted_modules_are_not_imported(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Modules in the workspace, HOME and the temporary folder shadow nothing: now, in a child, or the next time."""
        plant = """
            import os, subprocess, sys
            import tempfile
            for place in (".", os.path.expanduser("~"), tempfile.gettempdir()):
                for name in ("json", "numpy", "pandas", "sklearn", "sitecustomize", "usercustomize", "colorsys"):
                    open(f"{place}/{name}.py", "w").write("print('PLANTED')")
            site = os.path.expanduser(f"~/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages")
            os.makedirs(site)
            open(f"{site}/evil.pth", "w").write("import os; print('PLANTED')")
            import colorsys, json
            subprocess.run([sys.executable, "-c", "import colorsys, json"])
        """
        assert "PLANTED" not in output(sandbox, tmp_path, plant)
        again = """
            import importlib, subprocess, sys
            for name in ("json", "numpy", "pandas", "colorsys"):
                try:
                    importlib.import_module(name)
                except ImportError:
                    pass
            subprocess.run([sys.executable, "-m", "colorsys"])
        """
        assert "PLANTED" not in output(sandbox, tmp_path, again)

    def test_a13_libraries_cannot_be_changed(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """The standard library, the packages and their start-up files are read-only."""
        needs(sandbox, Capability.FILE_CONTENTS)
        attacks = """
            import site, sysconfig
            folders = {*sysconfig.get_paths().values(), *site.getsitepackages(), sys.prefix}
            folders |= {"/usr/lib", "/etc", "/", "/dev"}
            for folder in folders:
                for name in ("planted.pth", "sitecustomize.py"):
                    held(f"writes {folder}/{name}", lambda: open(f"{folder}/{name}", "w") and True)
            held("changes a module", lambda: open(os.__file__, "a") and True)
            held("removes a module", lambda: os.remove(os.__file__) or True)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_this_package_cannot_be_imported(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Code that could import the author could make the task again and read its answers."""
        attacks = """
            import glob, importlib
            for name in ("errors", "authoring", "authoring.procedural", "grading", "tasks", "records", "sandbox"):
                held(f"imports sandmle.{name}", lambda: importlib.import_module(f"sandmle.{name}"))
                held(f"imports it in a child: {name}", lambda: subprocess.run(
                    [sys.executable, "-c", f"import sandmle.{name}"], stderr=subprocess.DEVNULL).returncode == 0)
            folders = set(sys.path)
            for prefix in (sys.prefix, sys.base_prefix, "/usr", "/usr/local"):
                folders.update(glob.glob(f"{prefix}/lib/*/*-packages"))
            for folder in folders:
                held("reads its source", lambda: [path for path in glob.glob(f"{folder}/*sandmle*/**", recursive=True)
                                                  if os.path.isfile(path) and open(path).read()])
                held("finds a way to it", lambda: [path for path in glob.glob(f"{folder}/*sandmle*")
                                                   if os.path.isfile(path) and open(path).read()])
                held("finds its source", lambda: NAMES_HIDDEN and glob.glob(f"{folder}/*sandmle*/*"))
            held("finds it loaded", lambda: [name for name in sys.modules if name.startswith("sandmle")])
        """
        names_hidden = str(Capability.FILESYSTEM in sandbox.capabilities)
        assert_held(sandbox, tmp_path, attacks.replace("NAMES_HIDDEN", names_hidden))

    def test_s14_environment_is_an_allow_list(
        self, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No variable of the caller is visible, in the environment or in any readable /proc file."""
        secret = f"secret-{secrets.token_hex(8)}"
        for name in ("OPENAI_API_KEY", "HF_TOKEN", "RANDOM_NEW_SECRET"):
            monkeypatch.setenv(name, secret)
        attacks = f"""
            import glob
            secret = "secret-" + {secret.removeprefix("secret-")!r}
            held("inherits it", lambda: [name for name, value in os.environ.items() if secret in value])
            for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
                held("reads it in " + path, lambda: secret.encode() in open(path, "rb").read())
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_only_own_processes_are_seen(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """The host's processes are not listed and cannot be signalled."""
        needs(sandbox, Capability.PROCESS_CONTENTS)
        attacks = f"""
            held("lists others", lambda: [name for name in os.listdir("/proc")
                                          if name.isdigit() and int(name) not in (1, os.getpid())])
            held("signals the tests", lambda: os.kill({os.getpid()}, 0) is None)
        """
        if os.getpid() > 100:
            assert_held(sandbox, tmp_path, attacks)

    def test_a59_a61_namespaces_and_mounts(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """No namespace can be made, nothing mounted, no root changed."""
        needs(sandbox, Capability.PRIVILEGE)
        attacks = """
            for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
                held(f"unshare {flag:x}", lambda: libc.unshare(flag) == 0)
            def clone(flags):
                pid = libc.syscall(56, flags | 17, 0, 0, 0, 0)
                if pid == 0:
                    os._exit(0)
                return pid > 0
            held("clone NEWUSER", lambda: clone(0x10000000))
            held("clone3", lambda: libc.syscall(435, 0, 0) >= 0 or ctypes.get_errno() not in (38,) and "not ENOSYS")
            held("setns", lambda: libc.setns(os.open("/proc/self/ns/user", os.O_RDONLY), 0) == 0)
            held("mount tmpfs", lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, None) == 0)
            held("bind", lambda: libc.mount(b"/", b"/tmp", None, 0x1000, None) == 0)
            held("remount", lambda: libc.mount(None, b"/", None, 0x20 | 0x1000, None) == 0)
            held("umount", lambda: libc.umount2(b"/proc", 2) == 0)
            held("pivot_root", lambda: libc.syscall(155, b".", b".") == 0)
            held("chroot", lambda: os.chroot(".") is None)
            held("fsopen", lambda: libc.syscall(430, b"tmpfs", 0) >= 0)
            held("open_tree", lambda: libc.syscall(428, -100, b"/", 1) >= 0)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a62_odd_system_calls(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Io_uring, bpf, perf, userfaultfd, keys, kexec, modules and calls newer than the filter are denied."""
        needs(sandbox, Capability.SYSCALLS)
        attacks = """
            import platform
            if platform.machine() == "x86_64":
                for name, number in {"io_uring_setup": 425, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
                                     "keyctl": 250, "add_key": 248, "request_key": 249, "kexec_load": 246,
                                     "init_module": 175, "finit_module": 313, "syslog": 103, "memfd_secret": 447,
                                     "seccomp": 317, "kcmp": 312, "acct": 163, "quotactl": 179, "swapon": 167,
                                     "personality": 135, "reboot": 169, "fanotify_init": 300}.items():
                    held(name, lambda: libc.syscall(number, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() not in (1, 38))
            held("a call from the future", lambda: libc.syscall(500, 0, 0, 0) >= 0 or ctypes.get_errno() != 38)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_tables_and_files_of_the_whole_machine(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """What one execution could take from all others, or tell them: events, leases, queues of requests, times."""
        needs(sandbox, Capability.SYSCALLS)
        attacks = """
            import fcntl
            context = ctypes.c_ulong()
            if os.uname().machine == "x86_64":
                held("reserves requests", lambda: libc.syscall(206, 2000, ctypes.byref(context)) == 0)
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap(None, 2 << 20, 3, 0x40022, -1, 0)
            held("takes huge pages of the machine", lambda: ctypes.get_errno() != 12)
            held("takes a file of huge pages", lambda: libc.memfd_create(b"huge", 4) >= 0)
            held("watches names", lambda: libc.inotify_init1(0) >= 0)
            held("takes a lease", lambda: fcntl.fcntl(open("input/train.csv"), 1024, fcntl.F_RDLCK) is not None)
            held("asks for notices", lambda: fcntl.fcntl(os.open("input", os.O_RDONLY), 1026, 1) is not None)
            before = os.stat("/dev/null").st_mtime
            try:
                os.utime("/dev/null", (1, 1))
            except OSError:
                pass
            held("marks a device", lambda: os.stat("/dev/null").st_mtime != before)
            os.sync()
            with open("/dev/null", "w") as null:
                null.write("still writable")
        """
        inputs = tmp_path / "inputs"
        inputs.mkdir()
        (inputs / "train.csv").write_text("id\n")
        assert_held(sandbox, tmp_path, attacks, inputs=inputs)

    def test_a71_other_call_tables(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """32-bit and x32 calls do not go round the filter (socket, by both tables)."""
        needs(sandbox, Capability.SYSCALLS)
        attacks = """
            import mmap, platform
            if platform.machine() == "x86_64":
                held("x32 socket", lambda: libc.syscall(0x40000000 | 41, 2, 1, 0) >= 0)
                # mov eax, 359 (socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; ret
                code = bytes.fromhex("53b867010000bb02000000b90100000031d2cd805bc3")
                def int80():
                    page = mmap.mmap(-1, 4096, prot=7)
                    page.write(code)
                    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
                    pid = os.fork()
                    if pid == 0:
                        os._exit(1 if call() >= 0 else 0)
                    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
                held("int 0x80 socket", int80)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a64_rights(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """No root, no capability, no set-uid program that helps, no group of the host."""
        needs(sandbox, Capability.PRIVILEGE)
        attacks = """
            status = dict(line.split(":", 1) for line in open("/proc/self/status"))
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                held("has " + name, lambda: int(status[name], 16))
            # An ordinary user cannot empty its bounding set; without new rights there is nothing that it would bound.
            held("has CapBnd", lambda: int(status["CapBnd"], 16) and status["NoNewPrivs"].strip() != "1")
            held("may gain rights", lambda: status["NoNewPrivs"].strip() != "1")
            held("is root", lambda: 0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid()))
            held("is in a group", lambda: 0 in os.getgroups())
            for call in (os.setuid, os.setgid, os.seteuid):
                held(call.__name__, lambda: call(0) is None)
            held("is root through a set-uid program", lambda: b"uid=0" in subprocess.run(
                ["su", "-c", "id"], capture_output=True, timeout=5).stdout)
            held("makes a set-uid file of root", lambda: os.chown("main.py", 0, 0) is None)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a65_limits_cannot_be_raised(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Hard limits stay, and so does the order in which the kernel kills for memory."""
        attacks = """
            import resource
            for name in ("RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_CORE", "SIGPENDING"):
                kind = getattr(resource, name, 11)
                hard = resource.getrlimit(kind)[1]
                held("unlimited " + name, lambda: hard == resource.RLIM_INFINITY)
                held("raises " + name, lambda: resource.setrlimit(kind, (hard + 1, hard + 1)) is None)
            held("escapes the memory killer", lambda: open("/proc/self/oom_score_adj", "w").write("-1000"))
            held("higher priority", lambda: os.nice(-5) < 0)
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a67_a68_there_is_no_network(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """No TCP, UDP, name service, vsock, netlink or raw packets; the host's abstract sockets are away."""
        needs(sandbox, Capability.NETWORK)
        import socket

        name = f"sandmle-{secrets.token_hex(6)}"
        place = tmp_path / "socket"
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as letters:
            server.bind(f"\0{name}")
            server.listen()
            letters.bind(str(place))
            place.chmod(0o666)
            attacks = f"""
                for family in (2, 10, 16, 17, 38, 40, 31, 29, 21):
                    for kind in (1, 2, 3):
                        held(f"socket family {{family}} type {{kind}}", lambda: socket.socket(family, kind))
                held("connects", lambda: socket.create_connection(("127.0.0.1", 80), 1))
                held("asks a name server", lambda: socket.getaddrinfo("example.com", 80))
                reach = lambda path: socket.socket(socket.AF_UNIX).connect(path) is None
                held("reaches a daemon of the host", lambda: reach("\\0{name}"))
                for path in ("/run/dbus/system_bus_socket", "/run/docker.sock", "/run/systemd/notify", {str(place)!r}):
                    held("reaches " + path, lambda: reach(path))
                near, far = socket.socketpair()
                near.send(b"pairs work")
                for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
                    held(f"sends to {{kind}}", lambda: socket.socketpair(type=kind)[0].sendto(b"x", {str(place)!r}))
                    held(f"turns {{kind}}", lambda: socket.socketpair(type=kind)[0].connect({str(place)!r}) is None)
                held("lists interfaces", lambda: [line for line in open("/proc/net/dev") if "eth" in line])
            """
            assert_held(sandbox, tmp_path, attacks)

    def test_a70_there_is_no_terminal(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Nothing can be typed into a terminal of the host."""
        attacks = """
            import fcntl, pty, termios
            held("opens the terminal", lambda: open("/dev/tty") and True)
            def type_a_key():
                fd = pty.openpty()[1]
                return fcntl.ioctl(fd, termios.TIOCSTI, b"x") is not None
            held("TIOCSTI", type_a_key)
            held("has a terminal", lambda: os.isatty(0) or os.isatty(1) or os.isatty(2))
        """
        assert_held(sandbox, tmp_path, attacks)

    def test_a11_nothing_stale_in_memory_files(self, sandbox: Sandbox, tmp_path: Path) -> None:
        """Shared memory, semaphores and temporary files of an earlier run are gone."""
        token = secrets.token_hex(8)
        plant = f"""
            from multiprocessing import shared_memory
            try:
                block = shared_memory.SharedMemory("stale", create=True, size=100)
                block.buf[:16] = b"{token}"
            except OSError:
                pass
            import os, tempfile
            open(tempfile.gettempdir() + "/stale", "w").write("{token}")
            os._exit(0)
        """
        run(sandbox, tmp_path / "one", plant)
        attacks = """
            import tempfile
            held("finds files", lambda: [
                name for name in os.listdir(tempfile.gettempdir())
                if not sys.prefix.startswith(tempfile.gettempdir() + "/" + name)])
            held("finds memory", lambda: os.listdir("/dev/shm"))
        """
        assert_held(sandbox, tmp_path / "two", attacks)
