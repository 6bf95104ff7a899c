"""Replies to typed outputs."""

import pytest

from sandmle.authoring.roles.outputs import Evaluator, MetricChoice, Review
from sandmle.authoring.roles.reading import Complaint, read_json, read_markdown, read_scoring, read_scripts


@pytest.mark.parametrize(
    "text",
    [
        '{"approve": true}',
        'Sure, here it is:\n```json\n{"approve": true}\n```\nAnything else?',
        '<think>{"approve": false}</think>{"approve": true}',
        'The set {1, 2} is fine. {"approve": true}',
    ],
)
def test_an_object_is_found_wherever_it_stands(text):
    assert read_json(text, Review).approve


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I cannot help with that.", "no JSON object; it begins 'I cannot help"),
        ('{"approve": "perhaps"}', "approve"),
        ('{"approve": false}', "names at least one problem"),
        ('{"approve": true, "score": NaN}', "no JSON object"),
        ("{" * 3000, "no JSON object"),
    ],
)
def test_what_is_no_object_is_a_complaint_in_one_sentence(text, message):
    with pytest.raises(Complaint, match=message) as caught:
        read_json(text, Review)
    assert caught.value.kind == "invalid_reply"
    assert "\n" not in caught.value.summary


def test_scripts_are_the_blocks_that_name_a_file():
    text = (
        "```python\n# file: make_data.py\nx = 1\n```\nprose\n```python\nprint()\n```\n"
        "```\n# file: baselines/a.py\ny = 2\n```"
    )
    assert read_scripts(text).files == {"make_data.py": "x = 1\n", "baselines/a.py": "y = 2\n"}


@pytest.mark.parametrize("name", ["../evil.py", "/etc/x.py", "a/../../b.py", "notes.txt"])
def test_a_file_name_that_leaves_the_workspace_is_refused(name):
    with pytest.raises(Complaint):
        read_scripts(f"```python\n# file: {name}\nx = 1\n```")


def test_scoring_is_a_name_or_a_script():
    assert read_scoring('{"metric": "rmse"}') == MetricChoice(metric="rmse")
    reply = (
        '{"title": "Mean gap", "words": "The mean gap."}\n```python\n# file: evaluator.py\ndef grade(s, a): ...\n```'
    )
    found = read_scoring(reply)
    assert isinstance(found, Evaluator)
    assert found.title == "Mean gap"
    with pytest.raises(Complaint, match=r"names no metric and has no evaluator\.py"):
        read_scoring("```python\n# file: other.py\nx = 1\n```")


def test_a_description_begins_with_its_title():
    assert read_markdown("```markdown\n# Title\n\ntext\n```") == "# Title\n\ntext\n"
    with pytest.raises(Complaint, match="begins with no Markdown title"):
        read_markdown("Here you are")
