"""scaffolds."""
