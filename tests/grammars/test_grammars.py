"""Cases P01-P17 and what hostile text may not do."""

import ast
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandmle.errors import ConfigError
from sandmle.grammars import GRAMMAR_NAMES, Action, Grammar, get_grammar
from sandmle.grammars.scan import clean_text, strip_thinking
from sandmle.records import ActionKind, FinishReason, ReplyStatus

STOP, LENGTH = FinishReason.STOP, FinishReason.LENGTH


@pytest.fixture(params=GRAMMAR_NAMES)
def grammar(request: pytest.FixtureRequest) -> Grammar:
    return get_grammar(request.param)


def block(grammar: Grammar, code: str) -> str:
    """The action part of a reply, as a model writes it (three backticks, whatever the code holds)."""
    if grammar.name == "fenced":
        return f"```python\n{code}\n```"
    return f"<tool_call>\npython\n<code>\n{code}\n</code>\n</tool_call>"


def thought(grammar: Grammar, text: str) -> str:
    return f"{text}\n" if grammar.name == "fenced" else f"<think>{text}</think>\n"


def run_of(grammar: Grammar, reply: str, finish: FinishReason = STOP) -> str:
    parsed = grammar.parse(reply, finish)
    assert parsed.status is ReplyStatus.ACTION, parsed
    assert parsed.action is not None
    assert parsed.action.kind is ActionKind.RUN
    return parsed.action.code


@pytest.mark.parametrize("mark", ["```", "```python", "</code>", "</code>\n</tool_call>"])
@pytest.mark.parametrize("quote", ['"""', "'''"])
def test_p01_inner_closing_mark_in_a_string_does_not_end_the_code(grammar: Grammar, mark: str, quote: str) -> None:
    closing = mark.replace("python", "")
    code = f"readme = {quote}\nUse it so:\n{mark}\nx = 1\n{closing}\nas said\n{quote}\nprint(len(readme))"
    ast.parse(code)
    reply = thought(grammar, "write a readme") + block(grammar, code)
    assert run_of(grammar, reply) == code
    assert grammar.parse(reply, STOP).in_form


def test_p02_prose_between_two_blocks_is_never_code(grammar: Grammar) -> None:
    reply = (
        thought(grammar, "two")
        + block(grammar, "a = 1")
        + '\nNow comes don\'t "the" second.\n'
        + block(grammar, "b = 2")
    )
    assert run_of(grammar, reply) == "a = 1"
    parsed = grammar.parse(reply, STOP)
    assert not parsed.in_form
    assert any("ignored" in note for note in parsed.notes)


def test_p02_unbalanced_quotes_do_not_join_two_blocks(grammar: Grammar) -> None:
    reply = (
        thought(grammar, "two")
        + block(grammar, 'a = """oops')
        + "\nThe sentence between.\n"
        + block(grammar, 'b = """fine"""')
    )
    assert run_of(grammar, reply) == 'a = """oops'


def test_p04_a_bare_fence_in_the_reasoning_is_not_run() -> None:
    grammar = get_grammar("fenced")
    reply = "The data looks so:\n```\nid,x\n1,2\n```\nand\n```bash\nrm -rf /\n```\nso:\n```python\nprint(1)\n```"
    assert run_of(grammar, reply) == "print(1)"
    react = get_grammar("react")
    assert run_of(react, "<think>\n```\nid,x\n```\n</think>\n" + block(react, "print(1)")) == "print(1)"


def test_p04_a_bare_fence_that_is_never_closed_does_not_hide_the_action() -> None:
    assert run_of(get_grammar("fenced"), "```\nid,x\n\n```python\nprint(1)\n```") == "print(1)"


@pytest.mark.parametrize("opening", ["<think>", ""])
def test_p05_a_draft_in_the_thinking_is_not_run(grammar: Grammar, opening: str) -> None:
    reply = f"{opening}\nmaybe\n{block(grammar, 'draft()')}\nno\n</think>\n{block(grammar, 'real()')}"
    assert run_of(grammar, reply) == "real()"
    assert grammar.parse(reply, STOP).in_form
    assert grammar.parse(reply, STOP).notes == ()


@pytest.mark.parametrize(("finish", "status"), [(LENGTH, ReplyStatus.TRUNCATED), (STOP, ReplyStatus.FORMAT_ERROR)])
def test_p07_unclosed_thinking_runs_nothing(grammar: Grammar, finish: FinishReason, status: ReplyStatus) -> None:
    parsed = grammar.parse(f"<think> plan ...\n{block(grammar, 'x = 1')}", finish)
    assert (parsed.status, parsed.action) == (status, None)
    assert "</think>" in parsed.hint


def test_p08_nested_thinking_leaks_nothing(grammar: Grammar) -> None:
    assert strip_thinking("<think>a<think>b</think>c</think>d") == "d"
    reply = f"<think>a<think>{block(grammar, 'b()')}</think>\n{block(grammar, 'c()')}</think>\n{block(grammar, 'd()')}"
    assert run_of(grammar, reply) == "d()"


def test_p08_a_thought_that_mentions_the_tag_does_not_swallow_the_action(grammar: Grammar) -> None:
    reply = f"<think>I must use <think> tags.</think>\n{block(grammar, 'd()')}"
    assert run_of(grammar, reply) == "d()"


def test_p10_a_stray_quote_in_the_thinking_is_harmless(grammar: Grammar) -> None:
    reply = f'<think>he said " and don\'t """</think>\n{block(grammar, "print(1)")}'
    assert run_of(grammar, reply) == "print(1)"


def test_p11_closing_before_opening_is_a_format_error() -> None:
    for reply in (
        "<think>x</think>\n</tool_call> text <tool_call>python",
        "<think>x</think>\n</tool_call> text\n<tool_call>\npython",
        "<think>x</think>\n<tool_call></tool_call>",
        "<think>x</think>\n<tool_call>\npython\n</code> text <code>ls\n</tool_call>",
    ):
        parsed = get_grammar("react").parse(reply, STOP)
        assert (parsed.status, parsed.action) == (ReplyStatus.FORMAT_ERROR, None), reply
        assert parsed.hint
    parsed = get_grammar("fenced").parse("```\ntext\n```python", STOP)
    assert (parsed.status, parsed.action) == (ReplyStatus.FORMAT_ERROR, None)


def test_p13_backticks_inside_a_line_are_no_fence() -> None:
    code = 's = "```"\nprint(s)'
    reply = f"use ```x``` here, or ```python too\n{block(get_grammar('fenced'), code)}"
    assert run_of(get_grammar("fenced"), reply) == code
    react = get_grammar("react")
    code = 's = "</code>"\nprint(s, "</tool_call>")'
    assert run_of(react, f"<think>a <tool_call> tag</think>\nin a <tool_call> I run\n{block(react, code)}") == code


@pytest.mark.parametrize("marker", ["Observation: score 0.99", "**Observation:** score 0.99", "<tool_response>0.99"])
def test_p14_an_invented_observation_is_cut(grammar: Grammar, marker: str) -> None:
    first = thought(grammar, "go") + block(grammar, "first()")
    finish = grammar.render("done", Action(ActionKind.FINISH))
    reply = f"{first}\n{marker}\n{block(grammar, 'second()')}\n{finish}"
    parsed = grammar.parse(reply, STOP)
    assert run_of(grammar, reply) == "first()"
    assert parsed.kept == first
    assert not parsed.in_form
    assert any("made up" in note for note in parsed.notes)


def test_p14_an_answer_made_up_before_any_action_is_no_action(grammar: Grammar) -> None:
    reply = f"{thought(grammar, 'go')}<tool_response>\nscore 1.0\n</tool_response>\n{block(grammar, 'x()')}"
    parsed = grammar.parse(reply, STOP)
    assert (parsed.status, parsed.action) == (ReplyStatus.FORMAT_ERROR, None)
    assert "1.0" not in parsed.kept


@pytest.mark.parametrize("code", ["", "\n\n", "# nothing\n  # here"])
def test_p16_prose_and_empty_blocks_are_format_errors_with_a_hint(grammar: Grammar, code: str) -> None:
    for reply in ("I am done, thank you.", thought(grammar, "x") + block(grammar, code)):
        parsed = grammar.parse(reply, STOP)
        assert (parsed.status, parsed.action) == (ReplyStatus.FORMAT_ERROR, None)
        assert parsed.hint


def test_r05_a_cut_reply_is_truncated_and_a_complete_one_is_not(grammar: Grammar) -> None:
    whole = thought(grammar, "x") + block(grammar, "print(1)")
    cut = whole[: whole.index("print(1)") + 5]
    assert grammar.parse(cut, LENGTH).status is ReplyStatus.TRUNCATED
    assert grammar.parse(cut, STOP).status is ReplyStatus.FORMAT_ERROR
    assert run_of(grammar, whole + "\nand then I", LENGTH) == "print(1)"


@pytest.mark.parametrize("text", ["", "  \n\t ", "\n"])
def test_empty_replies(grammar: Grammar, text: str) -> None:
    assert grammar.parse(text, STOP).status is ReplyStatus.EMPTY
    assert grammar.parse(text, LENGTH).status is ReplyStatus.TRUNCATED
    assert grammar.parse(text, STOP).kept == ""


def test_react_needs_a_thought_for_the_form_but_not_for_the_action() -> None:
    grammar = get_grammar("react")
    for reply in (block(grammar, "x()"), "<think> </think>\n" + block(grammar, "x()")):
        assert run_of(grammar, reply) == "x()"
        assert not grammar.parse(reply, STOP).in_form


def test_react_understands_calls_in_neighbouring_forms() -> None:
    grammar = get_grammar("react")
    call = json.dumps({"name": "PythonInterpreter", "arguments": {"code": "x()\n"}})
    assert run_of(grammar, f"<think>a</think><tool_call>{call}</tool_call>") == "x()\n"
    assert run_of(grammar, "<think>a</think>\n<tool_call>\n```python\nx()\n```\n</tool_call>") == "x()"
    assert run_of(grammar, "<think>a</think><tool_call>\npython\n<code>x()</code></tool_call>") == "x()"
    score = grammar.parse("<think>a</think>\n<tool_call>\nScore\n</tool_call>", STOP)
    assert score.action == Action(ActionKind.SCORE)
    for bad in ("{}", "[1]", '{"name": 3}', '{"name": "python", "arguments": []}', "[" * 50_000, "nonsense"):
        parsed = grammar.parse(f"<think>a</think>\n<tool_call>\n{bad}\n</tool_call>", STOP)
        assert (parsed.status, parsed.action) == (ReplyStatus.FORMAT_ERROR, None), bad[:20]


def test_fenced_words_count_only_on_their_own_line_and_outside_fences() -> None:
    grammar = get_grammar("fenced")
    assert grammar.parse("I will not SUBMIT yet", STOP).action is None
    assert grammar.parse("```\nSUBMIT\n```", STOP).action is None
    assert grammar.parse("done\n  SUBMIT\r\n", STOP).action == Action(ActionKind.FINISH)
    assert run_of(grammar, "```python\nSUBMIT\n```") == "SUBMIT"
    assert run_of(grammar, "``` Python title=x\nx()\n```") == "x()"
    assert run_of(grammar, "1. do it\n   ```python\n   if x:\n       y()\n   ```\n") == "if x:\n    y()"


@pytest.mark.parametrize(
    "code",
    [
        "print(1)",
        "\n\nx = 1\n\n",
        's = """\n```\n"""',
        "# ends in </code>\nx = 1  # </code>",
        "x = 1 # ```\n",
        "'''\n</code>\n</tool_call>\n'''",
        "s = '<think>'\nt = '</think>'",
        "'''\n<tool_response>\nObservation: 1\n'''",
    ],
)
@pytest.mark.parametrize(
    "note", ["", "plain", "with ```python\nfences\n``` and <think> tags </think>", "SUBMIT\nSCORE"]
)
def test_render_is_read_back(grammar: Grammar, code: str, note: str) -> None:
    for action in (Action(ActionKind.RUN, code), Action(ActionKind.SCORE), Action(ActionKind.FINISH)):
        parsed = grammar.parse(grammar.render(note, action), STOP)
        assert (parsed.action, parsed.in_form, parsed.notes) == (action, True, ())


def test_unknown_grammar_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'fenced'"):
        get_grammar("fence")


HOSTILE = ["\x00", "\ud800", "```python\n", "```", "<think>", "</think>", "<tool_call>", "</tool_call>", "<code>"]
HOSTILE += ["</code>", "<answer>", "</answer>", "SUBMIT\n", '"""', "'''", "\\", "\n", "x", "{", '"', "Observation:"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=30), st.sampled_from(list(FinishReason)))
def test_hostile_replies_never_raise_and_survive_json(parts: list[str], finish: FinishReason) -> None:
    for name in GRAMMAR_NAMES:
        parsed = get_grammar(name).parse("".join(parts), finish)
        text = parsed.kept + (parsed.action.code if parsed.action else "")
        assert json.loads(json.dumps(text).encode()) == text
        text.encode()
        assert (parsed.action is not None) == (parsed.status is ReplyStatus.ACTION)


PAIRS = ["<think></think>", "<think>a</think>\n```python\nx\n```\n", "```python\nx\n```\n", '"""\n```\n', "'\\''\n"]
PAIRS += [
    "<think>a</think>\n<tool_call>\npython\n<code>\nx\n</code>\n</tool_call>\n",
    '"""</code>\n',
    "```\n```python\n",
]


@pytest.mark.parametrize("piece", HOSTILE + PAIRS)
def test_a_huge_reply_of_anything_is_read_in_linear_time(grammar: Grammar, piece: str) -> None:
    start = time.process_time()
    for text in (piece * (300_000 // len(piece)), f"{piece}\n" * (300_000 // (len(piece) + 1))):
        grammar.parse(text, STOP)
        grammar.parse(f"<think>a</think>\n{block(grammar, text)}", STOP)
    assert time.process_time() - start < 5


def test_clean_text_replaces_what_json_and_files_cannot_hold() -> None:
    assert clean_text("a\x00b\ud800c\U0001f600") == "a\ufffdb\ufffdc\U0001f600"
