// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/session/sqlite"
)

var writeStored = flag.String("write-stored", "", "write testdata/`NAME`.db and NAME.json with this version; those that are there stay for ever")

// E4: databases of all versions there were are still read, and go on. A new
// version of the tables or of events adds a pair of files with -write-stored.
func TestStoredDatabasesStayReadable(t *testing.T) {
	if *writeStored != "" {
		writeDatabase(t, filepath.Join("testdata", *writeStored))
	}
	files, err := filepath.Glob("testdata/*.db")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stored databases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "refrain.db")
			write(t, path, read(t, file))
			svc := open(t, path, sqlite.Config{})
			s := get(t, svc, "s1")
			want := read(t, file[:len(file)-len("db")]+"json")
			if diff := cmp.Diff(string(want), string(describe(t, s))); diff != "" {
				t.Errorf("a stored session reads otherwise than it was written (-want +got):\n%s", diff)
			}
			n := s.Events().Len()
			if err := svc.AppendEvent(t.Context(), s, numbered(n+1)); err != nil {
				t.Fatal(err)
			}
			wantCount(t, get(t, svc, "s1"), n+1)
		})
	}
}

// The runs that are not over are found in tables of a version that did not note them.
func TestOpenRunsOfOlderTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refrain.db")
	svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	again := sessiontest.OpenRuns(t, svc)
	if err := svc.Close(); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	exec(t, db, "DROP TABLE open_runs")
	exec(t, db, "DELETE FROM refrain_schema WHERE version = 3")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again(t, open(t, path, sqlite.Config{}))
}

// A run whose record is damaged leaves the others of its application alone.
func TestDamagedRunHidesNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refrain.db")
	svc := open(t, path, sqlite.Config{})
	sessiontest.DamagedRun(t, svc, func(t *testing.T, id, key string, value []byte) {
		t.Helper()
		exec(t, raw(t, path), fmt.Sprintf(`UPDATE state SET value = x'%x' WHERE key = '%s' AND
			session = (SELECT id FROM sessions WHERE name = '%s')`, value, key, id))
	})
}

// describe is all that a session says, as JSON.
func describe(t *testing.T, s session.Session) []byte {
	t.Helper()
	events := []*session.Event{}
	for ev := range s.Events().All() {
		events = append(events, ev)
	}
	data, err := json.MarshalIndent(map[string]any{
		"app": s.AppName(), "user": s.UserID(), "id": s.ID(), "updated": s.LastUpdateTime().UTC(),
		"state": maps.Collect(s.State().All()), "events": events,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

func writeDatabase(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(name + ".db"); err == nil {
		t.Fatalf("%s.db is there, and stays", name)
	}
	path := filepath.Join(t.TempDir(), "refrain.db")
	svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := svc.Create(t.Context(), &session.CreateRequest{
		AppName: app, UserID: ana, SessionID: "s1", State: map[string]any{"topic": "cats", "user:name": "Ana", "app:motto": "less"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := resp.Session
	for range 66 { // more than are read when it is opened
		ev := sessiontest.FullEvent()
		ev.ID = ""
		ev.Actions.StateDelta["user:score"] = float64(s.Events().Len())
		ev.Actions.StateDelta["temp:note"] = "gone"
		ev.Actions.StateDelta["iteration:note"] = "kept in the event"
		if s.Events().Len() > 1 {
			ev = &session.Event{Author: "writer", Timestamp: ev.Timestamp}
		}
		if s.Events().Len() == 2 {
			text := strings.Repeat("a \"long\" text, ", 50)
			ev.Content = genai.NewContentFromText(text+"\n", genai.RoleModel)
			ev.Actions.StateDelta = map[string]any{"draft": text, "rows": []any{text, 3.5}}
		}
		if err := svc.AppendEvent(t.Context(), s, ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := svc.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, name+".db", read(t, path))
	again := open(t, path, sqlite.Config{})
	write(t, name+".json", describe(t, get(t, again, "s1")))
}
