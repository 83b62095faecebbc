"""Files of discussions, both ways: as other programs have them on disk."""

from eunoe.apps.discussion.files.encryption import FileKey
from eunoe.apps.discussion.files.exporting import export_discussion, take_in_files, write_files
from eunoe.apps.discussion.files.importing import (
    DiscussionImport,
    FolderImport,
    Refusal,
    import_discussion,
    import_folder,
)
from eunoe.apps.discussion.files.layout import Layout
from eunoe.apps.discussion.files.record import condensed_elsewhere
from eunoe.apps.discussion.files.settlement import settle_import

__all__ = [
    "DiscussionImport",
    "FileKey",
    "FolderImport",
    "Layout",
    "Refusal",
    "condensed_elsewhere",
    "export_discussion",
    "import_discussion",
    "import_folder",
    "settle_import",
    "take_in_files",
    "write_files",
]
