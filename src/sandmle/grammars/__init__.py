"""Action grammars: the forms in which a model's reply says what to do."""
