"""Texts to embed, and a fresh interpreter to do it in."""

import os
import subprocess
import sys

import pytest

from eunoe.embed import encoder

TEXTS = [
    "Caroline went to the adoption meeting on 7 May 2023.",
    "ERR_42 in src/a/b.py",
    "naïve café, 東京, مرحبا, 👩‍🚀",
    "word " * 400,
    "x",
    "Is it?",
]
ODD_TEXTS = ["a \ud800 b", "\ud83d\ude00", "a\0b", "\0", "<s> </s> [SEP] [PAD]", "\u200b", "y" * 5000]

has_minilm = pytest.mark.skipif(
    any(encoder.find_spec(name) is None for name in (*encoder._MODULES, encoder._WEIGHTS_PACKAGE)),
    reason="needs the extra minilm and its weights",
)
has_encoder = pytest.mark.skipif(not (encoder.FOLDER / "encoder.onnx").is_file(), reason="needs the encoder's file")


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, float(ord(text[0]))]


def python(code: str, *arguments: str, **env: str) -> str:
    """Standard output of a fresh interpreter, which must say nothing on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()
