"""Action grammars: the forms in which a model's reply says what to do.

The ``tools`` grammar (native function calls) is not built yet.
"""

from sandmle.errors import unknown_name
from sandmle.grammars.base import Action, Grammar, ParsedReply
from sandmle.grammars.fenced import FencedGrammar
from sandmle.grammars.react import ReactGrammar

GRAMMAR_NAMES: tuple[str, ...] = ("react", "fenced")

__all__ = ["GRAMMAR_NAMES", "Action", "FencedGrammar", "Grammar", "ParsedReply", "ReactGrammar", "get_grammar"]


def get_grammar(name: str) -> Grammar:
    """Returns a grammar by name.

    Raises:
        ConfigError: There is no grammar of that name.
    """
    if name == "react":
        return ReactGrammar()
    if name == "fenced":
        return FencedGrammar()
    raise unknown_name("grammar", name, GRAMMAR_NAMES)
