"""Pictures and videos: layers of paint onto canvases, thumbnails."""

import numpy as np

from sandmle.authoring.procedural.families.base import FloatArray

Layer = tuple[np.ndarray, np.ndarray]
# Grey levels between neighbours: coarse tones make small files.
_STEP = 8
COMPRESS_LEVEL = 6


def painted(layers: list[Layer], n: int, shape: tuple[int, int], channels: int, rng: np.random.Generator) -> np.ndarray:
    """Returns pictures # [n, height, width, channels] as bytes: noise, and the layers over it."""
    canvas = rng.standard_normal((n, *shape, 1), dtype=np.float32) * np.float32(0.05) + np.float32(0.42)
    canvas = np.repeat(canvas, channels, axis=-1)
    for opacity, colour in layers:
        ink = colour[:, None, None, :channels].astype(np.float32)
        canvas += opacity[..., None].astype(np.float32) * (ink - canvas)
    return np.asarray(np.clip(np.rint(canvas * np.float32(255 / _STEP)) * _STEP, 0, 255), dtype=np.uint8)


def thumbnails(pixels: np.ndarray, n_down: int, n_right: int) -> FloatArray:
    """Returns pictures as rows of numbers, shrunk to a few cells, as a solver short of data would."""
    values = pixels.astype(np.float32) / np.float32(255)
    n, height, width, channels = values.shape
    down, right = max(height // n_down, 1), max(width // n_right, 1)
    rows, columns = height // down, width // right
    values = values[:, : rows * down, : columns * right].reshape(n, rows, down, columns, right, channels)
    return np.asarray(values.mean(axis=(2, 4)).reshape(n, -1), dtype=np.float64)
