// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

const app, ana = "app", "ana"

func create(t testing.TB, svc session.Service, id string) session.Session {
	t.Helper()
	resp, err := svc.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: ana, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

func get(t testing.TB, svc session.Service, id string) session.Session {
	t.Helper()
	resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

// numbered is an event that counts, in its text and in the state.
func numbered(n int) *session.Event {
	ev := &session.Event{Author: "writer"}
	ev.Actions.StateDelta = map[string]any{"n": n, "text": strings.Repeat("x", 300)}
	return ev
}

func appendN(t testing.TB, svc session.Service, to session.Session, n int) {
	t.Helper()
	for range n {
		if err := svc.AppendEvent(t.Context(), to, numbered(to.Events().Len()+1)); err != nil {
			t.Fatal(err)
		}
	}
}

// wantCount demands n events without a gap, and the state that belongs to them.
func wantCount(t testing.TB, s session.Session, n int) {
	t.Helper()
	seq := 0
	for ev := range s.Events().All() {
		if seq++; ev.Seq != int64(seq) || ev.ErrorCode == "UNREADABLE" {
			t.Fatalf("event %d has Seq %d (%s)", seq, ev.Seq, ev.ErrorMessage)
		}
	}
	if seq != n {
		t.Errorf("got %d events, want %d", seq, n)
	}
	if got, err := s.State().Get("n"); n > 0 && (err != nil || got != float64(n)) {
		t.Errorf("the state belongs to the events: got n = %v (%v), want %d", got, err, n)
	}
}

// raw opens the database beside the service.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

func exec(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// written returns the path of a database with n events in session s1.
func written(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "refrain.db")
	svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	appendN(t, svc, create(t, svc, "s1"), n)
	if err := svc.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// fill appends until there is no more room, and returns how many events were
// accepted.
func fill(t *testing.T, svc session.Service, to session.Session) int {
	t.Helper()
	for n := range 100_000 {
		ev := numbered(n + 1)
		err := svc.AppendEvent(t.Context(), to, ev)
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "full") || !strings.Contains(err.Error(), "make room") {
			t.Errorf("the error says what is wrong and what to do, got: %v", err)
		}
		if ev.Seq != 0 || to.Events().Len() != n {
			t.Errorf("what was not stored is not in the session: got Seq %d, and %d events", ev.Seq, to.Events().Len())
		}
		return n
	}
	t.Fatal("it never got full")
	return 0
}

func TestFullDatabaseLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refrain.db")
	svc := open(t, path, sqlite.Config{MaxSize: 400_000})
	s := create(t, svc, "s1")
	n := fill(t, svc, s)
	t.Logf("%d events fit", n)
	wantCount(t, get(t, svc, "s1"), n)

	// Small ones may still fit where a large one does not.
	huge := &session.Event{Author: strings.Repeat("x", 500_000)}
	small, err := svc.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: ana, SessionID: "s2"})
	if err == nil {
		if err := svc.AppendEvent(t.Context(), small.Session, huge); err == nil {
			t.Error("an event larger than the database was stored")
		}
	}

	// With room again the same session goes on.
	roomy := open(t, path, sqlite.Config{})
	s = get(t, roomy, "s1")
	appendN(t, roomy, s, 10)
	wantCount(t, get(t, roomy, "s1"), n+10)
}

// One event that cannot be stored must not hurt those that wait beside it.
func TestEventThatDoesNotFitSparesTheOthers(t *testing.T) {
	const sessions, each = 8, 20
	svc := open(t, filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{MaxSize: 4_000_000})
	var wg sync.WaitGroup
	for i := range sessions {
		s := create(t, svc, "s"+strconv.Itoa(i))
		wg.Go(func() { appendN(t, svc, s, each) })
	}
	big := create(t, svc, "big")
	wg.Go(func() {
		for range each {
			ev := &session.Event{Author: strings.Repeat("x", 5_000_000)}
			if err := svc.AppendEvent(t.Context(), big, ev); err == nil || !strings.Contains(err.Error(), "full") {
				t.Errorf("an event larger than the database: got error %v", err)
			}
		}
	})
	wg.Wait()
	for i := range sessions {
		wantCount(t, get(t, svc, "s"+strconv.Itoa(i)), each)
	}
	wantCount(t, get(t, svc, "big"), 0)
}

func TestDamagedAndForeignFilesAreRefused(t *testing.T) {
	long := written(t, 300)
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
		want []string
	}{
		{"a text", func(t *testing.T, path string) {
			write(t, path, []byte(strings.Repeat("Dear diary, today I refrained. ", 100)))
		}, []string{"no SQLite database", "name another one"}},
		{"cut in the middle", func(t *testing.T, path string) {
			data := read(t, long)
			write(t, path, data[:len(data)/2])
		}, []string{"damaged", ".recover"}},
		{"cut to nothing, with its log", func(t *testing.T, path string) {
			write(t, path, nil)
			write(t, path+"-wal", []byte("some log"))
		}, []string{"is empty", "restore it"}},
		{"another program's", func(t *testing.T, path string) {
			exec(t, raw(t, path), "CREATE TABLE recipes (name TEXT)")
		}, []string{"another program", "use another database"}},
		{"of a newer version", func(t *testing.T, path string) {
			write(t, path, read(t, long))
			exec(t, raw(t, path), "INSERT INTO refrain_schema (version) VALUES (99)")
		}, []string{"version 99", "versions up to 3", "newer refrain"}},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}, []string{"is a folder"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "refrain.db")
			tt.make(t, path)
			svc, err := sqlite.Open(t.Context(), path, sqlite.Config{Wait: time.Second})
			if err == nil {
				svc.Close()
				t.Fatal("it was opened")
			}
			for _, want := range append(tt.want, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

// An event that is not where it belongs is not taken for another one.
func TestEventInAnothersPlaceIsAnError(t *testing.T) {
	path := written(t, 100)
	db := raw(t, path)
	exec(t, db, "DELETE FROM events WHERE seq = 7")
	exec(t, db, "UPDATE events SET seq = 7 WHERE seq = 6")
	s := get(t, open(t, path, sqlite.Config{}), "s1").(*session.View)
	for range s.Events().All() {
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "of the events 1 to") {
		t.Errorf("got %v, want an error that says that events are missing", err)
	}
}

// A file that is cut off while it is used.
func TestFileCutOffWhileInUseIsAnError(t *testing.T) {
	path := written(t, 300)
	svc := open(t, path, sqlite.Config{Wait: time.Second})
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
	if err == nil {
		for range resp.Session.Events().All() {
		}
		err = resp.Session.(*session.View).Err()
	}
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v, want an error that says that the file is damaged", err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLockedDatabaseIsWaitedFor(t *testing.T) {
	path := written(t, 1)
	svc := open(t, path, sqlite.Config{})
	s := get(t, svc, "s1")
	other := raw(t, path)
	exec(t, other, "BEGIN IMMEDIATE")
	start := time.Now()
	time.AfterFunc(1200*time.Millisecond, func() { _, _ = other.Exec("COMMIT") })
	appendN(t, svc, s, 1)
	if d := time.Since(start); d < time.Second {
		t.Errorf("the append took %v although the database was locked", d)
	}
	wantCount(t, get(t, svc, "s1"), 2)
}

func TestDatabaseThatStaysLockedIsAnError(t *testing.T) {
	path := written(t, 1)
	svc := open(t, path, sqlite.Config{Wait: 600 * time.Millisecond})
	s := get(t, svc, "s1")
	other := raw(t, path)
	exec(t, other, "BEGIN IMMEDIATE")
	ev := numbered(2)
	err := svc.AppendEvent(t.Context(), s, ev)
	if err == nil || !strings.Contains(err.Error(), "another process has locked") || !strings.Contains(err.Error(), "fuser "+path) {
		t.Errorf("got %v, want an error that says how to find who has locked it", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := svc.AppendEvent(ctx, s, ev); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an append whose context ends while it waits: got %v", err)
	}
	// One writer keeps another one from opening only while tables are made.
	if _, err := sqlite.Open(t.Context(), path, sqlite.Config{Wait: 100 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("open: got %v, want an error that says that the file is locked", err)
	}
	exec(t, other, "ROLLBACK")
	appendN(t, svc, s, 1)
	wantCount(t, get(t, svc, "s1"), 2)
}

// One caller writes what several wait for: when it gives up, the others' events are written still.
func TestCallerThatGivesUpSparesTheOthers(t *testing.T) {
	path := written(t, 1)
	svc := open(t, path, sqlite.Config{Wait: time.Minute})
	other := raw(t, path)
	var held []session.Session
	for i := range 5 {
		held = append(held, create(t, svc, "s"+strconv.Itoa(i+2)))
	}
	exec(t, other, "BEGIN IMMEDIATE")
	ended := make([]chan error, len(held))
	cancels := make([]context.CancelFunc, len(held))
	for i, s := range held {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended[i], cancels[i] = make(chan error, 1), cancel
		go func() { ended[i] <- svc.AppendEvent(ctx, s, numbered(1)) }()
	}
	for i, cancel := range cancels[:3] {
		cancel()
		if err := <-ended[i]; !errors.Is(err, context.Canceled) {
			t.Errorf("an append whose context has ended: got %v", err)
		}
	}
	exec(t, other, "ROLLBACK")
	for i, s := range held {
		n := 0
		if i >= 3 {
			n = 1
			if err := <-ended[i]; err != nil {
				t.Errorf("an append that was not given up: got %v", err)
			}
		}
		wantCount(t, get(t, svc, s.ID()), n)
	}
}

func TestManyOpenANewDatabaseAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "a file?with#odd %41 name.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
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
	list, err := open(t, path, sqlite.Config{}).List(t.Context(), &session.ListRequest{AppName: app})
	if err != nil || len(list.Sessions) != 8 {
		t.Errorf("got %v, %v; want the sessions of all", list, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want a file that others cannot read", info.Mode(), err)
	}
}
