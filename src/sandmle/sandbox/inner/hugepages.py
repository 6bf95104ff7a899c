"""Makes the loaded libraries cheap to fork: thousands of small mappings become a few large ones on huge pages.

A process with the ML libraries has some 1600 mappings of 280 files. A fork copies each of them, the end of the fork
takes each apart again, and the fork's first steps fault in their pages one by one: together that is more than half of
what an execution of an empty script costs. So before a warm server serves, the contents of whole runs of libraries are
copied into anonymous memory on huge pages, and moved to the very addresses where the libraries are. Then a fork shares
them two megabytes at a time.

What changes: the libraries' pages may be written to and executed alike (they belong to this process and its forks
alone), the server needs as much more memory as the libraries are large, and ``/proc/self/maps`` does not name them.
"""

import ctypes
import os
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")
_HUGE = 2 << 20
_LARGEST_OBJECT = 96 << 20
"""Beyond this a copy costs more memory than it saves time (torch's libraries)."""
_FEWEST_SEGMENTS = 4
_SWITCH = "/sys/kernel/mm/transparent_hugepage/enabled"
_PT_LOAD, _PF_R = 1, 4
_PROT_NONE, _PROT_ALL = 0, 7
_MAP_PRIVATE_ANONYMOUS, _MAP_NORESERVE, _MAP_FIXED_NOREPLACE = 0x22, 0x4000, 0x100000
_FAILED = ctypes.c_void_p(-1).value
_MADV_HUGEPAGE = 14
_MREMAP_MOVE_TO = 3


class Segment(NamedTuple):
    """A part of a library in memory, in whole pages."""

    start: int
    end: int
    readable: bool


class _ProgramHeader(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("offset", ctypes.c_uint64), ("place", ctypes.c_uint64),
        ("physical", ctypes.c_uint64), ("file_size", ctypes.c_uint64), ("size", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    )  # fmt: skip


class _LoadedObject(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64), ("name", ctypes.c_char_p), ("headers", ctypes.POINTER(_ProgramHeader)),
        ("count", ctypes.c_uint16),
    )  # fmt: skip


def loaded_objects() -> dict[str, list[Segment]]:
    """Returns the segments of all libraries that the dynamic linker has loaded, by path."""
    found: dict[str, list[Segment]] = {}

    def note(info: "ctypes._Pointer[_LoadedObject]", _size: int, _data: int) -> int:
        loaded = info.contents
        headers = [loaded.headers[index] for index in range(loaded.count)]
        found[loaded.name.decode(errors="surrogateescape")] = [
            Segment(
                (loaded.base + header.place) // _PAGE * _PAGE,
                -(-(loaded.base + header.place + header.size) // _PAGE) * _PAGE,
                bool(header.flags & _PF_R),
            )
            for header in headers
            if header.kind == _PT_LOAD
        ]
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_LoadedObject), ctypes.c_size_t, ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(callback(note), None)
    return found


def gather(before: frozenset[str]) -> int:
    """Moves the libraries loaded since then onto huge pages. This process must have one thread.

    Args:
        before: The libraries that were loaded earlier. They stay as they are: among them are those that run while
            this is done, whose data must not change between the copy and the move.

    Returns:
        Bytes that were moved; 0 where the kernel has no huge pages to give.
    """
    if not _offers_huge_pages():
        return 0
    libraries = sorted(
        segments
        for name, segments in loaded_objects().items()
        if name and name not in before and _span(segments)[1] - _span(segments)[0] <= _LARGEST_OBJECT
    )
    moved, done = 0, 0
    for count in join([_span(segments) for segments in libraries]):
        run = [segment for segments in libraries[done : done + count] for segment in segments]
        done += count
        if len(run) >= _FEWEST_SEGMENTS:
            moved += _move(run)
    return moved


def join(spans: list[tuple[int, int]]) -> list[int]:
    """Groups libraries so that between the first and the last of a group there is nothing else, now and later.

    What lies between two libraries of a group is reserved by a mapping without access. A look at the list of mappings
    would not do: the very next allocation may be mapped between two libraries, and the move would replace it.

    Args:
        spans: Where each library starts and ends, sorted.

    Returns:
        The size of each group, in order.
    """
    counts: list[int] = []
    last = None
    for start, end in spans:
        if last is not None and (last == start or _reserve(last, start)):
            counts[-1] += 1
        else:
            counts.append(1)
        last = end
    return counts


def _reserve(start: int, end: int) -> bool:
    """Maps this place without access, unless something is there."""
    flags = _MAP_PRIVATE_ANONYMOUS | _MAP_NORESERVE | _MAP_FIXED_NOREPLACE
    place = _libc().mmap(start, end - start, _PROT_NONE, flags, -1, 0)
    if place in (start, _FAILED):
        return bool(place == start)
    _libc().munmap(place, end - start)  # a kernel older than the flag takes the address for a wish
    return False


def _span(segments: list[Segment]) -> tuple[int, int]:
    return segments[0].start, segments[-1].end


def _offers_huge_pages() -> bool:
    try:
        with open(_SWITCH) as file:  # noqa: PTH123
            return "[never]" not in file.read()
    except OSError:
        return False


def _move(run: list[Segment]) -> int:
    libc = _libc()
    start, size = run[0].start, run[-1].end - run[0].start
    whole = size + 2 * _HUGE
    base = libc.mmap(None, whole, _PROT_ALL, _MAP_PRIVATE_ANONYMOUS | _MAP_NORESERVE, -1, 0)
    if base == _FAILED:
        return 0
    # Huge pages move whole only between places that lie alike within them.
    place = (base + _HUGE - 1) // _HUGE * _HUGE + start % _HUGE
    libc.madvise(place, size, _MADV_HUGEPAGE)
    for segment in run:
        if segment.readable:
            ctypes.memmove(place + segment.start - start, segment.start, segment.end - segment.start)
    # One call replaces the mappings; whatever fails leaves them as they were.
    moved = libc.mremap(place, size, size, _MREMAP_MOVE_TO, start) == start
    for left, length in ((base, place - base), (place + size, base + whole - place - size)):
        libc.munmap(left, length)
    if not moved:
        libc.munmap(place, size)
    return size if moved else 0


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size_t = ctypes.c_void_p, ctypes.c_size_t
    libc.mmap.argtypes = (pointer, size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.mremap.argtypes = (pointer, size_t, size_t, ctypes.c_int, pointer)
    libc.mmap.restype = libc.mremap.restype = pointer
    libc.munmap.argtypes = (pointer, size_t)
    libc.madvise.argtypes = (pointer, size_t, ctypes.c_int)
    return libc
