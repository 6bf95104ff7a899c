"""Tree search over scripts: the tree, the policies that choose where to go on, the operators, the journal, the loop."""
