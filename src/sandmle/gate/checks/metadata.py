"""Media files carry nothing but their content: no text chunks, EXIF, comments, or bytes after the end (case N01)."""

import io
import struct
import zipfile

from PIL import Image

from sandmle.gate.base import Check, Finding, GateContext

_PNG_HEAD = b"\x89PNG\r\n\x1a\n"
_PNG_CHUNKS = frozenset(
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD", b"pHYs"}
)
_WAV_CHUNKS = frozenset({b"fmt ", b"data", b"fact"})
_PICTURE_KEYS = frozenset({"exif", "comment", "xmp", "photoshop", "XML:com.adobe.xmp"})


def run(context: GateContext) -> Finding:
    """Counts public files with metadata in them."""
    found: list[str] = []
    for name, path in context.media.items():
        problem = _problem(path.suffix.lower(), path.read_bytes())
        if problem:
            found.append(f"public/{name} {problem}")
    return Finding(not found, found[0] if found else "", float(len(found)), 0.0)


def _problem(suffix: str, data: bytes) -> str:
    if suffix == ".png":
        return _png_problem(data)
    if suffix == ".wav":
        return _wav_problem(data)
    if suffix in (".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp"):
        return _picture_problem(data)
    if suffix in (".zip", ".npz"):
        return _zip_problem(data)
    return ""


def _png_problem(data: bytes) -> str:
    if not data.startswith(_PNG_HEAD):
        return "is no PNG file"
    at = len(_PNG_HEAD)
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind = data[at + 4 : at + 8]
        if kind not in _PNG_CHUNKS:
            return f"has a {kind.decode('latin-1')!r} chunk"
        at += 12 + length
        if kind == b"IEND":
            return "has bytes after its end" if at != len(data) else ""
    return "is cut off"


def _wav_problem(data: bytes) -> str:
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return "is no WAV file"
    at = 12
    while at + 8 <= len(data):
        kind = data[at : at + 4]
        (length,) = struct.unpack("<I", data[at + 4 : at + 8])
        if kind not in _WAV_CHUNKS:
            return f"has a {kind.decode('latin-1')!r} chunk"
        at += 8 + length + length % 2
    return "" if at == len(data) else "has bytes after its end"


def _picture_problem(data: bytes) -> str:
    with Image.open(io.BytesIO(data)) as picture:
        keys = sorted(_PICTURE_KEYS & {str(key) for key in picture.info})
    return f"has {keys[0]} metadata" if keys else ""


def _zip_problem(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if archive.comment or any(entry.comment for entry in entries):
            return "has a comment"
        if len({entry.date_time for entry in entries}) > 1:
            return "has files of different times"
    return ""


CHECK = Check("media_metadata", run)
