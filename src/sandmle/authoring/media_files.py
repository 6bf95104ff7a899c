"""Pictures and sounds as files without any metadata, so that the same numbers are the same bytes."""

import io
import wave

import numpy as np
from PIL import Image

_SAMPLES = {"uint8": "u1", "int16": "<i2"}


def png_bytes(pixels: np.ndarray, *, compress_level: int) -> bytes:
    """Returns one picture # [height, width] or [height, width, channels] of bytes as a PNG file.

    Args:
        pixels: Grey, or with 1 or 3 channels.
        compress_level: 1 is fast, 9 is small.
    """
    out = io.BytesIO()
    is_flat = pixels.ndim == 3 and pixels.shape[2] == 1
    Image.fromarray(pixels[..., 0] if is_flat else pixels).save(out, format="PNG", compress_level=compress_level)
    return out.getvalue()


def wav_bytes(samples: np.ndarray, *, rate_hz: int) -> bytes:
    """Returns one sound # [n_samples] as a mono WAV file.

    Args:
        samples: Of the type uint8, around 128, or int16, around 0.
        rate_hz: Samples a second.
    """
    plain = samples.astype(_SAMPLES[samples.dtype.name])
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(plain.dtype.itemsize)
        file.setframerate(rate_hz)
        file.writeframes(plain.tobytes())
    return out.getvalue()
