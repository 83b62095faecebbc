"""Project memory: documents in, answers out."""

from eunoe.apps.projects.memory import ProjectMemory, ProjectName
from eunoe.apps.projects.settings import SAVE_DIR_VARIABLE, STORE_FILE_NAME, ProjectSettings

__all__ = ["SAVE_DIR_VARIABLE", "STORE_FILE_NAME", "ProjectMemory", "ProjectName", "ProjectSettings"]
