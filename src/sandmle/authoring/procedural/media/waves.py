"""Series and sounds: CSV and WAV files."""

import numpy as np

from sandmle.authoring.media_files import wav_bytes
from sandmle.authoring.procedural.families.base import FloatArray
from sandmle.authoring.procedural.families.sound import RATE_HZ

_WINDOWS = 16


def series_bytes(values: FloatArray) -> bytes:
    """Returns the series of a row's pieces # [n_pieces, length] as a CSV file, a column for each piece."""
    names = ["value"] if len(values) == 1 else [f"value_{number}" for number in range(1, len(values) + 1)]
    lines = [",".join(["step", *names])]
    lines += [",".join([str(at), *(f"{cell:.3f}" for cell in row)]) for at, row in enumerate(values.T.tolist())]
    return ("\n".join(lines) + "\n").encode()


def sound_bytes(sound: FloatArray) -> bytes:
    """Returns a sound # [length] between -1 and 1 as a WAV file of 8 bits a sample, without any metadata."""
    samples = np.clip(np.rint(sound * 127) + 128, 0, 255).astype(np.uint8)
    return wav_bytes(samples, rate_hz=RATE_HZ)


def loudness(sounds: FloatArray) -> FloatArray:
    """Returns the loudness of sounds # [n, length] over time, on a log scale # [n, n_windows]."""
    length = sounds.shape[1] // _WINDOWS * _WINDOWS
    windows = sounds[:, :length].reshape(len(sounds), _WINDOWS, -1)
    return np.asarray(np.log(np.sqrt(np.square(windows).mean(axis=2)) + 0.01), dtype=np.float64)
