"""Run a function over many items, in one process or several, and keep what comes out safe from being killed."""

from sandmle.parallel.map import Outcome, map_items, map_with
from sandmle.parallel.run_folder import RunFolder, open_run_folder
from sandmle.parallel.run_lock import CONFIG_FILE, enter_folder, write_text_whole, write_whole

__all__ = [
    "CONFIG_FILE",
    "Outcome",
    "RunFolder",
    "enter_folder",
    "map_items",
    "map_with",
    "open_run_folder",
    "write_text_whole",
    "write_whole",
]
