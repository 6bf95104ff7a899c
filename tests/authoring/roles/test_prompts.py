"""Who is told what: the strategist no word of the seed's subject, the writer no word of the rule."""

import pytest

from sandmle.authoring.roles.facts import PublicFacts, fitting_metrics, shape_of
from sandmle.authoring.roles.journal import read_recording
from sandmle.authoring.roles.outputs import TaskIdea, baseline_file
from sandmle.authoring.roles.prompts import render
from sandmle.gate.base import words_of
from sandmle.seeds import load_seed, seed_ids
from tests.authoring.roles.doubles import GOOD

RECORDINGS = sorted(GOOD.glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_writer_and_the_reviewer_never_see_the_rule(path):
    idea = TaskIdea.model_validate_json(read_recording(path)[1][0].text)
    metric = {"name": "m", "title": "M", "words": "", "formula": "", "better": "higher is better", "params": {}}
    facts = PublicFacts(idea, metric, {}, {}, "", {})
    for name, more in (("writer", {}), ("reviewer", {"description": ""})):
        shown = " ".join(words_of(" ".join(render(name, facts=facts, **more))))
        for secret in (idea.hidden_rule, idea.formula, idea.noise, idea.mutation):
            words = words_of(secret)
            pieces = [" ".join(words[at : at + 6]) for at in range(0, max(1, len(words) - 5))]
            assert not [piece for piece in pieces if len(piece) > 20 and piece in shown]
        assert not any(baseline.name in shown for baseline in idea.baselines)


@pytest.mark.parametrize("path", RECORDINGS[:2], ids=lambda path: path.stem)
def test_the_developer_is_told_everything_it_needs(path):
    idea = TaskIdea.model_validate_json(read_recording(path)[1][0].text)
    _, text = render("developer", idea=idea, baseline_file=baseline_file, n_public=300)
    for needed in (idea.hidden_rule, idea.formula, *(baseline_file(each.name) for each in idea.baselines)):
        assert needed in text


def test_the_strategist_sees_the_shape_of_every_seed_and_not_its_subject():
    for seed_id in seed_ids():
        seed = load_seed(seed_id)
        system, text = render("strategist", **shape_of(seed), taken=("mining",))
        assert seed_id not in text
        assert seed.dna.metric in text
        assert "mining" in text
        assert system


def test_metrics_are_offered_that_fit_without_further_columns():
    idea = TaskIdea.model_validate_json(read_recording(GOOD / "spaceship-titanic--0.jsonl")[1][0].text)
    names = [name for name, _, _ in fitting_metrics(idea)]
    assert "accuracy" in names
    assert "rmse" not in names
    assert "group_log_mae" not in names
