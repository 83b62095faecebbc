"""The verbs of `Memory` that change what is there: update it, let it expire, take it back, pin it, forget it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from eunoe.engine import Engine
from eunoe.errors import InputError, NotFoundError
from eunoe.memory.guard import Guard
from eunoe.model.arguments import TimeLike, as_list, check_flag, check_id, check_names, check_text, parse_optional_time
from eunoe.model.result import ForgetReport, Receipt
from eunoe.model.scope import Scope, ScopeLike, Scopes
from eunoe.records.expiry import expire_atoms
from eunoe.records.forgetting import ByIds, ByPerson, Everything, Selection
from eunoe.records.reading import find_place
from eunoe.records.retraction import retract_messages

T = TypeVar("T")


class Amendment:
    """A part of `Memory`."""

    _engine: Engine
    _guard: Guard

    def _change(self, owner: Scope, ids: Sequence[str], verb: Callable[..., T], *args: Any) -> T:
        """Run a verb that changes what has these ids in one scope. The error says if they are elsewhere within it."""
        try:
            return self._engine.run(verb, *args)
        except NotFoundError as error:
            place = self._engine.run(find_place, self._engine.store, owner, ids)
            if place is None:
                raise
            raise NotFoundError(f"{error}; {place} has it: name that scope") from error

    def update(self, scope: ScopeLike, /, id: str, text: str | None = None, **changes: Any) -> Receipt:
        """Close an atom and put a new one in its place; the old one stays readable.

        Takes what `remember` takes. `valid_from` says since when the new one is true; now, if it is not given.

        >>> with eunoe.open(":memory:") as memory:
        ...     old = memory.remember("user=anna", "Anna lives in Paris.")
        ...     new = memory.update("user=anna", old.id, "Anna lives in Rome.")
        ...     [version.text for version in memory.history("user=anna", new.id)]
        ['Anna lives in Paris.', 'Anna lives in Rome.']
        """
        owner = self._guard.scope(scope, "write")
        scopes = self._guard.source_scopes(changes.pop("source_scopes", ()))
        changed = self._guard.changes(changes, owner)
        return self._change(owner, [check_id(id)], self._engine.update, owner, id, text, changed, scopes)

    def expire(self, scope: ScopeLike, ids: str | Iterable[str], at: TimeLike | None) -> list[Receipt]:
        """Set until when atoms hold, in place and without a new version; None means for ever.

        From then on `recall` leaves them out unless `expired=True`; `get`, `list` and `history` show them.

        >>> with eunoe.open(":memory:") as memory:
        ...     kept = memory.remember("user=anna", "Anna is in Rome this week.")
        ...     _ = memory.expire("user=anna", kept.id, "2024-05-12")
        ...     len(memory.recall("user=anna", "Rome")), len(memory.recall("user=anna", "Rome", expired=True))
        (0, 1)
        """
        owner = self._guard.scope(scope, "write")
        wanted = [check_id(id, "ids") for id in check_names(as_list(ids, "ids"), "ids")]
        end = parse_optional_time(at, "at")
        return self._change(owner, wanted, expire_atoms, self._engine.store, owner, wanted, end)

    def retract(self, scope: ScopeLike, ids: str | Iterable[str], retracted: bool = True) -> list[Receipt]:
        """Take messages back that somebody edited, deleted or had answered anew; with `retracted=False` restore them.

        They stay in the log, word for word: `get` and `list(retired=True)` show them. Nothing is recalled or learned
        from them any more; what was learned from them before stays until it is changed or forgotten.

        >>> with eunoe.open(":memory:") as memory:
        ...     said = memory.observe("user=anna", ["I live in Paris.", "I live in Rome."])
        ...     _ = memory.retract("user=anna", said[0].id)
        ...     [hit.text for hit in memory.recall("user=anna", "Where do I live?")]
        ['I live in Rome.']
        """
        owner = self._guard.scope(scope, "write")
        wanted = [check_id(id, "ids") for id in check_names(as_list(ids, "ids"), "ids")]
        flag = check_flag(retracted, "retracted")
        return self._change(owner, wanted, retract_messages, self._engine.store, owner, wanted, flag)

    def pin(self, scope: ScopeLike, id: str, pinned: bool = True) -> Receipt:
        """Mark an atom or message as one that no clean-up may take, or take the mark off."""
        owner = self._guard.scope(scope, "write")
        flag = check_flag(pinned, "pinned")
        return self._change(owner, [check_id(id)], self._engine.pin, owner, id, flag)

    def forget(
        self,
        scope: Scopes,
        ids: str | Iterable[str] = (),
        *,
        person: str = "",
        mentions: bool = False,
        everything: bool = False,
        may_return: bool = False,
        verify: bool = False,
        exact: bool = False,
    ) -> ForgetReport:
        """Remove memories for good: these ids, a person, or everything in the scope. Name exactly one of the three.

        A user's scope means everything within: their sessions, and what agents keep about them.

        An atom goes with all its versions, a message with every atom that rests on it. What was forgotten is refused
        when the same log or import is read again.

        The report names, by scope, what still has the words: a message that a memory came from stays.

        Args:
            ids: in a user's scope `@SCOPE#ID` names one of several with the same id.
            person: what they said and what is noted about them. `mentions` also takes what others said of them.
            may_return: leave no tombstones, so that the same text may be stored again.
            verify: search every table, file, index and cache for what should be gone.
            exact: the one scope that is named, where a user's would mean everything within.

        >>> with eunoe.open(":memory:") as memory:
        ...     kept = memory.remember("user=anna", "Anna's PIN is 4711.")
        ...     report = memory.forget("user=anna", kept.id, verify=True)
        ...     report.atoms == (kept.id,), report.verified, memory.remember("user=anna", "Anna's PIN is 4711.").outcome
        (True, True, 'forgotten')
        """
        scopes = self._guard.reaches(scope, "forget", exact)
        wanted = check_names(as_list(ids, "ids") if ids != "" else (), "ids")
        person = check_text(person, "person").strip()
        flags = {"mentions": mentions, "everything": everything, "may_return": may_return, "verify": verify}
        for name, flag in flags.items():
            check_flag(flag, name)
        if bool(wanted) + bool(person) + everything != 1:
            raise InputError("say what to forget: ids, a person, or everything=True for the whole scope")
        selection: Selection = ByIds(wanted) if wanted else ByPerson(person, mentions) if person else Everything()
        return self._engine.run(self._engine.forget, scopes, selection, may_return, verify, self._guard.bounds)
