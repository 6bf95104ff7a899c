"""authoring/procedural."""
