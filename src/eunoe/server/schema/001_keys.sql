CREATE TABLE key (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  tenant TEXT NOT NULL,
  scopes TEXT NOT NULL,
  rights TEXT NOT NULL,
  hash BLOB NOT NULL,
  created TEXT NOT NULL,
  expires TEXT,
  revoked TEXT
);
