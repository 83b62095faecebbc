ALTER TABLE items ADD COLUMN in_review INTEGER NOT NULL DEFAULT 0;
ALTER TABLE items ADD COLUMN replaces TEXT NOT NULL DEFAULT '';
CREATE INDEX items_in_review ON items (stream, seq) WHERE in_review = 1;
-- With what else is asked for in it, a search for the latest reads no row that it does not want.
CREATE INDEX items_recorded ON items (recorded, seq, stream, kind, in_review) WHERE kind != 'message';
CREATE TABLE calls (
    number INTEGER PRIMARY KEY, operation TEXT NOT NULL, model TEXT NOT NULL, scope TEXT NOT NULL,
    time INTEGER NOT NULL, micros INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cost REAL NOT NULL, error TEXT NOT NULL, checksum INTEGER NOT NULL)
