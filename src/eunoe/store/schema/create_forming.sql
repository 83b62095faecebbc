-- Words are kept in tables with row numbers only: what such a table leaves behind on a page is found and wiped.
CREATE INDEX items_atoms ON items (stream, kind, seq) WHERE kind != 'message';
CREATE TABLE settings (stream INTEGER PRIMARY KEY, preset TEXT NOT NULL, changes TEXT NOT NULL);
CREATE TABLE sessions (
    stream INTEGER PRIMARY KEY, cursor INTEGER NOT NULL, messages INTEGER NOT NULL, weight REAL NOT NULL,
    active INTEGER NOT NULL, users TEXT NOT NULL);
CREATE INDEX sessions_active ON sessions (active);
CREATE TABLE work (
    stream INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, owner TEXT NOT NULL,
    until INTEGER NOT NULL, attempts INTEGER NOT NULL, retry INTEGER NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY (stream, start));
CREATE TABLE summaries (
    stream INTEGER PRIMARY KEY, revision INTEGER NOT NULL, last INTEGER NOT NULL, rebuild INTEGER NOT NULL,
    owner TEXT NOT NULL, until INTEGER NOT NULL, attempts INTEGER NOT NULL, retry INTEGER NOT NULL,
    error TEXT NOT NULL);
CREATE INDEX summaries_rebuild ON summaries (stream) WHERE rebuild = 1;
CREATE TABLE revisions (
    stream INTEGER NOT NULL, number INTEGER NOT NULL, parent INTEGER NOT NULL, text TEXT NOT NULL,
    absorbed TEXT NOT NULL, author TEXT NOT NULL, recorded INTEGER NOT NULL,
    PRIMARY KEY (stream, number));
CREATE TABLE absorbed (
    stream INTEGER NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (stream, id)) WITHOUT ROWID;
CREATE TABLE links (
    source INTEGER NOT NULL, stream INTEGER NOT NULL, PRIMARY KEY (source, stream)) WITHOUT ROWID;
CREATE INDEX links_stream ON links (stream);
CREATE TABLE readings (
    seq INTEGER PRIMARY KEY, content BLOB NOT NULL, model TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX readings_content ON readings (content);
CREATE TABLE uses (seq INTEGER PRIMARY KEY, times INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE usage (
    operation TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL, failures INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, micros INTEGER NOT NULL, cost REAL NOT NULL,
    PRIMARY KEY (operation, model)) WITHOUT ROWID;
CREATE TABLE hidden (key BLOB PRIMARY KEY) WITHOUT ROWID
