CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,
  key TEXT NOT NULL,
  tenant TEXT NOT NULL,
  number INTEGER NOT NULL,
  action TEXT NOT NULL,
  scopes TEXT NOT NULL,
  count INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  via TEXT NOT NULL,
  request_id TEXT NOT NULL
);

CREATE UNIQUE INDEX audit_by_tenant ON audit (tenant, number);
CREATE INDEX audit_by_time ON audit (time);
