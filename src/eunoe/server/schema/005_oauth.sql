CREATE TABLE oauth_client (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,
  created INTEGER NOT NULL,
  used INTEGER
);

CREATE TABLE oauth_grant (
  id TEXT PRIMARY KEY,
  client TEXT NOT NULL REFERENCES oauth_client (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  rights TEXT NOT NULL,
  resource TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL
);

CREATE INDEX oauth_grant_by_key ON oauth_grant (key);
CREATE INDEX oauth_grant_by_client ON oauth_grant (client);

CREATE TABLE oauth_code (
  hash BLOB PRIMARY KEY,
  grant_id TEXT NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
  redirect_uri TEXT NOT NULL,
  challenge TEXT NOT NULL,
  expires INTEGER NOT NULL,
  is_used INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE oauth_token (
  hash BLOB PRIMARY KEY,
  grant_id TEXT NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  rights TEXT NOT NULL,
  expires INTEGER NOT NULL,
  is_used INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX oauth_token_by_grant ON oauth_token (grant_id);
