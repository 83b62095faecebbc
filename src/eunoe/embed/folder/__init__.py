"""Encoders out of a local folder, as sentence-transformers and ONNX exports lay it out."""

from typing import Final

PREFIX: Final = "folder:"
"""What the spec of such an encoder begins with; the path follows."""


def is_folder_spec(spec: object) -> bool:
    """Whether a setting names a folder."""
    return isinstance(spec, str) and spec.startswith(PREFIX)


def absolute_spec(spec: str) -> str:
    """Return a spec that means the same in every working directory."""
    if not is_folder_spec(spec):
        return spec
    from eunoe.embed.folder.files import parse_path

    return f"{PREFIX}{parse_path(spec.removeprefix(PREFIX))}"
