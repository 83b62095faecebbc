"""Project memory: documents in, answers out."""

from eunoe.projects.project import FILE, SAVE_DIR, Project, ProjectMemory, ProjectSettings

__all__ = ["FILE", "SAVE_DIR", "Project", "ProjectMemory", "ProjectSettings"]
