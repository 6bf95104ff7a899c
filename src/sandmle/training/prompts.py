"""The texts that a model in training meets, without running an episode."""

from collections.abc import Iterator, Mapping

from sandmle.env import EpisodeConfig
from sandmle.env.prompting import opening_messages
from sandmle.grammars import get_grammar
from sandmle.records import Message
from sandmle.tasks import Bundle
from sandmle.training.recipe import Recipe
from sandmle.training.tiny import Text


def first_messages(bundle: Bundle, config: EpisodeConfig) -> tuple[Message, ...]:
    """Returns the messages that an episode of a task begins with."""
    paths = [path.removeprefix("public/") for path in bundle.spec.files if path.startswith("public/")]
    return opening_messages(config, get_grammar(config.grammar), bundle.description(), paths, bundle.spec.limits)


def tokenizer_texts(tasks: Mapping[str, Bundle], recipe: Recipe) -> Iterator[Text]:
    """Yields what the tokenizer of a model made on the spot is trained on: the first messages of the tasks."""
    for task_id in sorted(tasks):
        for message in first_messages(tasks[task_id], recipe.episode):
            yield task_id, message.content
