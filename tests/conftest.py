"""Shared fixtures. Tests mirror the package: tests/<package>/test_<module>.py."""
