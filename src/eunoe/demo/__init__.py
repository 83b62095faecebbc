"""A guided tour through a sample conversation: two friends, an old dinghy and their assistant."""

from eunoe.demo.guide import guide

__all__ = ["guide"]
