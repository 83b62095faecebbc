"""Trains the model that says what kind of thing a turn holds, and measures it; needs numpy and the package alone.

    python training/kinds.py              train, measure, and write the file that ships
    python training/kinds.py --measure    write nothing
    python training/kinds.py --test       measure what ships on the test part of talk

The kinds are learned from `training/turns`; whether a turn is worth keeping, from the training part of talk too, whose
facts name their turns. Run it again whenever the encoder or `form/patterns/kinds.toml` has changed.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import talk
import turns
from numpy.typing import NDArray

from eunoe.embed.encoder import FOLDER, Encoder
from eunoe.form.kind_model import (
    BLOCKS,
    KEPT_KINDS,
    MODEL_FILE,
    TURN_KINDS,
    KindInput,
    KindModel,
    Matrix,
    gaussian_kernel,
    keep_features,
    load_kind_model,
    read_features,
    to_probabilities,
)

BLOCK_WEIGHTS = (6.0, 4.0, 1.6, 3.0, 1.5)
"""How much each block of features counts in a distance."""
DIRECTIONS = 160
COMPONENTS = 512
"""Principal components among which the directions are looked for."""
RIDGE = 0.05
LEVELS = 15
"""Whole numbers from -15 to 15 take half a byte in the file."""
DEVIATIONS = 3.2
"""How many standard deviations they reach."""
KEEP_RIDGE = 30.0
TURNS_WEIGHT = 0.3
"""How much all labelled turns count beside all turns of talk when it is learned what to keep."""
NEWTON_STEPS = 12
RECALLS = (0.5, 0.65, 0.8)

Arrays = dict[str, NDArray[Any]]


@dataclass
class Examples:
    """Rows of features and the numbers of their kinds."""

    features: Matrix
    kinds: NDArray[np.int64]
    genres: NDArray[np.str_]

    def part(self, mask: NDArray[np.bool_]) -> "Examples":
        return Examples(self.features[mask], self.kinds[mask], self.genres[mask])


def load_examples(encoder: Encoder) -> Examples:
    rows = turns.load()
    inputs = embed([KindInput(row.text, row.role, row.before) for row in rows], encoder)
    kinds = np.array([TURN_KINDS.index(row.kind) for row in rows])
    return Examples(read_features(inputs), kinds, np.array([row.genre for row in rows]))


def load_talk(part: str, encoder: Encoder) -> tuple[list[KindInput], NDArray[np.bool_]]:
    """The turns of a part of talk, and whether a fact cites them."""
    inputs: list[KindInput] = []
    kept: list[bool] = []
    for conversation in talk.load(part):
        cited = {place for fact in conversation.facts for place in fact.gold}
        before = None
        for turn in conversation.turns:
            words = before.text if before and before.session == turn.session else ""
            inputs.append(KindInput(turn.text, _role(conversation, turn), words))
            kept.append(turn.id in cited)
            before = turn
    return embed(inputs, encoder), np.array(kept)


def _role(conversation: talk.Conversation, turn: talk.Turn) -> str:
    if turn.speaker == "Assistant":
        return "assistant"
    return "agent" if conversation.group == "logs" else "person"


def embed(inputs: Sequence[KindInput], encoder: Encoder) -> list[KindInput]:
    texts = list(dict.fromkeys(text for each in inputs for text in (each.text, each.before)))
    vectors = dict(zip(texts, encoder.layer_means(texts), strict=True))
    return [each._replace(vector=vectors[each.text], vector_before=vectors[each.before]) for each in inputs]


def fit_kinds(examples: Examples) -> Arrays:
    """A model of the kinds alone, in whole numbers so small that they pack well."""
    mean, scale = _scales(examples.features)
    scaled = np.nan_to_num(examples.features - mean) * scale
    targets = 2.0 * np.eye(len(TURN_KINDS))[examples.kinds] - 1
    directions = _find_directions(scaled, targets)
    projection, row_scale = _round(directions, axis=1)
    projected = scaled @ (projection * row_scale)
    width = _width(projected)
    places, example_scale = _round(projected / width, axis=0)
    offsets = targets.mean(0)
    votes = _solve(gaussian_kernel(places * example_scale, places * example_scale), targets - offsets)
    return {
        "mean": mean.astype(np.float32),
        "projection": projection,
        "row_scale": (row_scale[:, 0] * scale / width).astype(np.float32),
        "examples": places,
        "example_scale": example_scale[0].astype(np.float32),
        "votes": votes.astype(np.float32),
        "offsets": offsets.astype(np.float32),
        "keep": np.zeros(0, np.float32),
    }


def _round(matrix: Matrix, axis: int) -> tuple[NDArray[np.int8], Matrix]:
    """A matrix as small whole numbers, and the scales that bring it back. The rare far ones are cut off."""
    scales = matrix.std(axis=axis, keepdims=True) * DEVIATIONS / LEVELS
    scales[scales == 0] = 1
    return np.clip(np.rint(matrix / scales), -LEVELS, LEVELS).astype(np.int8), scales


def _width(rows: Matrix) -> float:
    """How far apart two rows are alike by half or so."""
    return float(np.sqrt(2 * np.median((rows**2).sum(1))))


def _scales(features: Matrix) -> tuple[Matrix, Matrix]:
    """The mean of each column, and what its differences from it are multiplied with."""
    mean, deviation = np.nanmean(features, axis=0), np.nanstd(features, axis=0)
    scale = np.zeros_like(mean)
    for block, weight in zip(BLOCKS, BLOCK_WEIGHTS, strict=True):
        varies = deviation[block] > 0
        scale[block][varies] = weight / np.sqrt(varies.sum()) / deviation[block][varies]
    return mean, scale


def _find_directions(scaled: Matrix, targets: Matrix) -> Matrix:
    """The directions in which the votes change most: the first eigenvectors of the mean product of gradients."""
    axes = _principal_axes(scaled)
    rows = scaled @ axes
    kernel = gaussian_kernel(rows / _width(rows), rows / _width(rows))
    product = np.zeros((rows.shape[1], rows.shape[1]))
    for vote in _solve(kernel, targets - targets.mean(0)).T:
        gradients = (kernel @ vote)[:, None] * rows - kernel @ (vote[:, None] * rows)
        product += gradients.T @ gradients
    _, vectors = np.linalg.eigh(product)
    return axes @ vectors[:, ::-1][:, :DIRECTIONS]


def _principal_axes(scaled: Matrix) -> Matrix:
    centred = scaled - scaled.mean(0)
    squares, vectors = np.linalg.eigh(centred @ centred.T)
    first = slice(None, -min(COMPONENTS, len(scaled) - 1) - 1, -1)
    axes: Matrix = centred.T @ vectors[:, first] / np.sqrt(squares[first])
    return axes


def _solve(kernel: Matrix, targets: Matrix) -> Matrix:
    solution: Matrix = np.linalg.solve(kernel + RIDGE * np.eye(len(kernel)), targets)
    return solution


def leave_genres_out(examples: Examples) -> Matrix:
    """The scores of each genre by a model that has not seen it."""
    scores = np.zeros((len(examples.kinds), len(TURN_KINDS)))
    for genre in np.unique(examples.genres):
        mask = examples.genres == genre
        model = KindModel(fit_kinds(examples.part(~mask)))
        scores[mask] = model.score(model.project(examples.features[mask]))
    return scores


def fit_sharpness(scores: Matrix, examples: Examples) -> float:
    """What scores are to be multiplied with, so that they become probabilities."""

    def loss(factor: float) -> float:
        shares = to_probabilities(scores * factor, examples.features)
        right = shares[np.arange(len(shares)), examples.kinds]
        return -float(np.log(np.maximum(right, 1e-9)).mean())

    return min(np.arange(1, 10, 0.05).tolist(), key=loss)


def fit_keep(features: Matrix, kept: NDArray[np.bool_], weights: Matrix) -> NDArray[np.float32]:
    """A weighted logistic regression, by Newton's method. The last column is constant and not held down."""
    deviation = features.std(0)
    deviation[deviation == 0] = 1
    rows, ridge = features / deviation, np.full(features.shape[1], KEEP_RIDGE)
    ridge[-1] = 0
    solution = np.zeros(features.shape[1])
    for _ in range(NEWTON_STEPS):
        shares = 1 / (1 + np.exp(-rows @ solution))
        slope = rows.T @ (weights * (shares - kept)) + ridge * solution
        curve = (rows * (weights * shares * (1 - shares))[:, None]).T @ rows + np.diag(ridge)
        solution -= np.linalg.solve(curve, slope)
    return (solution / deviation).astype(np.float32)


def fit(examples: Examples, scores: Matrix, talked: Matrix, cited: NDArray[np.bool_]) -> Arrays:
    """The whole model. `scores` are those of models that had not seen the genre."""
    arrays, sharpness = fit_kinds(examples), fit_sharpness(scores, examples)
    arrays["votes"], arrays["offsets"] = arrays["votes"] * sharpness, arrays["offsets"] * sharpness
    model = KindModel(arrays)
    seen = _keep_rows(model, examples.features, scores * sharpness)
    heard = _keep_rows(model, talked, model.score(model.project(talked)))
    kept = np.isin(examples.kinds, range(len(KEPT_KINDS)))
    # Most labelled turns are kept. They count so that the share is that of talk.
    share = np.where(kept, cited.mean() / kept.mean(), (1 - cited.mean()) / (1 - kept.mean()))
    weights = np.concatenate([share * TURNS_WEIGHT * len(cited) / len(kept), np.ones(len(cited))])
    arrays["keep"] = fit_keep(np.concatenate([seen, heard]), np.concatenate([kept, cited]), weights)
    return arrays


def _keep_rows(model: KindModel, features: Matrix, scores: Matrix) -> Matrix:
    return keep_features(features, model.project(features), to_probabilities(scores, features))


def describe_kinds(shares: Matrix, examples: Examples) -> Iterator[str]:
    """F1 by kind, their mean, and that of what is dropped, in percent."""
    kinds = shares.argmax(1)
    by_kind = [_f1(kinds == number, examples.kinds == number) for number in range(len(TURN_KINDS))]
    dropped = _f1(kinds >= len(KEPT_KINDS), examples.kinds >= len(KEPT_KINDS))
    kept = _f1(kinds < len(KEPT_KINDS), examples.kinds < len(KEPT_KINDS))
    yield f"mean of eight kinds {np.mean(by_kind):.1f}, kept {kept:.1f}, dropped {dropped:.1f}"
    yield ", ".join(f"{kind} {value:.1f}" for kind, value in zip(TURN_KINDS, by_kind, strict=True))


def _f1(found: NDArray[np.bool_], gold: NDArray[np.bool_]) -> float:
    return 200 * (found & gold).sum() / (found.sum() + gold.sum())


def describe_keep(model: KindModel, inputs: Sequence[KindInput], cited: NDArray[np.bool_]) -> str:
    keep = np.array([judgement.keep if judgement else 0.0 for judgement in model.judge(inputs)])
    found = cited[np.argsort(-keep, kind="stable")].cumsum()
    places = {recall: int(np.searchsorted(found, recall * cited.sum())) for recall in RECALLS}
    figures = [f"{100 * found[place] / (place + 1):.1f} at {recall:.0%}" for recall, place in places.items()]
    half = keep >= 0.5
    return (
        f"precision {', '.join(figures)} recall; kept at 0.5: {half.mean():.0%}, "
        f"precision {cited[half].mean():.0%}, recall {half[cited].mean():.0%}"
    )


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
        print("talk, test:", describe_keep(shipped, *load_talk("test", encoder)))
        return
    examples = load_examples(encoder)
    scores = leave_genres_out(examples)
    print(
        "each genre by a model of the others:",
        *describe_kinds(to_probabilities(scores, examples.features), examples),
        sep="\n",
    )
    inputs, cited = load_talk("train", encoder)
    arrays = fit(examples, scores, read_features(inputs), cited)
    print("talk, validation:", describe_keep(KindModel(arrays), *load_talk("validation", encoder)))
    if not options.measure:
        write(arrays, encoder)
        print(f"{MODEL_FILE}: {MODEL_FILE.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
