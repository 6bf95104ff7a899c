"""Tasks in the layouts of other projects: MLE-bench, the published SandMLE release, Harbor."""

from sandmle.formats.base import LAYOUTS, Layout, Transfer, make_layout
from sandmle.formats.transfer import export_tasks, import_tasks

__all__ = ["LAYOUTS", "Layout", "Transfer", "export_tasks", "import_tasks", "make_layout"]
