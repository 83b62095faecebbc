CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, position INTEGER NOT NULL);
CREATE TABLE items (
    seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, pending INTEGER NOT NULL DEFAULT 0,
    kind TEXT NOT NULL, id TEXT NOT NULL, key BLOB NOT NULL, text TEXT NOT NULL, caption TEXT NOT NULL DEFAULT '',
    time INTEGER, session TEXT NOT NULL DEFAULT '', speaker TEXT NOT NULL DEFAULT '', role TEXT NOT NULL DEFAULT '',
    label TEXT NOT NULL DEFAULT '', people TEXT NOT NULL DEFAULT '', files TEXT NOT NULL DEFAULT '',
    valid_from INTEGER, valid_to INTEGER, recorded INTEGER NOT NULL, retired INTEGER,
    pinned INTEGER NOT NULL DEFAULT 0, position INTEGER, supersedes TEXT NOT NULL DEFAULT '',
    superseded_by TEXT NOT NULL DEFAULT '', source TEXT NOT NULL DEFAULT '', pages TEXT NOT NULL DEFAULT '',
    metadata TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX items_id ON items (stream, id);
CREATE UNIQUE INDEX items_key ON items (stream, key) WHERE retired IS NULL;
CREATE INDEX items_stream ON items (stream);
CREATE INDEX items_log ON items (stream, session, position) WHERE position IS NOT NULL;
CREATE INDEX items_pending ON items (seq) WHERE pending = 1;
CREATE TABLE changes (
    stream INTEGER NOT NULL, version INTEGER NOT NULL, seq INTEGER NOT NULL, what INTEGER NOT NULL,
    PRIMARY KEY (stream, version, what, seq)) WITHOUT ROWID;
CREATE TABLE forgotten (
    stream INTEGER NOT NULL, key BLOB NOT NULL, content BLOB NOT NULL, lane BLOB NOT NULL, position INTEGER,
    PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE INDEX forgotten_log ON forgotten (stream, lane, position) WHERE position IS NOT NULL;
CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL);
CREATE TABLE vectors (
    model INTEGER NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (model, seq)) WITHOUT ROWID;
INSERT INTO meta VALUES ('next_seq', '1')
