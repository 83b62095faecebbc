"""Forming: a conversation's new messages become memories, piece by piece, each in one step or not at all."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from eunoe.errors import EunoeError
from eunoe.form import consolidation, llm_extraction, resolution, retention, rule_extraction
from eunoe.form.llm_extraction import Unusable
from eunoe.form.proposal import Known, Proposal
from eunoe.kit import Kit
from eunoe.llm.answers import UNUSABLE
from eunoe.llm.contract import Llm
from eunoe.model.atom import KINDS
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.model.stream import FormReport, Target
from eunoe.model.time import micros, now
from eunoe.records import jobs
from eunoe.records.revisions import EXTRACTIVE
from eunoe.records.streams import targets
from eunoe.records.turns import Turn, turns_of, users_of
from eunoe.records.vectors import Vectors
from eunoe.store.books import WorkRow
from eunoe.store.contract import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = logging.getLogger("eunoe")
_KNOWN = 40
_KNOWN_EACH = 10
_NEAR = 5
_LONGEST_QUESTION = 2000
_SIGNS_OF_LIFE = 3
"""How often a lease is renewed in its own time."""
_MOST_ATTEMPTS = 5
"""After so many, messages that a model only answers with nonsense are formed without it."""
Near = dict[str, list[str]]


class Offer(NamedTuple):
    """What is proposed for the streams of a conversation."""

    proposals: list[Proposal]
    refused: int = 0
    """Items of a model's answers that cannot be used."""
    failed: tuple[str, ...] = ()
    """What went wrong and was made up for."""

    def of(self, place: int) -> list[Proposal]:
        """What is proposed for one stream."""
        return [proposal for proposal in self.proposals if proposal.target == place]


class Talk(NamedTuple):
    """What one piece of work is about, as it was read."""

    scope: Scope
    work: WorkRow
    turns: list[Turn]
    users: list[str]
    """All who took part in the conversation so far."""
    targets: list[Target]


def form(kit: Kit, scope: Scope, force: bool) -> FormReport:
    """Forms what is due in a conversation; with `force` whatever is there, and at once what failed before."""
    return work_off(kit, scope, least=1 if force else None, again=force)


def work_off(
    kit: Kit, scope: Scope, least: int | None, again: bool, going: Callable[[], bool] = lambda: True
) -> FormReport:
    """Forms piece after piece while there are any and `going` says so. A piece that fails does not stop the rest."""
    report, tried = FormReport(), set[int]()
    while going() and (job := _claimed(kit.store, scope, least, again, tried)):
        tried.add(job.start)
        report += _attempt(kit, scope, job)
        streams = fed(kit.store, scope)
        report += consolidated(kit, streams) + tidied(kit, streams)
    return report if tried or not going() else consolidated(kit, fed(kit.store, scope), again)


def tidied(kit: Kit, scopes: Sequence[Scope]) -> FormReport:
    """Archives what the settings of these streams do not keep."""
    return sum((_tidied(kit, scope) for scope in scopes), FormReport())


def _tidied(kit: Kit, scope: Scope) -> FormReport:
    try:
        retention.tidy(kit, scope, {}, dry_run=False)
    except Exception as error:
        return FormReport(failed=(told(f"the clean-up of {scope}", error),))
    return FormReport()


def consolidated(kit: Kit, scopes: Sequence[Scope], again: bool = False) -> FormReport:
    """Brings the summaries of these streams up to date where that is due; with `again` at once what failed before."""
    return sum((_consolidated(kit, scope, again) for scope in scopes), FormReport())


def _consolidated(kit: Kit, scope: Scope, again: bool) -> FormReport:
    before = _attempts(kit.store, scope)[0]
    try:
        if consolidation.consolidate(kit, scope, force=again and before > 0):
            return FormReport(consolidated=(scope,))
    except Exception as error:
        return FormReport(failed=(told(f"the summary of {scope}", error),))
    attempts, fault = _attempts(kit.store, scope)
    return FormReport(failed=(f"the summary of {scope}: {fault}",) if attempts > before else ())


def _attempts(store: Store, scope: Scope) -> tuple[int, str]:
    """How often a summary could not be written, and why not."""
    with store.reading():
        stream = store.stream(str(scope))
        summary = store.books.summary(stream.id) if stream else None
        return (summary.attempts, summary.error) if summary else (0, "")


def fed(store: Store, scope: Scope) -> list[Scope]:
    """The streams that a conversation feeds."""
    with store.reading():
        stream = store.stream(str(scope))
        users = jobs.users_of(store.books.session(stream.id)) if stream else []
        return [target.scope for target in targets(store, scope, users)]


def _claimed(store: Store, scope: Scope, least: int | None, again: bool, tried: set[int]) -> WorkRow | None:
    with store.reading():
        if not jobs.may_claim(store, scope, least, again, tried):
            return None
    with store.writing():
        return jobs.claim(store, scope, least, again, tried)


def _attempt(kit: Kit, scope: Scope, job: WorkRow) -> FormReport:
    """One piece of work to its end, good or bad."""
    store = kit.store
    seen = _versions(store, scope)
    try:
        return _formed(kit, scope, job)
    except Exception as error:
        failure = told(f"messages of {scope}", error)
        with store.writing():
            if any(store.removed(stream, version) for stream, version in seen.items()):
                failure = jobs.CLEARED  # it may repeat what was forgotten meanwhile
            jobs.fail(store, job, failure)
        return FormReport(failed=(failure,))
    except BaseException:
        with store.writing():
            jobs.let_go(store, job)
        raise


def _versions(store: Store, scope: Scope) -> dict[int, int]:
    """How the streams stand that a model is going to read."""
    with store.reading():
        streams = [store.stream(str(each)) for each in (scope, *fed(store, scope))]
        return {stream.id: stream.version for stream in streams if stream}


def told(what: str, error: Exception) -> str:
    """A fault in one line. Of one that nobody foresaw only the kind is told, since it may repeat what was said; the log
    has the rest."""
    if isinstance(error, EunoeError):
        return f"{what}: {error}"
    _log.error("forming failed: %s", what, exc_info=error)
    return f"{what}: {type(error).__name__}"


def _formed(kit: Kit, scope: Scope, job: WorkRow) -> FormReport:
    talk = _read(kit.store, scope, job)
    with _held(kit.store, job):
        offer = _offered(kit, talk)
        texts = [proposal.text for proposal in offer.proposals]
        vectors = kit.embedding.ahead(texts) if texts else Vectors()
        near = [_near(kit, target, offer.of(place), vectors) for place, target in enumerate(talk.targets)]
    return _settled(kit.store, talk, offer, near, vectors)


def _read(store: Store, scope: Scope, job: WorkRow) -> Talk:
    with store.reading():
        rows = jobs.messages(store, job)
        here = list(filter(jobs.is_name, users_of(rows, scope)))
        known = jobs.users_of(store.books.session(job.stream))
        return Talk(
            scope, job, turns_of(rows, scope), list(dict.fromkeys([*known, *here])), targets(store, scope, here)
        )


@contextmanager
def _held(store: Store, job: WorkRow) -> Iterator[None]:
    """Renews the lease as long as a model thinks."""
    done = threading.Event()
    keeper = threading.Thread(target=_keep, args=(store, job, done), name="eunoe-lease")
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join()


def _keep(store: Store, job: WorkRow, done: threading.Event) -> None:
    while not done.wait(jobs.lease() / _SIGNS_OF_LIFE):
        try:
            with store.writing():
                if not jobs.renew(store, job):
                    return
        except EunoeError as error:
            _log.warning("a lease could not be renewed: %s", error)


def _offered(kit: Kit, talk: Talk) -> Offer:
    """What is proposed for each stream, with one call for all streams that share a model."""
    if not talk.turns or not talk.targets:
        return Offer([])
    groups: dict[int, list[int]] = defaultdict(list)
    models = [kit.models.named(target.settings.extraction_model) for target in talk.targets]
    for place, model in enumerate(models):
        groups[id(model)].append(place)
    offers = [_placed(_asked(kit, models[places[0]], talk, places), places) for places in groups.values()]
    return Offer(
        _checked(talk, [proposal for offer in offers for proposal in offer.proposals]),
        sum(offer.refused for offer in offers),
        tuple(failure for offer in offers for failure in offer.failed),
    )


def _placed(offer: Offer, places: Sequence[int]) -> Offer:
    """An offer to some of the targets as one to all."""
    return offer._replace(proposals=[replace(proposal, target=places[proposal.target]) for proposal in offer.proposals])


def _asked(kit: Kit, model: Llm | None, talk: Talk, places: Sequence[int]) -> Offer:
    chosen = [talk.targets[place] for place in places]
    if model is None:
        return _extracted(chosen, talk)
    try:
        found = llm_extraction.propose(model, chosen, talk.turns, _known(kit, chosen, talk.turns), now())
    except Unusable as error:
        if not _is_hopeless(talk.work):
            raise
        said = f"messages of {talk.scope}: {error}; after {talk.work.attempts + 1} attempts formed without the model"
        _log.warning("%s", said)
        return _extracted(chosen, talk)._replace(failed=(said,))
    return Offer([replace(proposal, author=model.name) for proposal in found.proposals], found.refused)


def _extracted(chosen: Sequence[Target], talk: Talk) -> Offer:
    return Offer([replace(proposal, author=EXTRACTIVE) for proposal in rule_extraction.propose(chosen, talk.turns)])


def _is_hopeless(job: WorkRow) -> bool:
    """Whether an answer that cannot be used was the last of many attempts, and no server that was away is to blame."""
    return job.attempts + 1 >= _MOST_ATTEMPTS and UNUSABLE in job.error


def _known(kit: Kit, chosen: Sequence[Target], turns: Sequence[Turn]) -> list[Known]:
    """Memories of these streams that bear on the talk."""
    question = "\n".join(turn.text for turn in turns)[-_LONGEST_QUESTION:]
    places = {target.scope: place for place, target in enumerate(chosen)}
    found: dict[int, list[Known]] = defaultdict(list)
    for hit in _find(kit, list(places), question, _KNOWN):
        place = places[hit.item.scope] if hit.item.scope else 0
        if len(found[place]) < _KNOWN_EACH:
            found[place].append(Known(place, hit.id, hit.text))
    return [known for place in sorted(found) for known in found[place]]


def _near(kit: Kit, target: Target, offer: Sequence[Proposal], vectors: Vectors) -> Near:
    """Living memories of a stream that may say the same as a proposal, by its text."""
    if not offer or not _has_atoms(kit.store, target.scope):
        return {}
    texts = dict.fromkeys(proposal.text for proposal in offer)
    return {text: [hit.id for hit in _find(kit, [target.scope], text, _NEAR, vectors.whole(text))] for text in texts}


def _has_atoms(store: Store, scope: Scope) -> bool:
    with store.reading():
        stream = store.stream(str(scope))
        return stream is not None and any(store.books.latest(stream.id, kind, 1) for kind in KINDS)


def _find(
    kit: Kit, scopes: Sequence[Scope], question: str, limit: int, vector: NDArray[np.float32] | None = None
) -> list[Hit]:
    """Facts and observations close to a text, whose vector may be at hand."""
    from eunoe.recall.filters import Filter
    from eunoe.recall.recipes import RECIPES
    from eunoe.recall.request import Request
    from eunoe.recall.search import find

    request = Request(
        query=question,
        filter=Filter(kinds=frozenset(KINDS)),
        recipe=RECIPES["default"],
        now=now().timestamp(),
        limit=limit,
        tokens=None,
        vector=vector,
    )
    return find(kit.store, kit.shelf, kit.embedding, scopes, request)


def _checked(talk: Talk, offer: list[Proposal]) -> list[Proposal]:
    """Proposals with the sources they may have: in a group, a user's memory rests on no other user's words. One that
    does may hold them, so that it loses all its sources and is refused."""
    if len(talk.users) < 2:
        return offer
    speaker = {turn.id: turn.user for turn in talk.turns}
    return [_own(proposal, talk.targets[proposal.target].user, speaker) for proposal in offer]


def _own(proposal: Proposal, user: str, speaker: dict[str, str]) -> Proposal:
    if not user or {speaker.get(id, "") for id in proposal.sources} in ({user}, {user, ""}):
        return proposal
    return replace(proposal, sources=())


def _settled(store: Store, talk: Talk, offer: Offer, near: Sequence[Near], vectors: Vectors) -> FormReport:
    """Writes the memories of all streams and ends the work, in one step; nothing if the work is no longer ours."""
    with store.writing():
        if not jobs.finish(store, talk.work):
            return FormReport()
        there = {row.id for row in store.by_id(talk.work.stream, [turn.id for turn in talk.turns])}
        turns = [turn for turn in talk.turns if turn.id in there]
        kept = [each for each in offer.proposals if each.sources and there.issuperset(each.sources)]
        refused = offer.refused + len(offer.proposals) - len(kept)
        report = FormReport(messages=len(turns), refused=refused, failed=offer.failed)
        for place, target in enumerate(talk.targets):
            if mine := [proposal for proposal in kept if proposal.target == place]:
                moment = micros(now())
                report += resolution.settle(store, talk.scope, target, mine, turns, near[place], vectors, moment)
        return report
