"""Files of discussions, both ways, one way at a time: as other programs have them on disk."""

from eunoe.apps.discussion.files.exporting import export_discussion, write_files
from eunoe.apps.discussion.files.importing import (
    DiscussionImport,
    FolderImport,
    Refusal,
    import_discussion,
    import_folder,
    settle_import,
)
from eunoe.apps.discussion.files.layout import FileKey, Layout

__all__ = [
    "DiscussionImport",
    "FileKey",
    "FolderImport",
    "Layout",
    "Refusal",
    "export_discussion",
    "import_discussion",
    "import_folder",
    "settle_import",
    "write_files",
]
