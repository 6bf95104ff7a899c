"""gate/checks."""
