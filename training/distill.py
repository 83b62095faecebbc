"""A student of several teachers: it learns how near they put texts to one another, then to find what answers."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import measure
import torch
from corpus import DocumentSet, TalkStream, endless_batches
from encoder import Encoder
from texts import TextPool
from torch import Tensor
from torch.nn import functional
from train import label_loss, make_optimiser, near_passages

Log = Callable[[int, dict], None]
AVERAGE_EVERY_STEPS = 5
GROUP_SIZE = 32


@dataclass
class StudentSettings:
    """Those of `settings.toml`."""

    seed: int
    layers: list[int]
    """Those of the first teacher that the student starts from."""
    text_steps: int
    text_rate: float
    text_batch: int
    text_temperature: float
    foreign: float
    """The share of a batch of texts that is in other languages."""
    anchor: float
    """What it costs to leave the first teacher's vectors."""
    task_steps: int
    task_rate: float
    warmup: float
    decay: float
    dropout: float
    temperature: float
    conversations: int
    queries: int
    passages_every: int
    passage_questions: int
    hard: int
    teach: float
    """What the teachers count beside the labels."""
    translated: float
    """The share of questions that are asked in another language, where somebody has translated them."""
    average: float
    """The weights are the mean over this last share of the steps."""


class Schedule(NamedTuple):
    """What the optimiser needs to know of one part of the training."""

    rate: float
    steps: int
    warmup: float
    decay: float


class TaskBatch(NamedTuple):
    texts: list[str]
    queries: list[str]
    """As the student reads them."""
    english: list[str]
    """As the teachers read them."""
    gold: list[list[int]]
    technical: list[bool]


class Teachers:
    """Encoders whose similarities are averaged. The first does not count in technical text, which it does not know."""

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        self.encoders = [each.eval() for each in encoders]
        self._place: dict[str, int] = {}
        self._kept: list[Tensor] = []

    def keep(self, texts: Sequence[str]) -> None:
        """Make the vectors of these texts now, once for all steps."""
        unique = list(dict.fromkeys(texts))
        self._kept = self._embed(unique)
        self._place = {text: place for place, text in enumerate(unique)}

    def vectors(self, texts: Sequence[str]) -> list[Tensor]:
        if not all(text in self._place for text in texts):
            return self._embed(texts)
        places = torch.tensor([self._place[text] for text in texts], device=self._kept[0].device)
        return [each[places] for each in self._kept]

    def _embed(self, texts: Sequence[str], size: int = 20000) -> list[Tensor]:
        parts = range(0, len(texts), size)
        return [
            torch.cat([measure.vectors(each, texts[at : at + size]).half() for at in parts]) for each in self.encoders
        ]

    def similarities(self, queries: list[Tensor], texts: list[Tensor], technical: Tensor) -> Tensor:
        """Mean similarities; the rows that are technical leave the first teacher out where there are others."""
        each = [left.float() @ right.float().T for left, right in zip(queries, texts, strict=True)]
        mean = sum(each) / len(each)
        if len(each) == 1:
            return mean
        return torch.where(technical[:, None], sum(each[1:]) / (len(each) - 1), mean)


def learn_texts(student: Encoder, teachers: Teachers, pool: TextPool, settings: StudentSettings, log: Log) -> None:
    """The first part: texts alone. The student learns how near to one another they are."""
    device = next(student.parameters()).device
    cache = teachers.vectors(pool.english)
    technical = torch.tensor(pool.technical, device=device)
    chance = random.Random(settings.seed)
    schedule = Schedule(settings.text_rate, settings.text_steps, settings.warmup, settings.decay)
    optimiser, pace = make_optimiser(student, schedule)
    student.train()
    student.set_dropout(0.0)
    for step in range(settings.text_steps):
        texts, places = zip(*_text_batch(pool, settings, chance), strict=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            vectors = student(texts)
        place = torch.tensor(places, device=device)
        wanted = [each[place] for each in cache]
        similar = teachers.similarities(wanted, wanted, technical[place])
        loss = _text_loss(vectors, similar, wanted[0].float(), technical[place], settings)
        _update(student, loss, optimiser, pace)
        log(step, {"texts": loss})


def _text_batch(pool: TextPool, settings: StudentSettings, chance: random.Random) -> list[tuple[str, int]]:
    """Texts and the places of their English. A third of the English ones are from few groups, where texts are hard to
    tell apart, the rest from anywhere."""
    foreign = chance.sample(pool.foreign, min(int(settings.foreign * settings.text_batch), len(pool.foreign)))
    english = settings.text_batch - len(foreign)
    places: list[int] = []
    while len(places) < english // 3:
        group = chance.choice(pool.groups)
        places += chance.sample(group, min(GROUP_SIZE, len(group)))
    places += (chance.randrange(len(pool.english)) for _ in range(english - len(places)))
    return [*((pool.english[place], place) for place in dict.fromkeys(places)), *foreign]


def _text_loss(
    vectors: Tensor, similar: Tensor, anchor: Tensor, technical: Tensor, settings: StudentSettings
) -> Tensor:
    itself = torch.eye(len(vectors), device=vectors.device, dtype=torch.bool)
    theirs, own = (
        torch.log_softmax((each / settings.text_temperature).masked_fill(itself, -1e4), -1)
        for each in (similar, vectors @ vectors.T)
    )
    away = (1 - (vectors * anchor).sum(-1)) * ~technical
    return functional.kl_div(own, theirs, reduction="batchmean", log_target=True) + settings.anchor * away.mean()


def learn_task(
    student: Encoder,
    teachers: Teachers,
    talk: Sequence[TalkStream],
    corpora: Sequence[DocumentSet],
    technical: Sequence[DocumentSet],
    settings: StudentSettings,
    log: Log,
) -> dict[str, Tensor]:
    """The second part: questions and what answers them, the labels and the teachers together. Gives the weights."""
    teachers.keep(_task_texts(talk, [*corpora, *technical]))
    talks = _talk_batches(talk, settings)
    passages = _passage_batches(student, corpora, technical, settings)
    schedule = Schedule(settings.task_rate, settings.task_steps, settings.warmup, settings.decay)
    optimiser, pace = make_optimiser(student, schedule)
    student.train()
    student.set_dropout(settings.dropout)
    seen: list[dict[str, Tensor]] = []
    for step in range(settings.task_steps):
        is_passage = step % settings.passages_every == settings.passages_every - 1
        loss = _task_loss(student, teachers, next(passages if is_passage else talks), settings)
        _update(student, loss, optimiser, pace)
        log(step, {"passages" if is_passage else "talk": loss})
        if step >= (1 - settings.average) * settings.task_steps and step % AVERAGE_EVERY_STEPS == 0:
            seen.append({name: value.detach().clone() for name, value in student.state_dict().items()})
    return {name: (sum(each[name] for each in seen) / len(seen)).cpu() for name in seen[0]} if seen else student.state()


def _task_texts(talk: Sequence[TalkStream], corpora: Sequence[DocumentSet]) -> list[str]:
    queries = [stream.query_text(each.text) for stream in talk for each in stream.questions + stream.facts]
    asked = [each.text for corpus in corpora for each in corpus.questions]
    turns = [text for stream in talk for text in stream.turns]
    return [*turns, *queries, *asked, *(text for corpus in corpora for text in corpus.passages)]


def _task_loss(student: Encoder, teachers: Teachers, batch: TaskBatch, settings: StudentSettings) -> Tensor:
    device = next(student.parameters()).device
    count = len(batch.texts)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        vectors = student([*batch.texts, *batch.queries])
    theirs = teachers.vectors([*batch.texts, *batch.english])
    technical = torch.tensor(batch.technical, device=device)
    wanted = teachers.similarities([each[count:] for each in theirs], [each[:count] for each in theirs], technical)
    wanted = torch.log_softmax(wanted / settings.temperature, -1)
    similar = vectors[count:] @ vectors[:count].T
    own = torch.log_softmax(similar / settings.temperature, -1)
    taught = functional.kl_div(own, wanted, reduction="batchmean", log_target=True)
    return label_loss(similar, batch.gold, settings.temperature) + settings.teach * taught


def _talk_batches(talk: Sequence[TalkStream], settings: StudentSettings) -> Iterator[TaskBatch]:
    chance = random.Random(settings.seed)
    for chosen in endless_batches(talk, settings.conversations, chance):
        batch = TaskBatch([], [], [], [], [])
        for stream in chosen:
            places = len(batch.texts)
            batch.texts.extend(stream.turns)
            pool = stream.questions + stream.facts
            for each in chance.sample(pool, min(settings.queries, len(pool))):
                translate = each.translations and chance.random() < settings.translated
                asked = chance.choice(each.translations) if translate else each.text
                batch.queries.append(stream.query_text(asked))
                batch.english.append(stream.query_text(each.text))
                batch.gold.append([places + row for row in each.gold])
                batch.technical.append(False)
        yield batch


def _passage_batches(
    student: Encoder, corpora: Sequence[DocumentSet], technical: Sequence[DocumentSet], settings: StudentSettings
) -> Iterator[TaskBatch]:
    chance = random.Random(settings.seed + 1)
    pool = [
        (corpus, each, near, is_technical)
        for is_technical, group in ((False, corpora), (True, technical))
        for corpus in group
        for each, near in near_passages(student, corpus)
    ]
    for chosen in endless_batches(pool, settings.passage_questions, chance):
        texts: dict[str, int] = {}
        gold = []
        for corpus, each, near, _ in chosen:
            gold.append([texts.setdefault(corpus.passages[row], len(texts)) for row in each.gold])
            for row in chance.sample(near, min(settings.hard, len(near))):
                texts.setdefault(corpus.passages[row], len(texts))
        questions = [each.text for _, each, _, _ in chosen]
        yield TaskBatch(list(texts), questions, questions, gold, [each[3] for each in chosen])


def _update(student: Encoder, loss: Tensor, optimiser: torch.optim.Optimizer, pace: object) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimiser.step()
    pace.step()
