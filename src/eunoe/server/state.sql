CREATE TABLE IF NOT EXISTS key (
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

CREATE TABLE IF NOT EXISTS session (
  hash BLOB PRIMARY KEY,
  key TEXT NOT NULL,
  started INTEGER NOT NULL,
  used INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS session_by_key ON session (key);

CREATE TABLE IF NOT EXISTS audit (
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

CREATE UNIQUE INDEX IF NOT EXISTS audit_by_tenant ON audit (tenant, number);
CREATE INDEX IF NOT EXISTS audit_by_time ON audit (time);

CREATE TABLE IF NOT EXISTS webhook (
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
CREATE TABLE IF NOT EXISTS delivery (
  webhook TEXT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  time REAL NOT NULL,
  items INTEGER NOT NULL,
  status INTEGER NOT NULL,
  seconds REAL NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (webhook, number)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS job (
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
CREATE UNIQUE INDEX IF NOT EXISTS job_waiting ON job (kind, tenant, scope, options) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS job_due ON job (state, due);
CREATE INDEX IF NOT EXISTS job_created ON job (tenant, created);

CREATE TABLE IF NOT EXISTS oauth_client (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,
  created INTEGER NOT NULL,
  used INTEGER
);

CREATE TABLE IF NOT EXISTS oauth_grant (
  id TEXT PRIMARY KEY,
  client TEXT NOT NULL REFERENCES oauth_client (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  rights TEXT NOT NULL,
  resource TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS oauth_grant_by_key ON oauth_grant (key);
CREATE INDEX IF NOT EXISTS oauth_grant_by_client ON oauth_grant (client);

CREATE TABLE IF NOT EXISTS oauth_code (
  hash BLOB PRIMARY KEY,
  grant_id TEXT NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
  redirect_uri TEXT NOT NULL,
  challenge TEXT NOT NULL,
  expires INTEGER NOT NULL,
  is_used INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS oauth_token (
  hash BLOB PRIMARY KEY,
  grant_id TEXT NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  rights TEXT NOT NULL,
  expires INTEGER NOT NULL,
  is_used INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS oauth_token_by_grant ON oauth_token (grant_id);

CREATE TABLE IF NOT EXISTS idempotency (
  caller TEXT NOT NULL,
  key BLOB NOT NULL,
  request BLOB NOT NULL,
  attempt TEXT NOT NULL,
  lease REAL NOT NULL,
  created REAL NOT NULL,
  reply TEXT,
  PRIMARY KEY (caller, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_created ON idempotency (created);
