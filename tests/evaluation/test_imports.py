from sandmle.evaluation.imports import ImportShare, import_lines, measure_import_share


def test_import_lines_finds_nested_imports_and_leaves_the_rest():
    code = "import os\nx = 1\ndef f():\n    from math import sqrt\n    return sqrt(x)\n"
    assert import_lines(code) == "import os\nfrom math import sqrt"


def test_import_lines_of_broken_code_are_none():
    assert import_lines("def (") == ""


def test_share_is_a_ratio_of_means_and_never_above_one():
    assert ImportShare(n_executions=2, mean_wall_s=2.0, mean_import_s=0.5).share == 0.25
    assert ImportShare(n_executions=2, mean_wall_s=0.1, mean_import_s=0.5).share == 1.0


def test_nothing_to_measure_is_none():
    assert measure_import_share([], sandbox=None) is None
