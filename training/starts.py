"""The published models that training starts from. They are read from a folder; nothing is downloaded."""

import hashlib
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

WORDS = "embeddings.word_embeddings.weight"


def load_start(folder: Path) -> dict[str, Tensor]:
    """The weights in a folder, by BERT's own names: one file, or parts of it.

    A table that was cut into parts is named NAME.0, NAME.1 and so on.
    """
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise SystemExit(
            f"{folder.name}: no .safetensors file in {folder}; training/README.md says where it comes from"
        )
    weights = {name: value for path in paths for name, value in load_file(path).items()}
    rows = sorted((name for name in weights if name.startswith(f"{WORDS}.")), key=lambda name: int(name.split(".")[-1]))
    if rows:
        weights[WORDS] = torch.cat([weights.pop(name) for name in rows])
    if WORDS not in weights:
        raise SystemExit(f"{folder.name}: the files in {folder} hold no {WORDS}")
    return weights


def save_parts(weights: dict[str, Tensor], folder: Path, size: int = 15_000_000) -> None:
    """Writes weights in half precision as files of at most `size` bytes; the word table is cut in two."""
    folder.mkdir(parents=True, exist_ok=True)
    halves = {f"{WORDS}.{number}": each for number, each in enumerate(weights[WORDS].chunk(2))}
    parts: list[dict[str, Tensor]] = []
    room = 0
    for name, value in [*halves.items(), *((name, each) for name, each in weights.items() if name != WORDS)]:
        tensor = value.half().contiguous().clone()
        if tensor.nbytes > room:
            parts.append({})
            room = size
        parts[-1][name] = tensor
        room -= tensor.nbytes
    for number, part in enumerate(parts):
        save_file(part, folder / f"part-{number}.safetensors")


def checksum(weights: dict[str, Tensor]) -> str:
    """SHA-256 over the numbers in half precision, in the order of their names: the same however the files are cut."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        if name.startswith(("embeddings.", "encoder.")) and "_ids" not in name:
            digest.update(name.encode())
            digest.update(weights[name].half().contiguous().numpy().tobytes())
    return digest.hexdigest()


def mean_weights(runs: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: sum(run[name].float() for run in runs) / len(runs) for name in runs[0]}


def choose_layers(weights: dict[str, Tensor], layers: list[int]) -> dict[str, Tensor]:
    """The model that is left with these layers, in this order."""
    chosen = {name: value for name, value in weights.items() if not name.startswith("encoder.layer.")}
    for place, layer in enumerate(layers):
        prefix = f"encoder.layer.{layer}."
        own = {name: value for name, value in weights.items() if name.startswith(prefix)}
        chosen |= {f"encoder.layer.{place}.{name.removeprefix(prefix)}": value for name, value in own.items()}
    return chosen
