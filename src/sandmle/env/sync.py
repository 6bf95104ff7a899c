"""The plain face of an episode, for trainers and scripts without an event loop."""

import asyncio
from types import TracebackType
from typing import Self

from sandmle.env.episode import Episode
from sandmle.env.results import EpisodeResult, StepResult
from sandmle.grammars.scan import clean_text
from sandmle.records import Completion, Message


class SyncEpisode:
    """The same episode with calls that block. Not to be used from within an event loop; one thread at a time."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self._runner = asyncio.Runner()
        self._is_closed = False

    @property
    def episode(self) -> Episode:
        """The asynchronous episode behind it."""
        return self._episode

    def reset(self) -> tuple[Message, ...]:
        """Starts the episode anew and returns its first messages."""
        return self._runner.run(self._episode.reset())

    def step(self, reply: str | Completion) -> StepResult:
        """Carries out the one action of a reply."""
        completion = reply if isinstance(reply, Completion) else Completion(text=clean_text(reply))
        return self._runner.run(self._episode.step(completion))

    def grade(self) -> EpisodeResult:
        """Grades the last submission.csv."""
        return self._runner.run(self._episode.grade())

    def close(self) -> None:
        """Removes the workspace and ends the loop; the episode cannot be used again. Idempotent."""
        if not self._is_closed:
            self._runner.run(self._episode.aclose())
            self._runner.close()
            self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
