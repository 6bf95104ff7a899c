"""The procedural author's own words: one YAML file a domain, no text from elsewhere."""
