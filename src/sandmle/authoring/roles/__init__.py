"""Authoring with language models: four roles that write, run, debug and are checked (paper, section 3)."""
