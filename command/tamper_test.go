// SPDX-License-Identifier: Apache-2.0

package command

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// tampered is a database with a run that has completed, r_1, and with whoever changes it
// by hand.
type tampered struct {
	*testing.T
	db   *sql.DB
	id   int64
	last int64 // event
}

// newTampered runs a definition and opens the database behind its store.
func newTampered(t *testing.T, dir, definition string) *tampered {
	t.Helper()
	cli(t, 0, "run", definition, "--session", "r_1", "--store", "sqlite:"+filepath.Join(dir, "runs.db"), "--exit-zero-on-limit", "--progress", "quiet",
		"--record", filepath.Join(dir, "record.jsonl"))
	db, err := sql.Open("sqlite", filepath.Join(dir, "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &tampered{T: t, db: db}
	if err := db.QueryRow(`SELECT s.id, max(e.seq) FROM sessions s JOIN events e ON e.session = s.id WHERE s.name = 'r_1' AND s.app = 'refrain'`).Scan(&s.id, &s.last); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *tampered) exec(text string, args ...any) {
	s.Helper()
	res, err := s.db.Exec(text, args...)
	if err != nil {
		s.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		s.Fatalf("%s changed nothing; %v", text, err)
	}
}

// event changes an event.
func (s *tampered) event(seq int64, change func(*session.Event)) {
	s.Helper()
	var data []byte
	if err := s.db.QueryRow(`SELECT data FROM events WHERE session = ? AND seq = ?`, s.id, seq).Scan(&data); err != nil {
		s.Fatal(err)
	}
	s.exec(`UPDATE events SET data = ? WHERE session = ? AND seq = ?`, changedEvent(s.T, data, change), s.id, seq)
}

// append adds an event, which is like the last one apart from a change, and its delta.
func (s *tampered) append(change func(*session.Event)) {
	s.Helper()
	var data []byte
	if err := s.db.QueryRow(`SELECT data FROM events WHERE session = ? AND seq = ?`, s.id, s.last).Scan(&data); err != nil {
		s.Fatal(err)
	}
	s.last++
	data = changedEvent(s.T, data, func(ev *session.Event) {
		ev.Seq, ev.ID, ev.Mark, ev.Actions.StateDelta = s.last, fmt.Sprint(s.last), nil, map[string]any{}
		change(ev)
		for key, val := range ev.Actions.StateDelta {
			s.state(key, val)
		}
	})
	s.exec(`INSERT INTO events (session, seq, time, nonce, data) SELECT session, seq + 1, time, 7, ? FROM events WHERE session = ? AND seq = ?`, data, s.id, s.last-1)
}

// state writes a key of the state.
func (s *tampered) state(key string, val any) {
	s.Helper()
	text, err := json.Marshal(val)
	if err != nil {
		s.Fatal(err)
	}
	s.exec(`INSERT INTO state (session, key, value) VALUES (?, ?, ?) ON CONFLICT (session, key) DO UPDATE SET value = excluded.value`, s.id, key, text)
}

func changedEvent(t *testing.T, data []byte, change func(*session.Event)) []byte {
	t.Helper()
	ev := new(session.Event)
	if err := json.Unmarshal(data, ev); err != nil {
		t.Fatal(err)
	}
	change(ev)
	out, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func renamed(from, to string) func(*session.Event) {
	return func(ev *session.Event) {
		ev.Mark.Data = json.RawMessage(strings.Replace(string(ev.Mark.Data), `"`+from+`":`, `"`+to+`":`, 1))
	}
}

func approves(ev *session.Event) {
	if ev.Actions.StateDelta == nil {
		ev.Actions.StateDelta = make(map[string]any)
	}
	ev.Actions.StateDelta["approved"] = true
}

// G9, 12g: what somebody changes in a store is noticed without a hash that was kept
// elsewhere: by the seal of the end, by what stands behind it, and since the state is kept
// beside the events, too.
func TestTamperedStoreIsNoticed(t *testing.T) {
	definition := writeStory(t, t.TempDir())
	for name, tt := range map[string]struct {
		change func(*tampered)
		want   string
	}{
		"an event behind the end": {func(s *tampered) { s.append(approves) }, "CHANGED  run r_1: event 19 after its end"},
		"an event of no run behind the end": {func(s *tampered) {
			s.append(func(ev *session.Event) { ev.InvocationID = "x"; approves(ev) })
		}, "CHANGED  run r_1: event 19 after its end"},
		"taken up, and still completed": {func(s *tampered) {
			s.append(func(ev *session.Event) {
				ev.Mark = &mark.Mark{Kind: mark.KindRunTaken, Data: json.RawMessage("{}")}
			})
			s.append(approves)
		}, "after its end neither"},
		"the last event is deleted": {func(s *tampered) {
			s.exec(`DELETE FROM events WHERE session = ? AND seq = ?`, s.id, s.last)
		}, "CHANGED  state: the status of the last run differs from its events"},
		"the first event is deleted": {func(s *tampered) {
			s.exec(`DELETE FROM events WHERE session = ? AND seq = 1`, s.id)
		}, "CHANGED  log: events are missing: there are "},
		"the seal is renamed":          {func(s *tampered) { s.event(s.last, renamed("seal", "sael")) }, "CHANGED  run r_1: its end has no seal: it was taken out"},
		"the seal's length is renamed": {func(s *tampered) { s.event(s.last, renamed("events", "evens")) }, "CHANGED  run r_1: its end has no seal: it was taken out"},
		"the seal and its duty are taken out": {func(s *tampered) {
			s.event(s.last, renamed("seal", "sael"))
			s.event(1, renamed("sealed", "saeled"))
		}, "unsealed run r_1: its end has no seal: it was written before ends had one, or the seal was taken out"},
		"the end changes the state": {func(s *tampered) {
			s.event(s.last, approves)
			s.state("approved", true)
		}, "CHANGED  run r_1: an event of it"},
		"the end belongs to a step": {func(s *tampered) { s.event(s.last, func(ev *session.Event) { ev.Address = "story" }) }, "CHANGED  run r_1: its end has the address of a step"},
		"a made-up key":             {func(s *tampered) { s.state("approved", true) }, `CHANGED  state: key "approved" is there, and no event has written it`},
		"another value":             {func(s *tampered) { s.state("draft", "version 7") }, `CHANGED  state: key "draft" has another value than the last event that wrote it says`},
		"a key is deleted": {func(s *tampered) {
			s.exec(`DELETE FROM state WHERE session = ? AND key = 'draft'`, s.id)
		}, `CHANGED  state: key "draft" is missing, and an event has written it`},
		"the run has failed": {func(s *tampered) {
			s.exec(`UPDATE state SET value = CAST(replace(CAST(value AS TEXT), 'completed', 'failed') AS BLOB) WHERE session = ? AND key = ?`, s.id, mark.KeyRun)
		}, "CHANGED  state: the status of the last run differs from its events"},
		"events are left out": {func(s *tampered) { s.state(mark.KeySuperseded, "2-9") }, "CHANGED  state: which events count is not what the events say"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := newTampered(t, dir, definition)
			store := "sqlite:" + filepath.Join(dir, "runs.db")
			cli(t, 0, "verify", "r_1", "--store", store)
			tt.change(s)
			if out, errs := cli(t, 1, "verify", "r_1", "--store", store); !strings.Contains(out, tt.want) {
				t.Errorf("verify says\n%s%s\nwant %q", out, errs, tt.want)
			}
		})
	}
}

// logText is a file with a run, line by line.
type logText []string

func readLogText(t *testing.T, file string) logText {
	t.Helper()
	return slices.Collect(strings.Lines(readText(t, file)))
}

// events are the lines with events, from the first up to that behind the last one.
func (l logText) events() (from, to int) {
	from, to = 0, len(l)
	if strings.HasPrefix(l[0], `{"type":"run"`) {
		from = 1
	}
	if strings.HasPrefix(l[len(l)-1], `{"type":"end"`) {
		to--
	}
	return from, to
}

// stripped is the file without its hashes, as an older version would have written it.
func (l logText) stripped() logText {
	from, to := l.events()
	l = slices.Clone(l[:to])
	if from == 1 {
		l[0] = strings.NewReplacer(`"hashed":true,`, "", `"sealed":true,`, "", `"audit":true,`, "").Replace(l[0])
	}
	return l
}

// term.Counted is the file with the number of its events in its first line.
func (l logText) counted(t *testing.T) logText {
	t.Helper()
	from, to := l.events()
	if from == 0 {
		return l
	}
	var head map[string]any
	if err := json.Unmarshal([]byte(l[0]), &head); err != nil {
		t.Fatal(err)
	}
	head["events"] = to - from
	text, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	l = slices.Clone(l)
	l[0] = strings.Replace(string(text), `{"`, `{"type":"run","`, 1) + "\n"
	return l
}

// G9, 12g: so it is in a file, also where the hashes of the file were taken out.
func TestTamperedFileIsNoticed(t *testing.T) {
	dir := t.TempDir()
	newTampered(t, dir, writeStory(t, dir))
	store := "sqlite:" + filepath.Join(dir, "runs.db")
	cli(t, 0, "export", "r_1", "--store", store, "-o", filepath.Join(dir, "run.jsonl"))
	cli(t, 0, "export", "r_1", "--store", store, "--audit", "-o", filepath.Join(dir, "audit.jsonl"))
	sealed := readLogText(t, filepath.Join(dir, "run.jsonl"))
	files := map[string]logText{
		"sealed": sealed, "audit": readLogText(t, filepath.Join(dir, "audit.jsonl")),
		"stripped": sealed.stripped(), "record": readLogText(t, filepath.Join(dir, "record.jsonl")),
	}
	last := func(change func(*session.Event)) func(logText) logText {
		return func(l logText) logText {
			_, to := l.events()
			l = slices.Clone(l)
			l[to-1] = string(changedEvent(t, []byte(l[to-1]), change)) + "\n"
			return l
		}
	}
	for name, tt := range map[string]struct {
		change func(logText) logText
		// What verify says at least where the file has no hashes of its own; and of a
		// record, if that is something else.
		want, record string
	}{
		"an event behind the end": {func(l logText) logText {
			_, to := l.events()
			ev := changedEvent(t, []byte(l[to-1]), func(ev *session.Event) {
				ev.Mark = nil
				ev.Seq++
				approves(ev)
			})
			return slices.Insert(slices.Clone(l), to, string(ev)+"\n")
		}, "after its end neither", ""},
		"the last event is deleted": {func(l logText) logText {
			_, to := l.events()
			return slices.Delete(slices.Clone(l), to-1, to)
		}, "its first line says that the run is completed, but its end is missing", "unsealed run"},
		"the seal is renamed":       {last(renamed("seal", "sael")), "its end has no seal: it was taken out", ""},
		"the end changes the state": {last(approves), "an event of it, or what it was started with", ""},
		"a made-up key in the first line": {func(l logText) logText {
			l = slices.Clone(l)
			l[0] = strings.Replace(l[0], `"schema":1,`, `"schema":1,"state":{"approved":true},`, 1)
			return l
		}, `key "approved" is in the first line, and the run had nothing to begin with`, "none"},
	} {
		for kind, whole := range files {
			t.Run(name+" of "+kind, func(t *testing.T) {
				if kind == "record" && tt.record == "none" {
					t.Skip("a record has no such line")
				}
				file, into := filepath.Join(t.TempDir(), kind+".jsonl"), "sqlite:"+filepath.Join(t.TempDir(), "into.db")
				save := func(l logText) {
					if err := os.WriteFile(file, []byte(strings.Join(l, "")), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				save(whole)
				cli(t, 0, "verify", file)
				cli(t, 0, "import", file, "--as", "r_0", "--store", into)
				changed := tt.change(whole)
				if kind == "stripped" {
					changed = changed.counted(t)
				}
				save(changed)
				code, want := 1, tt.want
				switch {
				case kind == "record" && tt.record != "":
					code, want = 0, tt.record
				case kind == "sealed" || kind == "audit":
					want = "CHANGED"
				}
				if out, errs := cli(t, code, "verify", file); !strings.Contains(out, want) {
					t.Errorf("verify says\n%s%s\nwant %q", out, errs, want)
				}
				_, errs := cli(t, code, "import", file, "--as", "r_2", "--store", into)
				if code == 1 && (!strings.Contains(errs, "nothing was imported") || !strings.Contains(errs, "the log was changed")) || code == 0 &&
					!strings.Contains(errs, "unsealed") {
					t.Errorf("import says %s", errs)
				}
			})
		}
	}
}

// Nothing that refrain itself does to a run looks as if somebody had changed it: values of
// every kind, an iteration that is undone, a second message, a fork, a run that was moved.
func TestUntamperedRunsRaiseNoAlarm(t *testing.T) {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "values.yaml"), "sqlite:"+filepath.Join(dir, "runs.db")
	write(t, file, `name: values
max_iterations: 3
score: {key: mark}
on_regression: rollback
sub_agents:
  - name: set
    set:
      large: 9007199254740993
      small: 0.1
      whole: 2.0
      list: "[1, 'two', 3.5, null, {'k': true}]"
      none: "null"
      "user:seen": iteration
      "app:seen": iteration
      "iteration:now": iteration
      "temp:now": iteration
  - {name: say, text: "<b>{{iteration}}</b> \u2028 é", output_key: draft}
  - {name: judge, set: {mark: "iteration == 2 ? 1 : iteration"}}
`)
	sound := func(id string) {
		t.Helper()
		if out, _ := cli(t, 0, "verify", id, "--store", store); strings.Contains(out, "CHANGED") {
			t.Errorf("verify %s says\n%s", id, out)
		}
	}
	for range 2 {
		cli(t, 0, "run", file, "--session", "r_1", "--store", store, "--exit-zero-on-limit", "--progress", "quiet")
		sound("r_1")
	}
	out, _ := cli(t, 0, "fork", "r_1", "--at-iteration", "2", "--store", store)
	fork := strings.TrimSpace(out)
	sound(fork)
	cli(t, 0, "resume", fork, "--store", store, "--exit-zero-on-limit", "--progress", "quiet")
	sound(fork)
	for _, id := range []string{"r_1", fork} {
		name := filepath.Join(dir, id+".jsonl")
		cli(t, 0, "export", id, "--store", store, "-o", name)
		cli(t, 0, "verify", name)
		cli(t, 0, "import", name, "--as", id+"_copy", "--store", store)
		sound(id + "_copy")
	}
	cli(t, 0, "resume", "r_1", "--add-iterations", "2", "--store", store, "--exit-zero-on-limit", "--progress", "quiet")
	sound("r_1")
}
