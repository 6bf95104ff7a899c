"""Texts, series, sounds, pictures, videos, graphs and point clouds: puts together what the insights add to each."""

from sandmle.authoring.procedural.media.assembly import assemble, draw_image_shape
from sandmle.authoring.procedural.media.base import Material, MediaFiles
from sandmle.authoring.procedural.media.board import Board

__all__ = ["Board", "Material", "MediaFiles", "assemble", "draw_image_shape"]
