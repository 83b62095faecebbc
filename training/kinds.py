"""Trains the model that says what kind of thing a turn holds, and measures it; needs numpy and the package alone.

    python training/kinds.py              train, measure, and write the file that ships
    python training/kinds.py --measure    write nothing
    python training/kinds.py --test       measure what ships on the test part of talk

Three things are learned. The kinds: from `training/turns`, and from some of `training/sentences`. Whether a turn is
worth keeping: from the training part of talk, whose facts name their turns. Whether a sentence is: from
`training/sentences`.
Run it again whenever the encoder or `form/patterns/kinds.toml` has changed.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import sentences
import talk
import turns
from numpy.typing import NDArray

from eunoe.embed.encoder import FOLDER, Encoder
from eunoe.form.turns import (
    BLOCKS,
    MODEL_FILE,
    KindInput,
    KindModel,
    Matrix,
    Projection,
    Regression,
    gaussian_kernel,
    load_kind_model,
    read_features,
    to_probabilities,
)
from eunoe.model.arguments import KEPT_KINDS, TURN_KINDS

KIND_WEIGHTS = (6.0, 4.0, 1.6, 3.0, 1.5)
"""How much each block of features counts in a distance when kinds are told apart."""
KEEP_WEIGHTS = (6.0, 4.0, 1.6, 1.5, 0.75)
"""The same when it is decided what to keep: words matter less there."""
KIND_DIRECTIONS, KEEP_DIRECTIONS = 160, 160
COMPONENTS = 512
"""Principal components among which the directions of kinds are looked for."""
MOST_SENTENCES = {"fact": 250, "plan": 150, "request": 120, "nothing": 250}
"""Labelled sentences that teach kinds; of other kinds all do. In talk itself most hold nothing."""
KIND_RIDGE, SENTENCE_RIDGE, KEEP_RIDGE = 0.05, 0.1, 0.5
PRIOR_SHARE = 0.5
"""How much of the difference counts between how often a kind is among the examples and among sentences of talk."""
KEEP_EXAMPLES = 1200
"""Turns, and sentences, that vote on what to keep: a sample of those that it is learned from."""
TURNS_SHARE, SENTENCES_SHARE = 0.2, 0.8
"""How much all labelled turns count beside all turns, and all sentences, of talk when it is learned what to keep."""
KEEP_WIDTH = 1.2
"""How much wider the kernel is by which it is decided what to keep."""
LEVELS = 15
"""Whole numbers from -15 to 15 take five bits in the file."""
DEVIATIONS = 3.2
"""How many standard deviations they reach."""
FOLDS = 4
NEWTON_STEPS = 30
RECALLS = (0.5, 0.65, 0.8)
ASSISTANT = "Assistant"

Arrays = dict[str, NDArray[Any]]
Bools = NDArray[np.bool_]


@dataclass
class Examples:
    """Rows of features, the numbers of their kinds, where they come from, and how little each is trusted."""

    features: Matrix
    kinds: NDArray[np.int64]
    groups: NDArray[np.str_]
    ridge: Matrix

    def part(self, mask: Bools) -> "Examples":
        return Examples(self.features[mask], self.kinds[mask], self.groups[mask], self.ridge[mask])

    def __add__(self, other: "Examples") -> "Examples":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Examples(*(np.concatenate(pair) for pair in pairs))

    @property
    def is_kept(self) -> Bools:
        return self.kinds < len(KEPT_KINDS)


@dataclass
class Judged:
    """Rows of features, whether each is worth keeping, where they come from, and how much each counts."""

    features: Matrix
    kept: Bools
    groups: NDArray[np.str_]
    weights: Matrix

    def part(self, mask: Bools) -> "Judged":
        return Judged(self.features[mask], self.kept[mask], self.groups[mask], self.weights[mask])

    def joined(self, labelled: Examples, share: float) -> "Judged":
        """With labelled turns, more of which are kept than of what is said: weights make the share the same."""
        own, other = self.kept.mean(), labelled.is_kept.mean()
        weights = np.where(labelled.is_kept, own / other, (1 - own) / (1 - other))
        return Judged(
            np.concatenate([self.features, labelled.features]),
            np.concatenate([self.kept, labelled.is_kept]),
            np.concatenate([self.groups, labelled.groups]),
            np.concatenate([self.weights, weights * share * len(self.kept) / len(weights)]),
        )


def load_turns(encoder: Encoder) -> Examples:
    rows = turns.load()
    inputs = [KindInput(row.text, row.role, row.before, is_to_agent=row.role == "user") for row in rows]
    return _examples(embed(inputs, encoder), [row.kind for row in rows], [row.genre for row in rows], KIND_RIDGE)


def load_sentences(part: str, encoder: Encoder) -> Examples:
    rows = sentences.load(part)
    inputs = [
        _kind_input(row.conversation, row.turn, (row.before, row.continues), row.text)._replace(is_sentence=True)
        for row in rows
    ]
    names = [row.conversation.file for row in rows]
    return _examples(embed(inputs, encoder), [row.kind for row in rows], names, SENTENCE_RIDGE)


def _examples(inputs: Sequence[KindInput], kinds: Sequence[str], groups: Sequence[str], ridge: float) -> Examples:
    numbers = np.array([TURN_KINDS.index(kind) for kind in kinds])
    return Examples(read_features(inputs), numbers, np.array(groups), np.full(len(kinds), ridge))


def load_talk(part: str, encoder: Encoder) -> tuple[list[KindInput], Bools, NDArray[np.str_]]:
    """The turns of a part of talk, whether a fact cites them, and the conversations that they belong to."""
    inputs: list[KindInput] = []
    kept: list[bool] = []
    names: list[str] = []
    for conversation in talk.load(part):
        cited = {place for fact in conversation.facts for place in fact.gold}
        for place, turn in enumerate(conversation.turns):
            inputs.append(_kind_input(conversation, turn, sentences.said_before(conversation, place, 0), turn.text))
            kept.append(turn.id in cited)
            names.append(conversation.file)
    return embed(inputs, encoder), np.array(kept), np.array(names)


def _kind_input(conversation: talk.Conversation, turn: talk.Turn, before: tuple[str, bool], text: str) -> KindInput:
    role = "assistant" if turn.speaker == ASSISTANT else "person"
    has_agent = any(each.speaker == ASSISTANT for each in conversation.turns)
    return KindInput(text, role, before[0], continues=before[1], is_to_agent=has_agent and role == "person")


def embed(inputs: Sequence[KindInput], encoder: Encoder) -> list[KindInput]:
    texts = list(dict.fromkeys(text for each in inputs for text in (each.text, each.before)))
    vectors = dict(zip(texts, encoder.layer_means(texts), strict=True))
    return [each._replace(vector=vectors[each.text], vector_before=vectors[each.before]) for each in inputs]


def choose_sentences(examples: Examples) -> Examples:
    """Those sentences that teach kinds."""
    random = np.random.default_rng(0)
    places = [np.flatnonzero(examples.kinds == number) for number in range(len(TURN_KINDS))]
    most = [MOST_SENTENCES.get(kind, len(own)) for kind, own in zip(TURN_KINDS, places, strict=True)]
    chosen = [random.permutation(own)[:count] for own, count in zip(places, most, strict=True)]
    mask = np.zeros(len(examples.kinds), bool)
    mask[np.concatenate(chosen)] = True
    return examples.part(mask)


def fit_kinds(examples: Examples) -> Arrays:
    """The part of the kinds."""
    mean, scale = _scales(examples.features, KIND_WEIGHTS)
    scaled = np.nan_to_num(examples.features - mean) * scale
    targets = 2.0 * np.eye(len(TURN_KINDS))[examples.kinds] - 1
    directions = _find_directions(scaled, targets, examples.ridge)
    projection = _fit_projection(mean, scale, scaled, directions)
    places, example_scale = _round(Projection(projection).project(examples.features), axis=0)
    offsets = targets.mean(0)
    votes = _solve(gaussian_kernel(places * example_scale, places * example_scale), targets - offsets, examples.ridge)
    return projection | _regression(places, example_scale, votes, offsets)


def fit_keep_projection(features: Matrix) -> Arrays:
    """The projection that turns and sentences share when it is decided what to keep."""
    mean, scale = _scales(features, KEEP_WEIGHTS)
    scaled = np.nan_to_num(features - mean) * scale
    return _fit_projection(mean, scale, scaled, _principal_axes(scaled, KEEP_DIRECTIONS), KEEP_WIDTH)


def fit_keep(projection: Arrays, rows: Judged) -> Arrays:
    """A regression on a sample of the rows (Nyström's method), not yet calibrated."""
    projected = Projection(projection).project(rows.features)
    chosen = np.random.default_rng(0).permutation(len(projected))[:KEEP_EXAMPLES]
    places, example_scale = _round(projected[chosen], axis=0)
    examples, targets = places * example_scale, 2.0 * rows.kept - 1
    kernel, offset = gaussian_kernel(projected, examples), np.average(targets, weights=rows.weights)
    weighted = (kernel * rows.weights[:, None]).T
    # A little is added to the diagonal: some examples are nearly the same.
    inner = weighted @ kernel + KEEP_RIDGE * gaussian_kernel(examples, examples) + 1e-6 * np.eye(len(examples))
    votes = np.linalg.solve(inner, weighted @ (targets - offset))
    return _regression(places, example_scale, votes[:, None], np.array([offset]))


def fit_calibrated_keep(projection: Arrays, rows: Judged) -> Arrays:
    """The same with scores that are logarithms of odds, learned from scores of conversations and genres left out."""
    arrays, scores = fit_keep(projection, rows), np.zeros(len(rows.kept))
    for fold in np.array_split(np.random.default_rng(1).permutation(np.unique(rows.groups)), FOLDS):
        mask = np.isin(rows.groups, fold)
        model = Regression(fit_keep(projection, rows.part(~mask)))
        scores[mask] = model.score(Projection(projection).project(rows.features[mask]))[:, 0]
    slope, start = _fit_odds(scores, rows)
    arrays["votes"], arrays["offsets"] = arrays["votes"] * slope, arrays["offsets"] * slope + np.float32(start)
    return arrays


def _fit_odds(scores: Matrix, rows: Judged) -> tuple[float, float]:
    """A logistic regression on one number, by Newton's method."""
    columns, solution = np.column_stack([scores, np.ones(len(scores))]), np.zeros(2)
    for _ in range(NEWTON_STEPS):
        shares = 1 / (1 + np.exp(-columns @ solution))
        curve = (columns * (rows.weights * shares * (1 - shares))[:, None]).T @ columns
        solution -= np.linalg.solve(curve, columns.T @ (rows.weights * (shares - rows.kept)))
    return float(solution[0]), float(solution[1])


def _fit_projection(mean: Matrix, scale: Matrix, scaled: Matrix, directions: Matrix, width: float = 1.0) -> Arrays:
    projection, row_scale = _round(directions, axis=1)
    width *= _width(scaled @ (projection * row_scale))
    return {
        "mean": mean.astype(np.float32),
        "projection": projection,
        "row_scale": (row_scale[:, 0] * scale / width).astype(np.float32),
    }


def _regression(places: NDArray[np.int8], scale: Matrix, votes: Matrix, offsets: Matrix) -> Arrays:
    return {
        "examples": places,
        "example_scale": scale[0].astype(np.float32),
        "votes": votes.astype(np.float32),
        "offsets": offsets.astype(np.float32),
    }


def _round(matrix: Matrix, axis: int) -> tuple[NDArray[np.int8], Matrix]:
    """A matrix as small whole numbers, and the scales that bring it back. The rare far ones are cut off."""
    scales = matrix.std(axis=axis, keepdims=True) * DEVIATIONS / LEVELS
    scales[scales == 0] = 1
    return np.clip(np.rint(matrix / scales), -LEVELS, LEVELS).astype(np.int8), scales


def _width(rows: Matrix) -> float:
    """How far apart two rows are alike by half or so."""
    return float(np.sqrt(2 * np.median((rows**2).sum(1))))


def _scales(features: Matrix, weights: Sequence[float]) -> tuple[Matrix, Matrix]:
    """The mean of each column, and what its differences from it are multiplied with."""
    mean, deviation = np.nanmean(features, axis=0), np.nanstd(features, axis=0)
    scale = np.zeros_like(mean)
    for block, weight in zip(BLOCKS, weights, strict=True):
        varies = deviation[block] > 0
        scale[block][varies] = weight / np.sqrt(varies.sum()) / deviation[block][varies]
    return mean, scale


def _find_directions(scaled: Matrix, targets: Matrix, ridge: Matrix) -> Matrix:
    """The directions in which the votes change most: the first eigenvectors of the mean product of gradients."""
    axes = _principal_axes(scaled, COMPONENTS)
    rows = scaled @ axes
    kernel = gaussian_kernel(rows / _width(rows), rows / _width(rows))
    product = np.zeros((rows.shape[1], rows.shape[1]))
    for vote in _solve(kernel, targets - targets.mean(0), ridge).T:
        gradients = (kernel @ vote)[:, None] * rows - kernel @ (vote[:, None] * rows)
        product += gradients.T @ gradients
    _, vectors = np.linalg.eigh(product)
    return axes @ vectors[:, ::-1][:, :KIND_DIRECTIONS]


def _principal_axes(scaled: Matrix, count: int) -> Matrix:
    centred = scaled - scaled.mean(0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes: Matrix = vectors[:, ::-1][:, :count]
    return axes


def _solve(kernel: Matrix, targets: Matrix, ridge: Matrix) -> Matrix:
    solution: Matrix = np.linalg.solve(kernel + np.diag(ridge), targets)
    return solution


def leave_genres_out(labelled: Examples, more: Examples) -> Matrix:
    """The scores of each genre of turns by a model that has not seen it. `more` is seen by every model."""
    scores = np.zeros((len(labelled.kinds), len(TURN_KINDS)))
    for genre in np.unique(labelled.groups):
        mask = labelled.groups == genre
        scores[mask] = _score_kinds(fit_kinds(labelled.part(~mask) + more), labelled.features[mask])
    return scores


def _score_kinds(arrays: Arrays, features: Matrix) -> Matrix:
    return Regression(arrays).score(Projection(arrays).project(features))


def fit_sharpness(scores: Matrix, examples: Examples) -> float:
    """What scores are to be multiplied with, so that they become probabilities."""

    def loss(factor: float) -> float:
        shares = to_probabilities(scores * factor, examples.features)
        right = shares[np.arange(len(shares)), examples.kinds]
        return -float(np.log(np.maximum(right, 1e-9)).mean())

    return min(np.arange(1, 10, 0.05).tolist(), key=loss)


def fit_bias(examples: Examples, told: Examples) -> NDArray[np.float32]:
    """What the scores of a sentence are raised by, since kinds are not as frequent in talk as among the examples."""
    shares = [np.bincount(each.kinds, minlength=len(TURN_KINDS)) / len(each.kinds) for each in (examples, told)]
    return (PRIOR_SHARE * np.log(shares[1] / shares[0])).astype(np.float32)


def describe_kinds(scores: Matrix, examples: Examples) -> Iterator[str]:
    """F1 by kind, their mean, and that of what is dropped, in percent."""
    kinds = to_probabilities(scores, examples.features).argmax(1)
    by_kind = [_f1(kinds == number, examples.kinds == number) for number in range(len(TURN_KINDS))]
    kept, dropped = _f1(kinds < len(KEPT_KINDS), examples.is_kept), _f1(kinds >= len(KEPT_KINDS), ~examples.is_kept)
    yield f"mean of eight kinds {np.mean(by_kind):.1f}, kept {kept:.1f}, dropped {dropped:.1f}"
    yield ", ".join(f"{kind} {value:.1f}" for kind, value in zip(TURN_KINDS, by_kind, strict=True))


def _f1(found: Bools, gold: Bools) -> float:
    return 200 * (found & gold).sum() / (found.sum() + gold.sum())


def describe_keep(keep: Matrix, gold: Bools) -> str:
    found = gold[np.argsort(-keep, kind="stable")].cumsum()
    places = {recall: int(np.searchsorted(found, recall * gold.sum())) for recall in RECALLS}
    figures = [f"{100 * found[place] / (place + 1):.1f} at {recall:.0%}" for recall, place in places.items()]
    half = keep >= 0.5
    return (
        f"precision {', '.join(figures)} recall; kept at 0.5: {half.mean():.0%}, "
        f"precision {gold[half].mean():.0%}, recall {half[gold].mean():.0%}"
    )


def judged_keep(model: KindModel, inputs: Sequence[KindInput]) -> Matrix:
    return np.array([judgement.keep if judgement else 0.0 for judgement in model.judge(inputs)])


def fit(encoder: Encoder) -> Arrays:
    """The whole model; what it is worth is printed on the way."""
    labelled, told = load_turns(encoder), load_sentences("train", encoder)
    teaching = choose_sentences(told)
    scores = leave_genres_out(labelled, teaching)
    print("each genre of turns by a model of the others:", *describe_kinds(scores, labelled), sep="\n")
    kinds, sharpness = fit_kinds(labelled + teaching), fit_sharpness(scores, labelled)
    kinds["votes"], kinds["offsets"] = kinds["votes"] * sharpness, kinds["offsets"] * sharpness
    kinds["sentence_bias"] = fit_bias(labelled + teaching, told)
    inputs, cited, names = load_talk("train", encoder)
    heard = Judged(read_features(inputs), cited, names, np.ones(len(cited)))
    said = Judged(told.features, told.is_kept, told.groups, np.ones(len(told.kinds)))
    projection = fit_keep_projection(np.concatenate([heard.features, said.features, labelled.features]))
    parts = {
        "kinds": kinds,
        "keep": projection,
        "turns": fit_calibrated_keep(projection, heard.joined(labelled, TURNS_SHARE)),
        "sentences": fit_calibrated_keep(projection, said.joined(labelled, SENTENCES_SHARE)),
    }
    kept_back = load_sentences("validation", encoder)
    guessed = _score_kinds(kinds, kept_back.features) + kinds["sentence_bias"]
    print("sentences of validation:", *describe_kinds(guessed, kept_back), sep="\n")
    keep = Regression(parts["sentences"]).score(Projection(projection).project(kept_back.features))[:, 0]
    print("sentences of validation:", describe_keep(1 / (1 + np.exp(-keep)), kept_back.is_kept))
    return {f"{part}_{name}": array for part, own in parts.items() for name, array in own.items()}


def write(arrays: Arrays, encoder: Encoder) -> None:
    digest = sha256((FOLDER / "encoder.onnx").read_bytes()).hexdigest()
    MODEL_FILE.parent.mkdir(exist_ok=True)
    stamp = {"encoder": np.array(encoder.name), "sha256": np.array(digest)}
    np.savez_compressed(MODEL_FILE, allow_pickle=False, **arrays, **stamp)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="write nothing")
    parser.add_argument("--test", action="store_true", help="measure what ships on the test part of talk")
    options = parser.parse_args()
    encoder = Encoder()
    if options.test:
        shipped = load_kind_model(encoder.name)
        if not shipped:
            raise SystemExit("the model that ships is of another encoder: run this without --test first")
        inputs, cited, _ = load_talk("test", encoder)
        print("turns of test:", describe_keep(judged_keep(shipped, inputs), cited))
        return
    arrays = fit(encoder)
    inputs, cited, _ = load_talk("validation", encoder)
    print("turns of validation:", describe_keep(judged_keep(KindModel(arrays), inputs), cited))
    if not options.measure:
        write(arrays, encoder)
        print(f"{MODEL_FILE}: {MODEL_FILE.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
