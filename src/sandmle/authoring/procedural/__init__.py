"""The procedural author: tasks from families of hidden rules, offline and without any model."""
