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
// An event that AppendEvent accepted is as safe as the server's own settings make it. If the server
// cannot be reached, the store waits for it. If the server fails during a commit, the store checks
// afterwards whether the commit took place, so that the event is stored once.
//
// A connection pooler must be in session mode, because prepared statements and LISTEN need that.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/refrain-dev/refrain/session/internal/sqlstore"
)

// Config says how to use the database. Its zero value has the defaults.
type Config struct {
	// Schema is the schema of the tables; empty means refrain. Open creates it if it does not exist. Its
	// name has at most 63 bytes.
	Schema string
	// Writers is the largest number of concurrent transactions that write; 0 means 8.
	Writers int
	// Conns is the largest number of connections that the process opens, at least 3, because one listens
	// while a session is watched, and the others read and write. 0 means two for each writer, plus one.
	// pool_max_conns=N in the DSN overrides it.
	Conns int
	// Wait is how long a call waits for a server that cannot be reached; 0 means 30 s.
	Wait time.Duration
}

// Service is a session.Service, lease.Leaser and store.Watcher in a PostgreSQL database. It is
// safe for concurrent use. Call Close when it is no longer needed.
type Service struct{ *store }

type store = sqlstore.Store

//go:embed migrations
var migrations embed.FS

// poolSize is the setting of a DSN that says how many connections there may be.
const poolSize = "pool_max_conns"

// idle is how long a transaction may do nothing before the server ends it.
const idle = "idle_in_transaction_session_timeout"

// Open connects to the database that dsn names, as a URL or as settings such as "host=/run/postgresql
// dbname=refrain"; the environment's PGHOST, PGUSER and so on fill in what it leaves out. Open updates
// tables of an older version, and refuses those of a newer one. If the server cannot be reached, Open
// waits for it for Config.Wait.
//
// The server ends a transaction after 5 s without a statement, such as that of a frozen or disconnected
// process, so that others get the session; idle_in_transaction_session_timeout in the DSN overrides the 5
// s.
func Open(ctx context.Context, dsn string, cfg Config) (*Service, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL database: %w", err)
	}
	schema := cmp.Or(cfg.Schema, "refrain")
	if len(schema) > 63 || strings.ContainsAny(schema, "$\x00") {
		return nil, fmt.Errorf("open PostgreSQL database: %q cannot name a schema: it is longer than 63 bytes, or "+
			"has a $ or a zero in it", schema)
	}
	config.RuntimeParams["search_path"] = quoteIdentifier(schema)
	for _, name := range []string{"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity"} {
		delete(config.RuntimeParams, name) // settings of pgx, which are not the server's
	}
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], "refrain")
	config.RuntimeParams[idle] = cmp.Or(config.RuntimeParams[idle], "5s")
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, 5*time.Second)
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
	db := sql.OpenDB(connector{config})
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

// quoteIdentifier returns a name as SQL has it.
func quoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
