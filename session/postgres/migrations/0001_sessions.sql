-- Times are microseconds since 1970, in UTC. A nonce is a number drawn for one
-- change, by which it is recognised when nobody knows whether it was committed.

-- An ID is never used again, so that a session that was deleted and made anew
-- is another one. The lease is nobody's if its token is 0.
CREATE TABLE sessions (
	id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	app         TEXT   COLLATE "C" NOT NULL,
	user_id     TEXT   COLLATE "C" NOT NULL,
	name        TEXT   COLLATE "C" NOT NULL,
	created     BIGINT NOT NULL,
	nonce       BIGINT NOT NULL,
	lease_owner TEXT   NOT NULL DEFAULT '',
	lease_token BIGINT NOT NULL DEFAULT 0,
	lease_since BIGINT NOT NULL DEFAULT 0,
	lease_until BIGINT NOT NULL DEFAULT 0,
	UNIQUE (app, user_id, name)
);

-- data is the event as JSON. The rows have no order but seq.
CREATE TABLE events (
	session BIGINT NOT NULL,
	seq     BIGINT NOT NULL,
	time    BIGINT NOT NULL,
	nonce   BIGINT NOT NULL,
	data    BYTEA  NOT NULL,
	PRIMARY KEY (session, seq)
);

-- value is JSON, in all three.
CREATE TABLE state (
	session BIGINT NOT NULL,
	key     TEXT   COLLATE "C" NOT NULL,
	value   BYTEA  NOT NULL,
	PRIMARY KEY (session, key)
);

CREATE TABLE user_state (
	app     TEXT  COLLATE "C" NOT NULL,
	user_id TEXT  COLLATE "C" NOT NULL,
	key     TEXT  COLLATE "C" NOT NULL,
	value   BYTEA NOT NULL,
	PRIMARY KEY (app, user_id, key)
);

CREATE TABLE app_state (
	app   TEXT  COLLATE "C" NOT NULL,
	key   TEXT  COLLATE "C" NOT NULL,
	value BYTEA NOT NULL,
	PRIMARY KEY (app, key)
);

-- Whoever watches listens to the channel that is named like the schema.
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'DELETE' THEN
		PERFORM pg_notify(TG_TABLE_SCHEMA::text, OLD.id::text);
	ELSE
		PERFORM pg_notify(TG_TABLE_SCHEMA::text, NEW.session::text);
	END IF;
	RETURN NULL;
END $$;

CREATE TRIGGER tell_event AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER tell_deletion AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION tell();
