-- Times are microseconds since 1970, in UTC. A nonce is a number drawn for one
-- change, by which it is recognised when nobody knows whether it was committed.

-- An ID is never used again, so that a session that was deleted and made anew
-- is another one. The lease is nobody's if its token is 0.
CREATE TABLE sessions (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	app         TEXT    NOT NULL,
	user_id     TEXT    NOT NULL,
	name        TEXT    NOT NULL,
	created     INTEGER NOT NULL,
	nonce       INTEGER NOT NULL,
	lease_owner TEXT    NOT NULL DEFAULT '',
	lease_token INTEGER NOT NULL DEFAULT 0,
	lease_since INTEGER NOT NULL DEFAULT 0,
	lease_until INTEGER NOT NULL DEFAULT 0,
	UNIQUE (app, user_id, name)
) STRICT;

-- data is the event as JSON. The rows have no order but seq.
CREATE TABLE events (
	session INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	time    INTEGER NOT NULL,
	nonce   INTEGER NOT NULL,
	data    BLOB    NOT NULL,
	PRIMARY KEY (session, seq)
) STRICT;

-- value is JSON, in all three.
CREATE TABLE state (
	session INTEGER NOT NULL,
	key     TEXT    NOT NULL,
	value   BLOB    NOT NULL,
	PRIMARY KEY (session, key)
) STRICT;

CREATE TABLE user_state (
	app     TEXT NOT NULL,
	user_id TEXT NOT NULL,
	key     TEXT NOT NULL,
	value   BLOB NOT NULL,
	PRIMARY KEY (app, user_id, key)
) STRICT;

CREATE TABLE app_state (
	app   TEXT NOT NULL,
	key   TEXT NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY (app, key)
) STRICT;
