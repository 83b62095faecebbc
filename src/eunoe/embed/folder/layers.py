"""The steps of a model after its graph: what `modules.json` lists."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from eunoe.embed.contract import Vectors
from eunoe.embed.folder.files import read_json, read_object, unreadable
from eunoe.errors import EmbedderError
from eunoe.model.arguments import show

Layer = Callable[[Vectors], Vectors]

MODULES: Final = "modules.json"
_WEIGHTS: Final = "model.safetensors"
_MIN_LENGTH: Final = 1e-12
_ACTIVATIONS: Final[Mapping[str, Layer]] = {
    "Identity": lambda rows: rows,
    "Tanh": np.tanh,
    "ReLU": lambda rows: np.maximum(rows, 0),
    "Sigmoid": lambda rows: np.reciprocal(1 + np.exp(-rows)),
}


class Step(NamedTuple):
    """A step of the model, and the folder that describes it."""

    kind: str
    folder: Path
    listed_in: Path

    @property
    def files(self) -> list[Path]:
        """What its outcome depends on."""
        names = ("config.json", _WEIGHTS) if self.kind == "Dense" else ()
        return [self.folder / name for name in names if (self.folder / name).is_file()]


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A linear layer and the function after it."""

    weight: Vectors
    bias: Vectors | None
    activation: Layer

    def __call__(self, rows: Vectors) -> Vectors:
        # Not by one product: that may round differently from one number of rows to another.
        product = np.stack([self.weight @ row for row in rows])
        return self.activation(product if self.bias is None else product + self.bias)


def normalize(rows: Vectors) -> Vectors:
    """Scale rows to unit length."""
    scaled: Vectors = rows / np.maximum(np.sqrt(np.vecdot(rows, rows)), _MIN_LENGTH)[:, None]
    return scaled


def read_steps(folder: Path) -> tuple[Step, ...]:
    """Return the steps in order; none if the folder does not list them."""
    path = folder / MODULES
    modules = read_json(path) or []
    try:
        steps = [(str(module["type"]).rpartition(".")[2], Path(module.get("path") or "")) for module in modules]
    except (TypeError, KeyError, AttributeError):
        raise unreadable(path, 'it should be a list of objects with "type" and "path"') from None
    if any(place.is_absolute() or ".." in place.parts or "\0" in str(place) for _, place in steps):
        raise unreadable(path, "it leads out of the folder")
    return tuple(Step(kind, folder / place, path) for kind, place in steps)


def read_layers(steps: Sequence[Step]) -> list[Layer]:
    """Return what a vector goes through after pooling."""
    layers: list[Layer] = []
    for step in steps:
        if step.kind == "Normalize":
            layers.append(normalize)
        elif step.kind == "Dense":
            layers.append(_read_dense(step.folder))
        elif step.kind not in ("Transformer", "Pooling", "Dropout"):
            raise EmbedderError(
                f"{step.listed_in} names a step {step.kind}, which cannot be done here: export the whole "
                "model with `optimum-cli export onnx --library sentence_transformers`, so that its graph gives "
                "sentence_embedding"
            )
    return layers


def _read_dense(folder: Path) -> Dense:
    config, weights = folder / "config.json", folder / _WEIGHTS
    if not weights.is_file():
        raise EmbedderError(f"{weights} is missing: save the model with safetensors, or export it as a whole")
    stated = read_object(config)
    activation = str(stated.get("activation_function", "Tanh")).rpartition(".")[2]
    is_plain = stated.get("module_input_name") in (None, "sentence_embedding") and not stated.get("use_residual")
    if activation not in _ACTIVATIONS or not is_plain:
        raise EmbedderError(f"{config} describes a layer that cannot be done here: {show(stated)}")
    try:
        tensors = import_module("safetensors.numpy").load_file(weights)
        weight, bias = tensors["linear.weight"].astype(np.float32), tensors.get("linear.bias")
    except Exception as error:
        raise unreadable(weights, error) from error
    return Dense(weight, None if bias is None else bias.astype(np.float32), _ACTIVATIONS[activation])
