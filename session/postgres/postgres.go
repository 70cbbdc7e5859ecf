// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps sessions in a PostgreSQL database, for processes on
// several machines.
//
//	svc, err := postgres.Open(ctx, "postgres://refrain@db.example.com/refrain", postgres.Config{})
//	if err != nil {
//		return err
//	}
//	defer svc.Close()
//	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: svc})
//
// An event that AppendEvent accepted is as safe as the server's own settings
// make it. A server that goes away is waited for. When it goes while it was told
// to commit, the store looks afterwards whether it did, so that the event is
// there once.
//
// Behind a connection pooler use one that keeps a connection for a session:
// prepared statements and LISTEN need that.
package postgres

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/refrain-dev/refrain/session/internal/sqlstore"
)

// Config says how to use the database. The zero Config is fine.
type Config struct {
	// Schema is where the tables are; "": refrain. It is made if it is not
	// there. Its name has at most 63 bytes.
	Schema string
	// Writers is how many transactions that write may be under way at once; 0: 8.
	Writers int
	// Conns is how many connections the process opens at most, at least 3: one of them
	// listens while somebody watches, and the others read and write. 0: two for each
	// writer, and one. pool_max_conns=N in the DSN goes before it.
	Conns int
	// Wait is how long a call waits for a server that is away; 0: 30 s.
	Wait time.Duration
}

// Service is a session.Service, lease.Leaser and store.Watcher in a
// PostgreSQL database. It is safe for concurrent use. Close it.
type Service struct{ *store }

type store = sqlstore.Store

//go:embed migrations
var migrations embed.FS

// poolSize is the setting of a DSN that says how many connections there may be.
const poolSize = "pool_max_conns"

// idle is how long a transaction may do nothing before the server ends it.
const idle = "idle_in_transaction_session_timeout"

// Open connects to the database that dsn names, as a URL or as words such as
// "host=/run/postgresql dbname=refrain"; the environment's PGHOST, PGUSER and so
// on fill in what it leaves out. Tables of an older version are brought up to
// date; those of a newer one are refused. It waits for a server that is away for
// Config.Wait.
//
// The server ends a transaction in which its process does nothing for 5 s, frozen or cut
// off, so that others get the session; idle_in_transaction_session_timeout in the DSN goes
// before that.
func Open(ctx context.Context, dsn string, cfg Config) (*Service, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL database: %w", err)
	}
	schema := cmp.Or(cfg.Schema, "refrain")
	if len(schema) > 63 || strings.ContainsAny(schema, "$\x00") {
		return nil, fmt.Errorf("open PostgreSQL database: %q cannot name a schema: it is longer than 63 bytes, or "+
			"has a $ or a zero in it", schema)
	}
	config.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "refrain"
	}
	if config.RuntimeParams[idle] == "" {
		config.RuntimeParams[idle] = "5s"
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	// A network that swallows everything is found out in half a minute.
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second,
		Interval: 5 * time.Second, Count: 3}}
	config.DialFunc = dialer.DialContext
	writers := cmp.Or(cfg.Writers, 8)
	conns := cmp.Or(cfg.Conns, 2*writers+1)
	if text, ok := config.RuntimeParams[poolSize]; ok {
		delete(config.RuntimeParams, poolSize) // it is not the server's
		if conns, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("open PostgreSQL database: %s=%s is not a number", poolSize, text)
		}
	}
	if conns < 3 {
		return nil, fmt.Errorf("open PostgreSQL database: %d connections are too few: one listens, and others read "+
			"and write; give at least 3", conns)
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(conns - 1)
	db.SetMaxIdleConns(conns - 1)
	writers = min(writers, conns/2)
	s, err := sqlstore.New(ctx, sqlstore.Config{
		Dialect: newDialect(config, schema), Reader: db, Writer: db,
		Readers: conns - 1 - writers, Writers: writers, Batch: 1, Wait: cfg.Wait,
	})
	if err != nil {
		return nil, err
	}
	return &Service{s}, nil
}
