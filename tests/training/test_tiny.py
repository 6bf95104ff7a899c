"""The small model made on the spot: its tokenizer."""

from sandmle.training.recipe import TinyConfig
from sandmle.training.tiny import make_tiny, make_tokenizer

SHARED = "import pandas as pd\ntrain = pd.read_csv('input/train.csv')\n"
TEXTS = [(f"task {which}", f"{SHARED}print(train['name_{which}'])\n") for which in range(4)]
LINES = TinyConfig(vocab=320, hidden=32, context=256, lines=True)


def test_lines_that_tasks_share_are_tokens_and_others_are_not() -> None:
    tokenizer = make_tokenizer(TEXTS, LINES)
    ids = tokenizer.encode(TEXTS[0][1])
    assert [tokenizer.decode([each]) for each in ids[:2]] == SHARED.splitlines(keepends=True)
    assert tokenizer.decode(ids) == TEXTS[0][1]
    once = tokenizer.encode("print(train['name_1'])\n")
    assert len(once) > 3


def test_a_line_that_one_task_repeats_is_no_token() -> None:
    texts = [("one task", f"{SHARED}answer = 42\n")] * 9
    assert len(make_tokenizer(texts, LINES)) <= LINES.vocab


def test_a_name_is_cut_alike_wherever_it_stands() -> None:
    tokenizer = make_tokenizer(TEXTS, LINES)
    name = tokenizer.encode("rent_paid_2")
    for text in ("'rent_paid_2'", "['rent_paid_2', 'x']", "`rent_paid_2`: Rent", "rent_paid_2=3"):
        ids = tokenizer.encode(text)
        assert any(ids[at : at + len(name)] == name for at in range(len(ids)))


def test_any_text_comes_back() -> None:
    tokenizer = make_tokenizer(TEXTS, LINES)
    for text in (
        "  a\tb\r\n\n\n",
        "Größe 1234567 \u2028 \U0001f600",
        "__init__ _x_ a__b",
        "import pandas as pd\n" * 2,
        "",
    ):
        assert tokenizer.decode(tokenizer.encode(text), clean_up_tokenization_spaces=False) == text


def test_the_same_texts_make_the_same_model() -> None:
    first, second = make_tiny(TEXTS, LINES, rng_seed=1)[0], make_tiny(list(reversed(TEXTS)), LINES, rng_seed=1)[0]
    assert [each.shape for each in first.parameters()] == [each.shape for each in second.parameters()]
    assert all((a == b).all() for a, b in zip(first.parameters(), second.parameters(), strict=True))
