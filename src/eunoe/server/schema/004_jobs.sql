CREATE TABLE job (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  scope TEXT NOT NULL,
  options TEXT NOT NULL,
  state TEXT NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  total INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  result TEXT NOT NULL DEFAULT '{}',
  created REAL NOT NULL,
  due REAL NOT NULL,
  started REAL,
  finished REAL,
  heartbeat REAL,
  owner TEXT NOT NULL DEFAULT '',
  lease REAL
);
CREATE UNIQUE INDEX job_waiting ON job (kind, tenant, scope, options) WHERE state = 'queued';
CREATE INDEX job_due ON job (state, due);
CREATE INDEX job_created ON job (tenant, created)
