// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// runs: runs are listed page by page, those first that have changed last, and some of them by what they are.
func (s *suite) runs() {
	stands := func(user, id, name string, status mark.RunStatus, at int) {
		s.Helper()
		ev, err := session.NewRunEvent(mark.Run{ID: "e-1", Name: name, Status: status, Error: `,"name":"poem","status":"failed"`},
			"user", mark.KindRunPaused, mark.RunPaused{})
		s.must(err)
		ev.Timestamp = noon.Add(time.Duration(at) * time.Second)
		s.append(s.makeFor(app, user, id, map[string]any{"name": "poem"}), ev)
	}
	const odd = `a "poem" \ <ä> ☃` + "\u2028"
	s.make("no run", map[string]any{"k": `"name":"poem"`})
	stands(ana, "a1", "poem", mark.RunCompleted, 5)
	stands(ana, "a2", "poem", mark.RunFailed, 7)
	stands(ana, "b1", "poem", mark.RunRunning, 6)
	stands(ana, "b2", odd, mark.RunCompleted, 9)
	stands(ana, "c1", "poems", mark.RunCompleted, 6)
	stands(ana, "ä1", "", mark.RunWaiting, 1)
	stands(bob, "a1", "poem", mark.RunCompleted, 8)
	for _, tt := range []struct {
		req  store.RunsRequest
		want []string
	}{
		{store.RunsRequest{}, []string{"b2", "a2", "b1", "c1", "a1", "ä1"}},
		{store.RunsRequest{Name: "poem"}, []string{"a2", "b1", "a1"}},
		{store.RunsRequest{Name: odd}, []string{"b2"}},
		{store.RunsRequest{Name: "verse"}, nil},
		{store.RunsRequest{Status: mark.RunCompleted}, []string{"b2", "c1", "a1"}},
		{store.RunsRequest{Name: "poem", Status: mark.RunFailed}, []string{"a2"}},
		{store.RunsRequest{Prefix: "b"}, []string{"b2", "b1"}},
		{store.RunsRequest{Prefix: "ä"}, []string{"ä1"}},
		{store.RunsRequest{SessionID: "c1"}, []string{"c1"}},
		{store.RunsRequest{SessionID: "c1", Prefix: "a"}, []string{"a2", "c1", "a1"}},
		{store.RunsRequest{Since: noon.Add(6 * time.Second)}, []string{"b2", "a2"}},
		{store.RunsRequest{Name: "poem", Since: noon.Add(5*time.Second + time.Nanosecond)}, []string{"a2", "b1"}},
	} {
		tt.req.AppName, tt.req.UserID = app, ana
		for _, svc := range []session.Service{s.svc, listed{s.svc}} {
			for _, limit := range []int{0, 1, 2, 50} {
				req := tt.req
				req.Limit = limit
				if diff := cmp.Diff(tt.want, s.pages(svc, req, len(tt.want))); diff != "" {
					s.Errorf("%T lists the runs of %+v (-want +got):\n%s", svc, req, diff)
				}
			}
		}
	}
	first := s.page(s.svc, store.RunsRequest{AppName: app, UserID: ana, Limit: 2})
	stands(ana, "new", "poem", mark.RunRunning, 20)
	rest := s.pages(s.svc, store.RunsRequest{AppName: app, UserID: ana, Limit: 2, After: store.PlaceOf(first.Sessions[1])}, 7)
	if want := []string{"b1", "c1", "a1", "ä1"}; !slices.Equal(rest, want) {
		s.Errorf("a run that begins moves none: behind the first page are %q, want %q", rest, want)
	}
	if lister, ok := s.svc.(store.RunLister); ok {
		for _, req := range []*store.RunsRequest{nil, {AppName: app}, {UserID: ana}, {AppName: app, UserID: ana, Prefix: "\xff"}} {
			_, err := lister.ListRuns(s.Context(), req)
			s.wantErr(err, session.ErrInvalid, fmt.Sprintf("ListRuns(%+v)", req))
		}
	}
}

func (s *suite) page(svc session.Service, req store.RunsRequest) *store.RunsResponse {
	s.Helper()
	resp, err := store.ListRuns(s.Context(), svc, &req)
	if err != nil {
		s.Fatalf("ListRuns(%+v): %v", req, err)
	}
	return resp
}

// pages returns the IDs of the runs on all pages. Each page has to say the total.
func (s *suite) pages(svc session.Service, req store.RunsRequest, total int) (ids []string) {
	s.Helper()
	for {
		resp := s.page(svc, req)
		if n := len(resp.Sessions); resp.Total != total || req.Limit > 0 && n > req.Limit {
			s.Errorf("a page of %+v has %d runs, and %d in total, want %d in total", req, n, resp.Total, total)
		}
		for _, one := range resp.Sessions {
			ids = append(ids, one.ID())
			if session.RunOf(one) == nil || one.Events().Len() != 0 || session.LastSeen(one) != 1 {
				s.Errorf("session %s is listed as %+v with %d events, want its run, no events, and that there is one", one.ID(),
					session.RunOf(one), one.Events().Len())
			}
			req.After = store.PlaceOf(one)
		}
		if req.Limit == 0 || len(resp.Sessions) < req.Limit {
			return ids
		}
	}
}
