// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "modernc.org/sqlite"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// committed counts the transactions that write, of all databases that this process
// opens after hooked was called.
var (
	committed atomic.Int64
	hooked    = sync.OnceFunc(func() {
		driver.RegisterConnectionHook(func(conn driver.ExecQuerierContext, _ string) error {
			conn.(driver.HookRegisterer).RegisterCommitHook(func() int32 {
				committed.Add(1)
				return 0
			})
			return nil
		})
	})
)

// The transactions that an iteration of two pure steps takes.
func commits(t *testing.T, tb *table) {
	hooked()
	after := func(iterations int) float64 {
		d, err := definition.Parse("loop.yaml", []byte(twoSteps(iterations)), definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		root, err := d.Build(t.Context(), definition.BuildConfig{})
		if err != nil {
			t.Fatal(err)
		}
		svc, _ := openStore(t, sqlite.Config{Relaxed: true})
		r, err := ours.NewRunner(root, svc, true)
		if err != nil {
			t.Fatal(err)
		}
		before := committed.Load()
		if _, err := ours.Said(ours.Run(r, "s")); err != nil {
			t.Fatal(err)
		}
		return float64(committed.Load() - before)
	}
	tb.atMost("commits of an iteration of two pure steps", "commits", 2, series{(after(110) - after(10)) / 100},
		"2 commits: one for each step")
}

// openStore opens a new database.
func openStore(t *testing.T, cfg sqlite.Config) (*sqlite.Service, string) {
	t.Helper()
	path := filepath.Join(newFolder(t), "runs.db")
	return openAt(t, path, cfg), path
}

func openAt(t *testing.T, path string, cfg sqlite.Config) *sqlite.Service {
	t.Helper()
	svc, err := sqlite.Open(t.Context(), path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = svc.Close() })
	return svc
}

func newSession(t *testing.T, svc session.Service) session.Session {
	t.Helper()
	resp, err := svc.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: user, SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

// appended is an event as a step says it.
func appended() *session.Event {
	ev := ours.NewEvent(context.Background(), "e-1")
	ev.Author, ev.Address, ev.Iteration, ev.Attempt = "critic", "story/refine[3]/critic", 3, 1
	return ev
}

// row is an event in the database.
type row struct {
	seq, time, nonce int64
	data, texts      []byte
}

// rowsOf reads the rows of a database by hand.
func rowsOf(t *testing.T, path string) []row {
	t.Helper()
	db := rawDatabase(t, path)
	all, err := selectRows(db)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func selectRows(db *sql.DB) (all []row, err error) {
	rows, err := db.Query("SELECT seq, time, nonce, data, texts FROM events ORDER BY seq")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.seq, &r.time, &r.nonce, &r.data, &r.texts); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// rawDatabase opens a database with our driver and our settings, and nothing else.
func rawDatabase(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// inserter inserts rows by hand, each in a transaction of its own.
type inserter struct {
	stmt *sql.Stmt
	rows []row
	next int64
}

func newInserter(t *testing.T, rows []row) *inserter {
	t.Helper()
	db := rawDatabase(t, filepath.Join(newFolder(t), "raw.db"))
	_, err := db.Exec(`CREATE TABLE events (session INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL,
nonce INTEGER NOT NULL, data BLOB NOT NULL, texts BLOB, PRIMARY KEY (session, seq)) STRICT`)
	if err != nil {
		t.Fatal(err)
	}
	stmt, err := db.Prepare("INSERT INTO events (session, seq, time, nonce, data, texts) VALUES (1, ?, ?, ?, ?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	return &inserter{stmt: stmt, rows: rows}
}

func (i *inserter) insert(n int) (int, error) {
	for range n {
		r := i.rows[int(i.next)%len(i.rows)]
		i.next++
		if _, err := i.stmt.Exec(i.next, r.time, r.nonce, r.data, r.texts); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// aRow is the row of appended.
var aRow = sync.OnceValues(func() (r row, err error) {
	r.time, r.nonce = time.Now().UnixMicro(), 1
	r.data, err = json.Marshal(appended())
	return r, err
})

// rawInserts inserts rows into a new database.
func rawInserts(t *testing.T, n int) cost {
	t.Helper()
	r, err := aRow()
	if err != nil {
		t.Fatal(err)
	}
	in := newInserter(t, []row{r})
	m := start()
	if _, err := in.insert(n); err != nil {
		t.Fatal(err)
	}
	return m.stop(n)
}

// An append that is on the disk when it returns, beside an INSERT of the same row with
// the same driver, and a write and fdatasync of the same bytes.
func durableAppend(t *testing.T, tb *table) {
	const n = 10 // in a row
	svc, path := openStore(t, sqlite.Config{})
	s := newSession(t, svc)
	ours := func() (int, error) {
		for range n {
			if err := svc.AppendEvent(t.Context(), s, appended()); err != nil {
				return 0, err
			}
		}
		return n, nil
	}
	if _, err := ours(); err != nil {
		t.Fatal(err)
	}
	in := newInserter(t, rowsOf(t, path))
	file, err := os.Create(filepath.Join(newFolder(t), "synced"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	synced := func() (int, error) {
		for range n {
			r := in.rows[0]
			if _, err := file.Write(r.data); err != nil {
				return 0, err
			}
			if err := file.Sync(); err != nil {
				return 0, err
			}
		}
		return n, nil
	}
	got := map[string]costs{}
	for range 15 {
		one := turns(t, 12, map[string]op{"ours": ours, "raw": func() (int, error) { return in.insert(n) }, "sync": synced})
		for name, c := range one {
			got[name] = append(got[name], c)
		}
	}
	wall, raw := got["ours"].wall(), got["raw"].wall()
	tb.atMost("durable append, wall", "× raw INSERT", 1.2, wall.over(raw), floor("raw INSERT", "µs", raw.in(us)))
	tb.atMost("durable append", "CPU µs", 150, got["ours"].cpu().in(us),
		floor("raw INSERT", "CPU µs", got["raw"].cpu().in(us)))
	tb.tell("durable append", "wall µs", wall.in(us))
	durable, err := oursRunner(true)(1000)
	if err != nil {
		t.Fatal(err)
	}
	tb.atMost("a durable event without its commit", "× the commit", 0.1, rounds(t, 9, brief("durable", durable))["durable"].cpu().over(wall),
		floor("an append", "wall µs", wall.in(us)))
	tb.tell("  write and sync of a file", "wall µs", got["sync"].wall().in(us))
}

// turns measures one round in which the sides take turns, since a disk is now faster and
// now slower.
func turns(t *testing.T, n int, sides map[string]op) map[string]cost {
	t.Helper()
	sum, events := make(map[string]cost), make(map[string]float64)
	for range n {
		for name, do := range sides {
			cpu, wall := cpuTime(), time.Now()
			done, err := do()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c := sum[name]
			c.wall += float64(time.Since(wall))
			c.cpu += float64(cpuTime() - cpu)
			sum[name], events[name] = c, events[name]+float64(done)
		}
	}
	for name, c := range sum {
		sum[name] = cost{cpu: c.cpu / events[name], wall: c.wall / events[name]}
	}
	return sum
}

// plainEvent is an event as encoding/json reads it.
type plainEvent session.Event

// A session of 10,000 events is read, and then each of its events.
func load(t *testing.T, tb *table) {
	const n, recent = 10_000, 20
	svc, path := openStore(t, sqlite.Config{Relaxed: true})
	s := newSession(t, svc)
	var evs []*session.Event
	for range n {
		evs = append(evs, appended())
	}
	if err := svc.AppendEvents(t.Context(), s, evs); err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, path)
	db := rawDatabase(t, path)
	look := func(req session.GetRequest, n int) error {
		req.AppName, req.UserID, req.SessionID = app, user, "s"
		resp, err := svc.Get(t.Context(), &req)
		if err != nil {
			return err
		}
		found := 0
		for ev := range resp.Session.Events().All() {
			if ev.Author == "critic" && ev.Text() == text {
				found++
			}
		}
		if found != n {
			return fmt.Errorf("%d events, want %d", found, n)
		}
		return nil
	}
	got := rounds(t, 9,
		sampled("all", func() (int, error) { return 1, look(session.GetRequest{}, n) }),
		sampled("recent", func() (int, error) { return 1, look(session.GetRequest{NumRecentEvents: recent}, recent) }),
		sampled("json", func() (int, error) {
			for _, r := range rows {
				var ev plainEvent
				if err := json.Unmarshal(r.data, &ev); err != nil {
					return 0, err
				}
			}
			return 1, nil
		}),
		sampled("select", func() (int, error) {
			all, err := selectRows(db)
			if err == nil && len(all) != n {
				err = fmt.Errorf("%d rows", len(all))
			}
			return 1, err
		}))
	all, byHand := got["all"].cpu(), got["json"].cpu()
	rowsAlone := got["select"].cpu()
	tb.tell("load of 10,000 events", "CPU ms", all.in(ms))
	tb.tell("  SELECT of the rows by hand", "CPU ms", rowsAlone.in(ms))
	tb.atMost("load of 10,000 events", "× encoding/json", 1.5, all.over(byHand),
		floor("encoding/json alone", "ms", byHand.in(ms)))
	tb.atMost("load of the newest 20", "CPU ms", 0.2, got["recent"].cpu().in(ms),
		floor("20 of 10,000 rows by hand", "ms", rowsAlone.in(ms*n/recent)))
}

// A run that was cut off is resumed, up to the first new event of an agent.
func resume(t *testing.T, tb *table) {
	for _, g := range []struct {
		at     int
		millis float64
		rounds int
	}{{1_000, 150, 7}, {10_000, 1000, 5}} {
		path, id := cutOff(t, g.at)
		loop, err := ours.Loop(g.at + 10)
		if err != nil {
			t.Fatal(err)
		}
		got := rounds(t, g.rounds,
			side{"ours", func() (cost, error) { return resumeCopy(t, loop, path, id) }},
			side{"select", func() (cost, error) {
				db := rawDatabase(t, path)
				m := start()
				_, err := selectRows(db)
				return m.stop(1), errors.Join(err, db.Close())
			}})
		what := fmt.Sprintf("resume at iteration %d, to the first step", g.at)
		tb.atMost(what, "CPU ms", g.millis, got["ours"].cpu().in(ms),
			floor("SELECT of the rows by hand", "ms", got["select"].cpu().in(ms)))
		tb.tell(what, "wall ms", got["ours"].wall().in(ms))
	}
}

// cutOff makes a database with a run that was cut off after a number of iterations.
func cutOff(t *testing.T, iterations int) (path, id string) {
	t.Helper()
	svc, path := openStore(t, sqlite.Config{Relaxed: true})
	loop, err := ours.Loop(iterations + 10)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ours.NewRunner(loop, svc, true)
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range ours.Run(r, "s") {
		if err != nil {
			t.Fatal(err)
		}
		if id = ev.InvocationID; ev.Iteration > iterations && ev.Author == "critic" {
			break
		}
	}
	if err := svc.Close(); err != nil {
		t.Fatal(err)
	}
	return path, id
}

// resumeCopy resumes the run of a copy of the database, which is open.
func resumeCopy(t *testing.T, loop agent.Agent, path, id string) (c cost, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	copied := filepath.Join(newFolder(t), "runs.db")
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		return c, err
	}
	data = nil
	svc := openAt(t, copied, sqlite.Config{})
	r, err := ours.NewRunner(loop, svc, true)
	if err != nil {
		return c, err
	}
	m := start()
	for ev, err := range r.Resume(t.Context(), user, "s", id, agent.RunConfig{}) {
		if err != nil {
			return c, err
		}
		if ev.Mark == nil {
			c = m.stop(1)
			break
		}
	}
	if c.wall == 0 {
		err = errors.New("the resumed run has no new event")
	}
	return c, errors.Join(err, svc.Close())
}
