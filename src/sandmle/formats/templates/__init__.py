"""Programs that are copied into exported tasks. They are read as text and never imported here."""
