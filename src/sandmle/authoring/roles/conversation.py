"""One role's conversation: ask, look at the reply, send it back with the reason, a bounded number of times."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

from sandmle.authoring.roles.journal import Journal, ReplyLine
from sandmle.authoring.roles.ledger import Ledger, tokens_of
from sandmle.authoring.roles.outputs import RoleName
from sandmle.authoring.roles.prompts import render
from sandmle.authoring.roles.reading import Complaint
from sandmle.authoring.roles.talking import Responder, Said
from sandmle.errors import AuthoringError, ContextOverflowError

Judged = TypeVar("Judged")
ROLE_WORDS: dict[RoleName, str] = {
    "strategist": "Data Strategist",
    "developer": "ML Developer",
    "mlops": "MLOps Engineer",
    "writer": "Technical Writer",
    "reviewer": "reviewer",
}


@dataclass(frozen=True)
class Line:
    """A task's line to the model: what is on record is answered from there, the rest is asked and recorded.

    Attributes:
        journal: The task's record.
        responder: The model; None in a replay, where nothing may be asked.
        ledger: What all tasks spend together.
        slots: Bound on requests in flight.
        disk: Threads that wait for the disk, so that other tasks need not.
        max_tokens: Longest reply.
    """

    journal: Journal
    responder: Responder | None
    ledger: Ledger
    slots: asyncio.Semaphore
    disk: Executor
    max_tokens: int

    async def ask(self, role: RoleName, conversation: list[Said]) -> ReplyLine:
        """Returns the next reply.

        Raises:
            AuthoringError: There is no further reply on record and nobody to ask, or the context is full.
            BudgetSpentError: The budget allows no further request.
            PolicyError, UnusableModelError: The model gives no reply.
        """
        known = self.journal.next(role)
        if known is not None:
            return known
        if self.responder is None:
            raise AuthoringError(f"the recording ends where the {ROLE_WORDS[role]} is asked", lost_to="recording_ends")
        n_chars = sum(len(said.text) for said in conversation)
        async with self.slots, self.ledger.reserved(n_chars, self.max_tokens):
            start_s = time.monotonic()
            try:
                answer = await self.responder.ask(conversation)
            except ContextOverflowError as error:
                raise AuthoringError(str(error), lost_to="context_full") from error
            spent = answer.prompt_tokens, answer.completion_tokens
            if spent == (0, 0):  # a server that does not count: what the texts must have taken
                spent = tokens_of(n_chars), tokens_of(len(answer.text))
            line = ReplyLine(
                role=role,
                text=answer.text,
                finish_reason=answer.finish_reason,
                prompt_tokens=spent[0],
                completion_tokens=spent[1],
                cost_usd=self.ledger.price_of(*spent),
                prompt=conversation[-1].text,
                wait_s=round(time.monotonic() - start_s, 3),
            )
            await asyncio.get_running_loop().run_in_executor(self.disk, self.journal.append, line)
            self.ledger.add(line)
        return line


@dataclass
class Conversation:
    """What is said between us and one role about one task.

    Attributes:
        line: Where replies come from.
        role: The role.
        repairs_left: Replies that may still be sent back.
    """

    line: Line
    role: RoleName
    repairs_left: int
    _said: list[Said] = field(default_factory=list)
    _last_complaint: str = ""

    @classmethod
    def open(cls, line: Line, role: RoleName, repairs: int, **facts: object) -> "Conversation":
        """Returns a conversation that begins with the role's prompt, filled in with ``facts``."""
        system, user = render(role, **facts)
        return cls(line, role, repairs, [Said("system", system), Said("user", user)])

    async def until(self, judge: Callable[[str], Awaitable[Judged]]) -> Judged:
        """Asks until the judge is content.

        Args:
            judge: Turns a reply into a value, or raises :class:`Complaint`.

        Raises:
            AuthoringError: No repair is left; it names the last complaint.
        """
        while True:
            line = await self._ask()
            self._said.append(Said("assistant", line.text))
            try:
                _refuse_unfinished(line)
                return await judge(line.text)
            except Complaint as complaint:
                self.send_back(complaint)

    async def _ask(self) -> ReplyLine:
        """Returns the next reply; where there is none, the reason tells what the reply before was sent back for."""
        try:
            return await self.line.ask(self.role, self._said)
        except AuthoringError as error:
            if not self._last_complaint:
                raise
            raise AuthoringError(f"{error}, after {self._last_complaint}", lost_to=error.lost_to) from error

    def send_back(self, complaint: Complaint) -> None:
        """Tells the role what is wrong with its work; the next ``until`` hears its answer.

        Raises:
            AuthoringError: No repair is left.
        """
        if self.repairs_left <= 0:
            raise AuthoringError(
                f"the {ROLE_WORDS[self.role]}'s work was refused: {complaint.summary}", lost_to=complaint.kind
            ) from complaint
        self.repairs_left -= 1
        self._last_complaint = complaint.summary
        self.line.ledger.n_repairs += 1
        _, text = render("repair", detail=complaint.detail, role=self.role)
        self._said.append(Said("user", text))


def _refuse_unfinished(line: ReplyLine) -> None:
    if line.finish_reason == "length":
        raise Complaint("truncated_reply", "the reply was cut off at the longest length; answer again, shorter")
    if line.finish_reason == "content_filter":
        raise Complaint("refusal", "the provider's filter withheld the reply")
    if not line.text.strip():
        raise Complaint("empty_reply", "the reply is empty")
