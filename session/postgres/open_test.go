// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/postgres"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// statement runs statements beside the service.
func statement(t *testing.T, texts ...string) {
	t.Helper()
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	db, err := sql.Open("pgx", cluster.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range texts {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func TestManyOpenANewDatabaseAtOnce(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			svc, err := postgres.Open(t.Context(), cluster.dsn, postgres.Config{Schema: "at once", Writers: 2})
			if err != nil {
				t.Error(err)
				return
			}
			defer svc.Close()
			if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: ana, SessionID: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := open(t, postgres.Config{Schema: "at once"}).List(t.Context(), &session.ListRequest{AppName: app})
	if err != nil || len(list.Sessions) != 6 {
		t.Errorf("got %v, %v; want the sessions of all", list, err)
	}
}

// The runs that are not over are found in tables of a version that did not note them.
func TestOpenRunsOfOlderTables(t *testing.T) {
	cfg := postgres.Config{Schema: "older"}
	again := sessiontest.OpenRuns(t, open(t, cfg))
	statement(t, `DROP TABLE older.open_runs`, `DELETE FROM older.refrain_schema WHERE version = 3`)
	again(t, open(t, cfg))
}

func TestDatabasesThatCannotBeUsedAreRefused(t *testing.T) {
	statement(t,
		`CREATE SCHEMA cookbook`, `CREATE TABLE cookbook.recipes (name TEXT)`,
		`CREATE ROLE stranger LOGIN`)
	newer := postgres.Config{Schema: "newer"}
	open(t, newer)
	statement(t, `INSERT INTO newer.refrain_schema (version) VALUES (99)`)
	for _, tt := range []struct {
		name, dsn, schema string
		want              []string
	}{
		{"of a newer version", cluster.dsn, "newer", []string{"version 99", "versions up to 3", "newer refrain"}},
		{"another program's", cluster.dsn, "cookbook", []string{"another program", "use another database"}},
		{"not there", cluster.dsn + " dbname=nowhere", "x", []string{"no such database", "createdb"}},
		{"user unknown", cluster.dsn + " user=nobody", "x", []string{"does not let this user in"}},
		{"user without rights", cluster.dsn + " user=stranger", "x", []string{"the right to make the schema \"x\""}},
		{"schema with a long name", cluster.dsn, strings.Repeat("x", 64), []string{"longer than 63 bytes"}},
		{"server away", "host=" + t.TempDir(), "x", []string{"does not answer"}},
		{"DSN without sense", "postgres://[", "x", []string{"cannot parse"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wait := 30 * time.Second // for a server that is busy
			if tt.name == "server away" {
				wait = 300 * time.Millisecond
			}
			svc, err := postgres.Open(t.Context(), tt.dsn, postgres.Config{Schema: tt.schema, Wait: wait})
			if err == nil {
				svc.Close()
				t.Fatal("it was opened")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

// Whoever runs the server may make the schema, and no other.
func TestSchemaThatIsThereTakesNoRightToMakeOne(t *testing.T) {
	statement(t, `CREATE ROLE tenant LOGIN`, `CREATE SCHEMA "tenant's"`, `GRANT USAGE, CREATE ON SCHEMA "tenant's" TO tenant`)
	svc, err := postgres.Open(t.Context(), cluster.dsn+" user=tenant", postgres.Config{Schema: "tenant's"})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	s := create(t, svc, "s1")
	if err := svc.AppendEvent(t.Context(), s, numbered(1)); err != nil {
		t.Error(err)
	}
}

func TestServerThatOnlyLetsReadIsAnError(t *testing.T) {
	cfg := postgres.Config{Schema: "standby"}
	create(t, open(t, cfg), "s1")
	svc, err := postgres.Open(t.Context(), cluster.dsn+" default_transaction_read_only=on", cfg)
	if err == nil {
		defer svc.Close()
		err = svc.AppendEvent(t.Context(), get(t, svc, "s1"), numbered(1))
	}
	if err == nil || !strings.Contains(err.Error(), "only lets read") {
		t.Errorf("got %v, want an error that says what to connect to", err)
	}
}

// E4: thirty processes at once fit into the 100 connections of a server, if each has the
// three that refrain gives it; the DSN can say otherwise. A setting of pgx does not reach the server.
func TestPoolsAreBounded(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	for _, tt := range []struct {
		dsn  string
		cfg  postgres.Config
		want int
	}{
		{cluster.dsn, postgres.Config{Schema: "pools", Conns: 3}, 3},
		{cluster.dsn + " pool_max_conns=5 default_query_exec_mode=exec", postgres.Config{Schema: "pools", Conns: 3}, 5},
	} {
		svc, err := postgres.Open(t.Context(), tt.dsn+" application_name=pool"+fmt.Sprint(tt.want), tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer svc.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		var appended atomic.Int64
		defer wg.Wait()
		defer cancel()
		for i := range 12 {
			s := create(t, svc, fmt.Sprint("pool", tt.want, "-", i))
			wg.Go(func() {
				for range svc.Watch(ctx, lease.KeyOf(s), 0) {
				}
			})
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := svc.AppendEvent(ctx, s, &session.Event{Author: "a"}); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
					appended.Add(1)
				}
			})
		}
		db, err := sql.Open("pgx", cluster.dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		most := 0
		for (appended.Load() < 200 || most < 2) && !t.Failed() { // one listens, one writes
			n := 0
			if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", fmt.Sprint("pool", tt.want)).Scan(&n); err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		if most > tt.want {
			t.Errorf("%d connections, want at most %d", most, tt.want)
		}
		cancel()
		wg.Wait()
	}
	for _, dsn := range []string{" pool_max_conns=2", " pool_max_conns=many"} {
		if _, err := postgres.Open(t.Context(), cluster.dsn+dsn, postgres.Config{}); err == nil {
			t.Errorf("%s is taken", dsn)
		}
	}
}

// E4: three connections do for all that a store does.
func TestServiceWithThreeConnections(t *testing.T) {
	three := func(t *testing.T) session.Service {
		t.Parallel()
		return open(t, postgres.Config{Conns: 3})
	}
	sessiontest.TestService(t, three)
	t.Run("lease", func(t *testing.T) { sessiontest.TestLeaser(t, three) })
	t.Run("watch", func(t *testing.T) { sessiontest.TestWatcher(t, three) })
}

// 12k: a role that may only read reads.
func TestRoleThatOnlyReads(t *testing.T) {
	svc := open(t, postgres.Config{Schema: "looked at"})
	s := create(t, svc, "s1")
	if err := svc.AppendEvent(t.Context(), s, &session.Event{Author: "a"}); err != nil {
		t.Fatal(err)
	}
	statement(t, `CREATE ROLE onlooker LOGIN`, `GRANT USAGE ON SCHEMA "looked at" TO onlooker`, `GRANT SELECT ON ALL TABLES IN SCHEMA "looked at" TO onlooker`)
	defer statement(t, `DROP OWNED BY onlooker`, `DROP ROLE onlooker`)
	looks, err := postgres.Open(t.Context(), cluster.dsn+" user=onlooker", postgres.Config{Schema: "looked at", Conns: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer looks.Close()
	if n := get(t, looks, "s1").Events().Len(); n != 1 {
		t.Errorf("it reads %d events", n)
	}
	if err := looks.AppendEvent(t.Context(), get(t, looks, "s1"), &session.Event{Author: "a"}); err == nil {
		t.Error("it writes")
	}
}

// A run whose record is damaged leaves the others of its application alone.
func TestDamagedRunHidesNoOther(t *testing.T) {
	svc := open(t, postgres.Config{Schema: "damaged"})
	db, err := sql.Open("pgx", cluster.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sessiontest.DamagedRun(t, svc, func(t *testing.T, id, key string, value []byte) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), `UPDATE damaged.state SET value = $1 WHERE key = $2 AND
			session = (SELECT id FROM damaged.sessions WHERE name = $3)`, value, key, id)
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A server that was restarted has closed the idle connections. The store takes new ones, whether or not it has asked since.
func TestStoreOutlivesItsConnections(t *testing.T) {
	statement(t)
	svc, err := postgres.Open(t.Context(), cluster.dsn+" application_name=closed", postgres.Config{Schema: "closed"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = svc.Close() })
	for _, id := range []string{"before", "after"} {
		req := &session.CreateRequest{AppName: "app", UserID: "user", SessionID: id}
		if _, err := svc.Create(t.Context(), req); err != nil {
			t.Errorf("create %s: %v", id, err)
		}
		statement(t, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'closed'`)
	}
}

// The driver itself notices it before it sends a statement, whose outcome would else be unknown: of the store's attempts none
// is used up.
func TestClosedConnectionIsNotUsed(t *testing.T) {
	statement(t)
	db, err := postgres.OpenDB(cluster.dsn + " application_name=idle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	use := func() {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), "select 1"); err != nil {
			t.Error(err)
		}
	}
	use()
	statement(t, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'idle'`)
	time.Sleep(1100 * time.Millisecond) // a connection that was taken within a second is not asked
	use()
}
