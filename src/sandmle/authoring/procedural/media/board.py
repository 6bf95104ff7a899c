"""A board: a dark picture on which framed pieces stand apart, each with a small picture of its own inside."""

from dataclasses import dataclass, replace

import numpy as np

FRAME = 0.92
_GROUND = 0.08
_ROOM = 3


@dataclass(frozen=True)
class Board:
    """Where the pieces of each row stand.

    Attributes:
        shape: Height and width of the whole picture.
        tile: Height and width of a piece with its frame.
        is_round: Frames are ellipses, not rectangles.
        grain: Seed of the ground's noise, which is no part of the task.
        whole: Which pixels of a tile belong to the piece # [tile_height, tile_width]
        frame: Which of these are its frame.
        corners: Top and left of each piece # [n_rows, n_pieces, 2]
    """

    shape: tuple[int, int]
    tile: tuple[int, int]
    is_round: bool
    grain: int
    whole: np.ndarray
    frame: np.ndarray
    corners: np.ndarray

    @classmethod
    def draw(
        cls, rng: np.random.Generator, n_rows: int, grid: tuple[int, int], inside: tuple[int, int], *, is_round: bool
    ) -> "Board":
        """Draws where pieces stand: one in each cell of a grid, a few pixels off."""
        tile = (inside[0] + 2, inside[1] + 2)
        cell = np.array([tile[0] + _ROOM, tile[1] + _ROOM])
        first = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij"), axis=-1).reshape(1, -1, 2) * cell
        corners = first + 1 + rng.integers(0, _ROOM - 1, size=(n_rows, first.shape[1], 2))
        shape = board_shape(grid, inside)
        return cls(shape, tile, is_round, int(rng.integers(2**40)), *_outline(tile, is_round), corners.astype(np.int64))

    def take(self, rows: np.ndarray) -> "Board":
        """Returns the boards of some rows."""
        return replace(self, corners=self.corners[rows])

    def paint(self, tiles: np.ndarray, row: int) -> np.ndarray:
        """Returns the picture of a row # [height, width, channels], as bytes.

        Args:
            tiles: Pictures of its pieces # [n_pieces, height, width, channels]
            row: Its number.
        """
        rng = np.random.default_rng([self.grain, row])
        grain = rng.standard_normal((*self.shape, 1)) * 0.03 + _GROUND
        canvas = np.repeat(np.clip(np.rint(grain * 255 / 8) * 8, 0, 255), tiles.shape[3], axis=2).astype(np.uint8)
        for (top, left), tile in zip(self.corners[row], tiles, strict=True):
            framed = np.full((*self.tile, tiles.shape[3]), int(FRAME * 255) // 8 * 8, dtype=np.uint8)
            framed[1:-1, 1:-1] = tile
            framed[self.frame] = int(FRAME * 255) // 8 * 8
            place = canvas[top : top + self.tile[0], left : left + self.tile[1]]
            place[self.whole] = framed[self.whole]
        return canvas

    def runs(self, row: int, is_marked: np.ndarray) -> str:
        """Returns the run lengths of the pixels of some pieces, counted down the columns from 1.

        Args:
            row: Number of the row.
            is_marked: Which pieces # [n_pieces]
        """
        corners = self.corners[row][is_marked]
        height, first, length = self.shape[0], self.whole.argmax(axis=0), self.whole.sum(axis=0)
        # Pieces stand apart, so that their runs never touch.
        starts = (corners[:, 1:] + np.arange(self.tile[1])) * height + corners[:, :1] + first + 1
        lengths = np.broadcast_to(length, starts.shape)
        order = np.argsort(starts, axis=None)
        pairs = zip(starts.ravel()[order].tolist(), lengths.ravel()[order].tolist(), strict=True)
        return " ".join(f"{start} {length}" for start, length in pairs)

    def box(self, row: int, piece: int) -> str:
        """Returns left, top, width and height of a piece."""
        top, left = self.corners[row, piece]
        return f"{left} {top} {self.tile[1]} {self.tile[0]}"


def _outline(tile: tuple[int, int], is_round: bool) -> tuple[np.ndarray, np.ndarray]:
    height, width = tile
    whole = np.ones(tile, dtype=bool)
    if is_round:
        down = (np.arange(height) - (height - 1) / 2) / (height / 2)
        right = (np.arange(width) - (width - 1) / 2) / (width / 2)
        whole = np.square(down)[:, None] + np.square(right)[None, :] <= 1.0
    padded = np.pad(whole, 1)
    inside = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:] & whole
    return whole, whole & ~inside


def board_shape(grid: tuple[int, int], inside: tuple[int, int]) -> tuple[int, int]:
    """Returns height and width of a board with a grid of pieces."""
    return grid[0] * (inside[0] + 2 + _ROOM) + 1, grid[1] * (inside[1] + 2 + _ROOM) + 1


def run_lengths(mask: np.ndarray) -> str:
    """Returns a mask # [height, width] as pairs of start and length, counted down the columns from 1."""
    flat = np.concatenate([[0], mask.ravel(order="F").astype(np.int8), [0]])
    change = np.diff(flat)
    starts, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    return " ".join(f"{start + 1} {end - start}" for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
