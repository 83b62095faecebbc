CREATE TABLE webhook (
  id TEXT PRIMARY KEY,
  key TEXT NOT NULL,
  tenant TEXT NOT NULL,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  with_text INTEGER NOT NULL,
  cursor TEXT NOT NULL,
  created REAL NOT NULL,
  problem TEXT NOT NULL DEFAULT ''
);
CREATE TABLE delivery (
  webhook TEXT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  time REAL NOT NULL,
  items INTEGER NOT NULL,
  status INTEGER NOT NULL,
  seconds REAL NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (webhook, number)
) WITHOUT ROWID
