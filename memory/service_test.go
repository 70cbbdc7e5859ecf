// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
)

// said is a session of the user in which agents said these texts.
func said(t *testing.T, user, id string, texts ...string) session.Session {
	t.Helper()
	svc := session.InMemoryService()
	res, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: user, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		ev := session.NewEvent(t.Context(), "run")
		ev.ID, ev.Author, ev.Timestamp = fmt.Sprint(id, "-", i+1), "writer", time.Unix(int64(i), 0)
		if text != "" {
			ev.Content = genai.NewContentFromText(text, genai.RoleModel)
		}
		if err := svc.AppendEvent(t.Context(), res.Session, ev); err != nil {
			t.Fatal(err)
		}
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: user, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return got.Session
}

func add(t *testing.T, m memory.Service, s session.Session) {
	t.Helper()
	if err := m.AddSessionToMemory(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// search returns the IDs of what was found.
func search(t *testing.T, m memory.Service, user, query string) []string {
	t.Helper()
	res, err := m.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", UserID: user, Query: query})
	if err != nil {
		t.Error(err)
		return nil
	}
	ids := []string{}
	for _, e := range res.Memories {
		ids = append(ids, e.ID)
	}
	return ids
}

// E6
func TestSearchFindsWords(t *testing.T) {
	m := memory.InMemoryService()
	add(t, m, said(t, "ana", "a", "The door is Green.", "", "A green, GREEN roof", "nothing"))
	add(t, m, said(t, "ana", "b", "roof tiles"))
	add(t, m, said(t, "bob", "c", "green"))
	for query, want := range map[string][]string{
		"green":           {"a-3", "a-1"},
		"GREEN roof?":     {"a-3", "a-1", "b-1"},
		"gree":            {},
		"":                {},
		"nothing at all!": {"a-4"},
	} {
		if diff := cmp.Diff(want, search(t, m, "ana", query)); diff != "" {
			t.Errorf("%q: %s", query, diff)
		}
	}
	none, err := m.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", UserID: "ana", Query: "absent"})
	if err != nil || none.Memories != nil { // as in ADK
		t.Errorf("a search that finds nothing: got %#v, error %v", none, err)
	}
	if got := search(t, m, "eve", "green"); len(got) != 0 {
		t.Errorf("somebody else finds %q", got)
	}
}

// E6
func TestSessionAddedAgainReplaces(t *testing.T) {
	m := memory.InMemoryService()
	add(t, m, said(t, "ana", "a", "old"))
	add(t, m, said(t, "ana", "a", "new", "new too"))
	if diff := cmp.Diff([]string{"a-2", "a-1"}, search(t, m, "ana", "old new")); diff != "" {
		t.Error(diff)
	}
}

// E6
func TestEntrySaysWhoAndWhen(t *testing.T) {
	m := memory.InMemoryService()
	add(t, m, said(t, "ana", "a", "hello"))
	res, err := m.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", UserID: "ana", Query: "hello"})
	if err != nil || len(res.Memories) != 1 {
		t.Fatal(res, err)
	}
	want := memory.Entry{ID: "a-1", Content: genai.NewContentFromText("hello", genai.RoleModel), Author: "writer", Timestamp: time.Unix(0, 0)}
	if diff := cmp.Diff(want, res.Memories[0]); diff != "" {
		t.Error(diff)
	}
}

// E6
func TestBadRequests(t *testing.T) {
	m := memory.InMemoryService()
	_, err := m.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", Query: "x"})
	for _, err := range []error{err, m.AddSessionToMemory(t.Context(), nil)} {
		if !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
	}
}

// E6
func TestConcurrentUse(t *testing.T) {
	m := memory.InMemoryService()
	s := said(t, "ana", "a", "hello")
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := m.AddSessionToMemory(t.Context(), s); err != nil {
				t.Error(err)
			}
			if got := search(t, m, "ana", "hello"); len(got) != 1 {
				t.Errorf("found %q", got)
			}
		})
	}
	wg.Wait()
}

// As in ADK, an entry has what its event's author noted.
func TestEntriesHaveTheEventsMetadata(t *testing.T) {
	svc, m := session.InMemoryService(), memory.InMemoryService()
	res, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	ev := session.NewEvent(t.Context(), "run")
	ev.Content, ev.CustomMetadata = genai.NewContentFromText("green", genai.RoleModel), map[string]any{"page": 3}
	if err := svc.AppendEvent(t.Context(), res.Session, ev); err != nil {
		t.Fatal(err)
	}
	add(t, m, res.Session)
	found, err := m.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", UserID: "ana", Query: "green"})
	if err != nil || len(found.Memories) != 1 {
		t.Fatal(found, err)
	}
	if diff := cmp.Diff(map[string]any{"page": 3}, found.Memories[0].CustomMetadata); diff != "" {
		t.Error(diff)
	}
}
