"""From the insights' features to the signal: what each insight adds to each output, and how much of it.

The signal is a weighted sum of the insights' contributions, each of unit variance, and of one product of two of them.
"""

from dataclasses import dataclass

import numpy as np

from sandmle.authoring.procedural.families.base import TRAIN, FloatArray, Rows

_SHAPES = ("linear", "saturating", "hinge", "step")


def _shape(kind: str, x: FloatArray) -> FloatArray:
    if kind == "saturating":
        return np.asarray(np.tanh(1.2 * x))
    if kind == "hinge":
        return np.maximum(x, -0.3)
    if kind == "step":
        return np.asarray(np.tanh(3.0 * (x - 0.3)))
    return x


@dataclass(frozen=True)
class Effect:
    """What the features of one insight do to the outputs.

    Attributes:
        shapes: Shape of each feature's effect, one for all outputs # [n_features]
        weights: Weight of each feature for each output # [n_features, n_outputs]
    """

    shapes: tuple[str, ...]
    weights: FloatArray

    def raw(self, features: FloatArray) -> FloatArray:
        """Returns the contribution before it is standardised # [n_rows, n_outputs]."""
        shaped = np.column_stack([_shape(kind, features[:, at]) for at, kind in enumerate(self.shapes)])
        # einsum without BLAS: the same last bit whatever the number of threads (case N14).
        return np.asarray(np.einsum("nf,fo->no", shaped, self.weights, optimize=False))

    def words(self) -> str:
        """Returns the effect as text."""
        rows = [
            f"f{at + 1} {kind}, weights {np.round(self.weights[at], 3).tolist()}" for at, kind in enumerate(self.shapes)
        ]
        return "; ".join(rows)


_FAMILY_SHARE = 0.6
"""Part of the variance of a label's weights that its family shares."""


def draw_effect(rng: np.random.Generator, n_features: int, n_outputs: int, families: tuple[int, ...] = ()) -> Effect:
    """Draws what an insight's features do to the outputs; outputs of one family have weights that are alike."""
    shapes = tuple(str(rng.choice(_SHAPES)) for _ in range(n_features))
    if n_outputs == 1:
        weights = rng.uniform(0.7, 1.3, size=(n_features, 1)) * rng.choice([-1.0, 1.0], size=(n_features, 1))
    else:
        weights = rng.normal(size=(n_features, n_outputs))
        if families:
            shared = rng.normal(size=(n_features, max(families) + 1))[:, list(families)]
            weights = np.sqrt(1 - _FAMILY_SHARE) * weights + np.sqrt(_FAMILY_SHARE) * shared
        weights /= np.sqrt(np.mean(np.square(weights), axis=1, keepdims=True))
    return Effect(shapes, np.round(weights, 4))


def standardised(contribution: FloatArray, rows: Rows) -> FloatArray:
    """Centres each output and scales all outputs together to a mean variance of 1, as seen on the hidden rows."""
    hidden = contribution[rows.part != TRAIN]
    centred = contribution - hidden.mean(axis=0)
    spread = float(np.sqrt(np.mean(np.var(hidden, axis=0))))
    return np.asarray(centred / spread) if spread > 1e-12 else centred


def combine(
    contributions: list[FloatArray], shares: list[float], interaction: tuple[int, int, float] | None, rows: Rows
) -> FloatArray:
    """Returns the signal # [n_rows, n_outputs], of unit variance on the hidden rows.

    Args:
        contributions: Standardised contributions, each # [n_rows, n_outputs]
        shares: Part of the variance of each.
        interaction: Two insights and the share of their product; None for none.
        rows: The rows.
    """
    total = np.sum([np.sqrt(share) * part for share, part in zip(shares, contributions, strict=True)], axis=0)
    if interaction is not None:
        first, second, share = interaction
        total = total + np.sqrt(share) * standardised(contributions[first] * contributions[second], rows)
    return standardised(total, rows)
