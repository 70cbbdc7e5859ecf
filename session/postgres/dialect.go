// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/session/internal/sqlstore"
)

// answer bounds how long a transaction that writes may take.
const answer = 10 * time.Second

// dialect is PostgreSQL's, for one database.
type dialect struct {
	sqlstore.Dialect
	config *pgconn.Config
	schema string
}

func newDialect(config *pgconn.Config, schema string) *sqlstore.Dialect {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the name is above
	}
	d := &dialect{config: config, schema: schema}
	literal := "'" + strings.ReplaceAll(schema, "'", "''") + "'"
	d.Dialect = sqlstore.Dialect{
		Name:       fmt.Sprintf("PostgreSQL database %q at %s", config.Database, config.Host),
		Migrations: files,
		Tables:     "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()",
		Numbered:   true,
		Begin:      "BEGIN",
		Snapshot:   "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		// Two processes that make a schema at once would both fail. A user who
		// may not make schemas may still use one that is there.
		Lock: "SELECT pg_advisory_xact_lock(7234175, hashtext(" + literal +
			")); DO $$ BEGIN IF to_regnamespace(quote_ident(" + literal + ")) IS NULL " +
			"THEN EXECUTE 'CREATE SCHEMA ' || quote_ident(" + literal + "); END IF; END $$",
		Now:      "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)",
		Share:    "FOR SHARE OF s",
		Timeout:  answer,
		Classify: classify,
		Explain:  d.explain,
		Listen:   d.listen,
	}
	return &d.Dialect
}

// sqlState is the server's own code for an error; empty if the server did not
// answer.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

func classify(err error) sqlstore.Class {
	switch state := sqlState(err); {
	case state == "40001", state == "40P01", state == "55P03": // lost to another transaction
		return sqlstore.Retryable
	case state == "53300", state == "57P03": // no connection free; starting
		return sqlstore.Retryable
	case strings.HasPrefix(state, "57P"), strings.HasPrefix(state, "08"), state == "25P03": // the server goes away
		return sqlstore.ConnectionLost
	case state != "":
		return sqlstore.Final
	}
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return sqlstore.Final
	}
	_, network := errors.AsType[net.Error](err)
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case network, connecting, pgconn.SafeToRetry(err), pgconn.Timeout(err),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return sqlstore.ConnectionLost
	}
	return sqlstore.Final
}

func (d *dialect) explain(err error) error {
	hint := ""
	switch state := sqlState(err); {
	case strings.HasPrefix(state, "28"):
		hint = "the server does not let this user in: look at the user and password in the DSN, and at pg_hba.conf"
	case state == "3D000":
		hint = "there is no such database: make it with `createdb " + strconv.Quote(d.config.Database) + "`"
	case state == "42501", state == "3F000":
		hint = "the user may not do that: give it the right to make the schema " + strconv.Quote(d.schema) +
			", or make that and let the user create tables in it"
	case state == "53100":
		hint = "the server's disk is full: make room there and resume; everything that was accepted before is kept"
	case state == "25006":
		hint = "the server only lets read: connect to the one that can be written, not to a standby"
	case state == "53300":
		hint = "the server has no connection free: run fewer processes at once, lower pool_max_conns in the DSN, or " +
			"raise the server's max_connections"
	case state == "XX001", state == "XX002":
		hint = "the server says that its data is damaged: restore them from a backup"
	case classify(err) == sqlstore.ConnectionLost:
		hint = "the server at " + d.config.Host + " does not answer: see whether it runs, and resume when it does; " +
			"everything that was accepted before is kept"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", hint, err)
}

// listen waits for what the tables' triggers tell, on a connection of its own.
// When that breaks, something may have been missed.
func (d *dialect) listen(ctx context.Context, changed func(int64)) {
	const soon, late = 50 * time.Millisecond, 2 * time.Second
	for delay := soon; ctx.Err() == nil; delay = min(2*delay, late) {
		if d.hear(ctx, changed) {
			delay = soon
		}
		_ = sleep.For(ctx, delay)
	}
}

// hear is listen for as long as one connection lasts. It reports whether there
// was one.
func (d *dialect) hear(ctx context.Context, changed func(int64)) bool {
	config := d.config.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		id, _ := strconv.ParseInt(n.Payload, 10, 64)
		changed(id)
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		conn.Close(end)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+quoteIdentifier(d.schema)).ReadAll(); err != nil {
		return false
	}
	changed(0)
	for {
		if err := conn.WaitForNotification(ctx); err != nil {
			return true
		}
	}
}
