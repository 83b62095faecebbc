"""Every error Eunoe raises on purpose. Each message says what is wrong and what to do."""


class EunoeError(Exception):
    """Base of all errors raised on purpose."""


class ScopeError(EunoeError, ValueError):
    """A scope is missing, empty or malformed. Nothing was read or written."""


class InputError(EunoeError, ValueError):
    """A value cannot be stored or understood as given. Nothing was written."""


class AccessError(EunoeError):
    """A right is missing, or a scope is out of reach. Nothing was read or written."""


class NotFoundError(EunoeError, LookupError):
    """No such memory in this scope."""


class ConflictError(EunoeError):
    """The memory changed since it was read."""


class ClosedError(EunoeError):
    """The memory was closed before the call."""


class StoreError(EunoeError):
    """The store cannot do what was asked. Everything acknowledged before is intact."""


class MissingStoreError(StoreError):
    """There is no store there yet. None was made."""


class NotAStoreError(StoreError):
    """The file is not a Eunoe store. It was left untouched."""


class NewerStoreError(StoreError):
    """The file was written by a newer Eunoe. It was left untouched."""


class ReplacedStoreError(StoreError):
    """The file or its log was replaced or taken away. Nothing was written; the message says where everything is."""


class ReadOnlyStoreError(StoreError):
    """The file or its folder cannot be written. It was left untouched."""


class StoreFullError(StoreError):
    """No room left on the disk. The write was rolled back."""


class StoreBusyError(StoreError):
    """Another process held the write lock for longer than the patience allows."""


class DamagedStoreError(StoreError):
    """The file is a Eunoe store but parts of it cannot be read."""


class EmbedderError(EunoeError):
    """An embedder failed or gave something that is not a vector."""


class ModelMismatchError(EmbedderError):
    """The store's vectors come from another model; mixing them would give nonsense."""


class LlmError(EunoeError):
    """A language model failed, or gave no answer that can be used. Nothing was lost; what it was for is still due."""


class RemoteError(EunoeError):
    """A server cannot be reached, or answers nonsense. If a write may have happened nevertheless, it says so."""


class MissingPackageError(EunoeError, ImportError):
    """An adapter was imported, and the framework that it is for is not installed."""


class WorkflowError(EunoeError):
    """A workflow cannot be read or run. The message names the file, the node and what is wrong with it."""
