// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// keyOf is the session of a run.
func keyOf(id string) lease.Key {
	return lease.Key{AppName: "refrain", UserID: "user", SessionID: id}
}

// writing is a run of one event, which writes keys of all scopes.
func writing(initial, delta map[string]any) *Run {
	ev := &session.Event{InvocationID: "i", Author: "user", Seq: 1}
	ev.Actions.StateDelta = delta
	return &Run{ID: "r_1", Initial: initial, FileEvents: []*session.Event{ev}}
}

// An old log does not write over what other sessions share.
func TestImportLeavesSharedKeysAlone(t *testing.T) {
	store := session.InMemoryService()
	made, err := store.Create(t.Context(), &session.CreateRequest{
		AppName: "refrain", UserID: "user", SessionID: "other", State: map[string]any{"user:lang": "de", "app:limit": 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := writing(map[string]any{"kept": 1, "app:limit": 9}, map[string]any{"own": 2, "user:lang": "en", "user:new": true})
	if err := run.Save(t.Context(), store, keyOf(run.ID)); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]map[string]any{
		"other": {"user:lang": "de", "app:limit": 3.0},
		"r_1":   {"user:lang": "de", "app:limit": 3.0, "own": 2.0, "kept": 1.0},
	} {
		got, err := store.Get(t.Context(), &session.GetRequest{AppName: "refrain", UserID: "user", SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, maps.Collect(got.Session.State().All())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	all, err := store.List(t.Context(), &session.ListRequest{AppName: "refrain"})
	if err != nil || len(all.Sessions) != 2 {
		t.Errorf("%d sessions, want %q and r_1; %v", len(all.Sessions), made.Session.ID(), err)
	}
}

// A store that fails in the middle is left without the run.
func TestImportIsAllOrNothing(t *testing.T) {
	log, err := ReadFile("../../../command/testdata/v1/completed.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	failed, whole := 0, 0
	for seed := range uint64(40) {
		inner := session.InMemoryService()
		// The last calls of a failed import may fail, too: then it cannot be helped.
		store := &reliableDelete{Service: sessiontest.Faulty(inner, sessiontest.Faults{Seed: seed, Before: 0.01, After: 0.01}), inner: inner}
		run := &Run{ID: "r_1", File: log}
		err := run.Save(t.Context(), store, keyOf(run.ID))
		got, getErr := inner.Get(t.Context(), &session.GetRequest{AppName: "refrain", UserID: "user", SessionID: "r_1"})
		switch {
		case err == nil && getErr == nil && got.Session.Events().Len() == log.Len():
			whole++
		case err != nil && (getErr != nil || got.Session.Events().Len() == 0):
			failed++
		default:
			t.Errorf("seed %d: import says %v, and the run %v", seed, err, getErr)
		}
	}
	if failed == 0 || whole == 0 {
		t.Errorf("%d failed, %d did not", failed, whole)
	}
}

// reliableDelete is a faulty store that deletes when it is told to.
type reliableDelete struct {
	session.Service
	inner session.Service
}

func (r *reliableDelete) Delete(ctx context.Context, req *session.DeleteRequest) error {
	return r.inner.Delete(ctx, req)
}

// G9: whatever is changed in a file for the audit is noticed, and the first event
// that does not fit is named.
func TestAuditNoticesEveryChange(t *testing.T) {
	data, err := os.ReadFile("../../../command/testdata/v1/audited.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	name := filepath.Join(t.TempDir(), "changed.jsonl")
	check := func(what string, lines []string, first int) {
		t.Helper()
		if err := os.WriteFile(name, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := ReadFile(name, nil)
		if err != nil {
			return // refused
		}
		_, found, err := log.Run().Chained()
		if err != nil || found == nil || first > 0 && found.Line != first {
			t.Errorf("%s: %v, %v, want line %d", what, found, err, first)
		}
	}
	for i := range lines {
		if i > 0 && i < len(lines)-2 && i%longtest.N(3, 1) != 0 {
			continue
		}
		gone := slices.Delete(slices.Clone(lines), i, i+1)
		if i > 0 {
			first := i + 1
			if i >= len(lines)-2 {
				first = 0 // the end says so
			}
			check("a line is gone", gone, first)
		}
		if i == 0 || i == len(lines)-1 {
			continue
		}
		changed := slices.Clone(lines)
		changed[i] = strings.Replace(changed[i], `"author":"`, `"author":"x`, 1)
		check("a line is changed", changed, i+1)
		twice := slices.Insert(slices.Clone(lines), i, lines[i])
		check("a line is there twice", twice, i+2)
		if i > 1 {
			swapped := slices.Clone(lines)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			check("two lines are swapped", swapped, i)
		}
	}
	check("the end is another", append(slices.Clone(lines[:len(lines)-1]), strings.Replace(lines[len(lines)-1], "sha256:", "sha256:0", 1)), 0)
	other := slices.Clone(lines)
	other[0] = strings.Replace(other[0], `"id":"r_a0000001"`, `"id":"r_other"`, 1)
	check("the head is another", other, 2)
}
