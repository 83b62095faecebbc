-- An index may leave bytes of what was deleted on its pages: it holds a fingerprint of the memory key, not its words.
ALTER TABLE items RENAME COLUMN key TO identity;
ALTER TABLE items RENAME COLUMN source TO supports;
ALTER TABLE items ADD COLUMN topic BLOB;
DROP INDEX items_key;
CREATE UNIQUE INDEX items_identity ON items (stream, identity) WHERE retired IS NULL;
CREATE INDEX items_topic ON items (stream, topic) WHERE topic IS NOT NULL;
DROP INDEX items_waiting;
CREATE INDEX items_stream_pending ON items (stream, seq) WHERE pending = 1;
ALTER TABLE forgotten RENAME TO tombstones;
ALTER TABLE tombstones RENAME COLUMN key TO identity;
ALTER TABLE tombstones RENAME COLUMN lane TO session_hash;
DROP INDEX forgotten_log;
CREATE INDEX tombstones_session ON tombstones (stream, session_hash, position) WHERE position IS NOT NULL;
ALTER TABLE work RENAME TO jobs;
ALTER TABLE absorbed RENAME TO absorptions;
ALTER TABLE readings RENAME TO passage_graphs;
DROP INDEX readings_content;
CREATE INDEX passage_graphs_content ON passage_graphs (content);
ALTER TABLE uses RENAME TO access_counts;
ALTER TABLE hidden RENAME TO incognito
