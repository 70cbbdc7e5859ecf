// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// readStore counts the logs that are read from it.
type readStore struct {
	*sqlite.Service
	reads atomic.Int64
}

func (r *readStore) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	r.reads.Add(1)
	return r.Service.Get(ctx, req)
}

// put stores a run that has ended or waits.
func (s *site) put(svc session.Service, id, name string, status mark.RunStatus, at time.Time) {
	s.Helper()
	made, err := svc.Create(s.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: id})
	if err != nil {
		s.Fatal(err)
	}
	ev, err := session.NewRunEvent(mark.Run{ID: "e-" + id, Name: name, Status: status, Started: at}, "user", mark.KindRunPaused, mark.RunPaused{})
	if err != nil {
		s.Fatal(err)
	}
	ev.Timestamp = at
	if err := svc.AppendEvent(s.Context(), made.Session, ev); err != nil {
		s.Fatal(err)
	}
}

// A page of tasks reads the logs of its own runs, however many runs there are, and runs that begin meanwhile
// move no task to another page.
func TestA2AListTasksReadsAPage(t *testing.T) {
	const size, each = 10, 200
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	svc := &readStore{Service: db}
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) { c.Service = svc })
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range each {
		at := from.Add(time.Duration(i/3) * time.Second) // three at a time
		s.put(svc, fmt.Sprintf("mine-%03d", i), "counting", mark.RunCompleted, at)
		s.put(svc, fmt.Sprintf("other-%03d", i), "other", mark.RunCompleted, at)
	}
	s.put(svc, "waits", "counting", mark.RunWaiting, from)
	total := each + 1
	for i, by := range speeches[:2] {
		p := s.peer("counting", by)
		list := func(req a2a.ListTasksRequest, most int) *a2a.ListTasksResponse {
			t.Helper()
			svc.reads.Store(0)
			got, err := p.ListTasks(t.Context(), &req)
			if err != nil {
				t.Fatalf("%s: %+v: %v", by, req, err)
			}
			if reads := int(svc.reads.Load()); reads > most {
				t.Errorf("%s: %+v: %d tasks of %d read %d logs, want at most %d", by, req, len(got.Tasks), got.TotalSize, reads, most)
			}
			return got
		}
		seen, token, old := map[a2a.TaskID]int{}, "", total
		for page := 0; page == 0 || token != ""; page++ {
			got := list(a2a.ListTasksRequest{PageSize: size, PageToken: token}, size)
			if got.TotalSize != total {
				t.Errorf("%s: there are %d tasks, want %d", by, got.TotalSize, total)
			}
			for _, task := range got.Tasks {
				seen[task.ID]++
			}
			if token = got.NextPageToken; page%7 == 3 {
				s.put(svc, fmt.Sprintf("new-%d-%d", i, page), "counting", mark.RunCompleted, time.Now())
				total++
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s: task %s is on %d pages", by, id, n)
			}
		}
		if len(seen) != old {
			t.Errorf("%s: the pages have %d tasks, want the %d that were there before the first page", by, len(seen), old)
		}
		for _, x := range []struct {
			req         a2a.ListTasksRequest
			total, most int
		}{
			{a2a.ListTasksRequest{Status: a2a.TaskStateCompleted, PageSize: size}, total - 1, size},
			{a2a.ListTasksRequest{Status: a2a.TaskStateInputRequired, PageSize: size}, 1, 1},
			{a2a.ListTasksRequest{Status: a2a.TaskStateRejected}, 0, 0},
			{a2a.ListTasksRequest{ContextID: "mine-007"}, 1, 1},
			{a2a.ListTasksRequest{ContextID: "none at all"}, 0, 0},
			{a2a.ListTasksRequest{StatusTimestampAfter: new(from.Add(each / 3 * time.Second))}, total - each - 1, total},
		} {
			if x.req.StatusTimestampAfter != nil && by.binding == a2a.TransportProtocolHTTPJSON {
				continue // the SDK's client and its server name the parameter differently
			}
			if got := list(x.req, x.most); got.TotalSize != x.total || len(got.Tasks) != min(x.total, got.PageSize) {
				t.Errorf("%s: %+v has %d of %d tasks, want of %d", by, x.req, len(got.Tasks), got.TotalSize, x.total)
			}
		}
	}
}
