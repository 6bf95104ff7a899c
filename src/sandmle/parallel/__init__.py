"""Run a function over many items: in this process or in several, with a record for each failure."""

from sandmle.parallel.map import Outcome, map_items, map_with

__all__ = ["Outcome", "map_items", "map_with"]
