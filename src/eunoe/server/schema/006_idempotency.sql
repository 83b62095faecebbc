CREATE TABLE idempotency (
  caller TEXT NOT NULL,
  key BLOB NOT NULL,
  request BLOB NOT NULL,
  attempt TEXT NOT NULL,
  lease REAL NOT NULL,
  created REAL NOT NULL,
  reply TEXT,
  PRIMARY KEY (caller, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created);
