"""In the place of HippoRAG: its class on project memory, and moving in from its folders.

Code written for HippoRAG runs with the import changed: `from eunoe.hosts.hipporag import HippoRAG`. What differs stands
in docs/integrations/hipporag.md.
"""

from eunoe.hosts.hipporag.answers import QaError, QuerySolution
from eunoe.hosts.hipporag.config import BaseConfig
from eunoe.hosts.hipporag.folder import HippoReport, import_folder, import_projects
from eunoe.hosts.hipporag.rag import PROJECT, Chunk, HippoRAG

__all__ = [
    "PROJECT",
    "BaseConfig",
    "Chunk",
    "HippoRAG",
    "HippoReport",
    "QaError",
    "QuerySolution",
    "import_folder",
    "import_projects",
]
