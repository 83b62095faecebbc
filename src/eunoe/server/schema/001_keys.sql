CREATE TABLE key (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  tenant TEXT NOT NULL,
  scopes TEXT NOT NULL,
  rights TEXT NOT NULL,
  hash BLOB NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER,
  revoked INTEGER,
  used INTEGER,
  old_hash BLOB,
  old_expires INTEGER
);

CREATE TABLE session (
  hash BLOB PRIMARY KEY,
  key TEXT NOT NULL,
  started INTEGER NOT NULL,
  used INTEGER NOT NULL
);

CREATE INDEX session_by_key ON session (key);
