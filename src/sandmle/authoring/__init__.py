"""Authors: they make tasks from seeds."""
