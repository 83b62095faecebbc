"""A guided tour through a sample conversation: two friends, an old dinghy and their assistant."""

from eunoe.cli.demo.tour import show_tour

__all__ = ["show_tour"]
