"""The token trail: ids as sampled, arrays of one length, nothing filled in."""

from sandmle.records import Completion
from sandmle.scaffolds.tokens import TokenTrail


def said(prompt: tuple[int, ...], ids: tuple[int, ...]) -> Completion:
    return Completion(text="", prompt_ids=prompt, token_ids=ids, logprobs=tuple(-float(each) for each in ids))


def test_turns_are_appended_and_the_environments_words_masked() -> None:
    trail = TokenTrail()
    trail.add(said((1, 2), (3, 4)))
    trail.add(said((1, 2, 3, 4, 8, 9), (5,)))
    assert trail.arrays() == {
        "prompt_ids": (1, 2),
        "completion_ids": (3, 4, 8, 9, 5),
        "loss_mask": (1, 1, 0, 0, 1),
        "logprobs": (-3.0, -4.0, 0.0, 0.0, -5.0),
    }


def test_p14_what_the_transcript_cut_off_leaves_the_trail() -> None:
    trail = TokenTrail()
    trail.add(said((1,), (3, 4, 5, 6)))
    trail.add(said((1, 3, 4, 8), (7,)))
    assert trail.arrays()["completion_ids"] == (3, 4, 8, 7)
    assert trail.arrays()["loss_mask"] == (1, 1, 0, 1)


def test_r14_a_prompt_that_rewrites_an_earlier_turn_breaks_the_trail() -> None:
    trail = TokenTrail()
    trail.add(said((1,), (3, 4)))
    trail.add(said((1, 3, 4, 8), (5, 6)))
    trail.add(said((1, 9, 8, 5, 6, 8), (7,)))  # the first reply was rewritten
    assert trail.arrays() == {}


def test_r13_a_policy_without_ids_or_logprobs_has_no_arrays() -> None:
    trail = TokenTrail()
    trail.add(said((1,), (3, 4)))
    trail.add(Completion(text="x"))
    assert trail.arrays() == {}
    unscored = TokenTrail()
    unscored.add(Completion(text="x", prompt_ids=(1,), token_ids=(2,)))
    assert unscored.arrays() == {}
