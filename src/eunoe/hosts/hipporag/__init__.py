"""In the place of HippoRAG: its class on project memory, and moving in from its folders.

Code written for HippoRAG runs with the import changed: `from eunoe.hosts.hipporag import HippoRAG`. What differs stands
in docs/integrations/hipporag.md.
"""

from eunoe.hosts.hipporag.chunks import Chunk
from eunoe.hosts.hipporag.config import BaseConfig
from eunoe.hosts.hipporag.folder import HippoReport, import_folder, import_projects
from eunoe.hosts.hipporag.rag import PROJECT, HippoRAG
from eunoe.hosts.hipporag.solutions import QaError, QuerySolution

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
