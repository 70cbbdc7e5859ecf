// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
)

// reads notes which states are read.
type reads struct {
	session.Service
	states []string
}

func (r *reads) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	r.states = append(r.states, req.SessionID)
	return r.Service.Get(ctx, req)
}

func (r *reads) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	if !req.Brief {
		r.states = append(r.states, "all")
	}
	return r.Service.List(ctx, req)
}

// T20: the list of a user's sessions has their states, and reads no others.
func TestListReadsTheStatesThatItShows(t *testing.T) {
	svc := &reads{Service: session.InMemoryService()}
	for _, id := range []string{"app/ana/s1", "app/ana/s2", "app/eva/s1", "other/ana/s1", "r1"} {
		if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "refrain", UserID: "user", SessionID: id,
			State: map[string]any{"k": id}}); err != nil {
			t.Fatal(err)
		}
	}
	a := &API{Exchange: new(wire.Exchange), Runs: &operations.Runs{Config: operations.Config{Service: svc, AppName: "refrain",
		UserID: "user"}}}
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.SetPathValue("app", "app")
	r.SetPathValue("user", "ana")
	if err := a.sessions(w, r); err != nil {
		t.Fatal(err)
	}
	var all []struct {
		ID     string
		State  map[string]any
		Events []any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	var got []string
	for _, one := range all {
		got = append(got, fmt.Sprint(one.ID, one.State, one.Events != nil))
	}
	slices.Sort(got)
	if want := []string{"s1map[k:app/ana/s1] true", "s2map[k:app/ana/s2] true"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	slices.Sort(svc.states)
	if want := []string{"app/ana/s1", "app/ana/s2"}; !slices.Equal(svc.states, want) {
		t.Errorf("read the states of %q", svc.states)
	}
}
