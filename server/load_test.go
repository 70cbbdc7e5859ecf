// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// M9, M16: whoever opens a run's page has its log read once, in outline, however many look; what they
// ask for then is read alone, however long the log is.
func TestAPageReadsTheLogOnce(t *testing.T) {
	const pages = 64 // events that a store reads at a time
	for _, iterations := range []int{40, 400} {
		svc := sessiontest.Count(session.InMemoryService())
		s := open(t, map[string]string{"counting.yaml": strings.Replace(counting, "40", fmt.Sprint(iterations), 1)},
			func(c *server.Config) { c.Service = svc })
		id := s.run(map[string]any{"definition": "counting"}).Run
		s.wait(id)
		svc.Reset()
		path := "/api/v1/runs/" + id
		var head struct{ Seq int }
		for range 3 {
			s.ok("GET", path+"/view", nil, &head)
			s.ok("GET", path+"?lang=pt", nil, nil)
		}
		var part struct{ Iterations []struct{ Number int } }
		s.ok("GET", fmt.Sprintf("%s/view/iterations?loop=counting&from=%d&limit=20", path, iterations-19), nil, &part)
		if len(part.Iterations) != 20 {
			t.Errorf("%d iterations", len(part.Iterations))
		}
		if svc.Gets() != 1 || svc.Outlined() != head.Seq || svc.Loaded() > pages {
			t.Errorf("%d events: the page fetched %d sessions and read %d events, and %d whole, want each event once",
				head.Seq, svc.Gets(), svc.Outlined(), svc.Loaded())
		}
		svc.Reset()
		var step struct {
			Output  string
			Changes []struct{ Key, Before, After string }
		}
		s.ok("GET", fmt.Sprintf("%s/view/step?address=counting[%d]/say", path, iterations), nil, &step)
		want := fmt.Sprintf("It is %d.", iterations)
		if step.Output != want || len(step.Changes) != 1 || step.Changes[0].After != want {
			t.Errorf("the step is %+v", step)
		}
		if svc.Outlined() > 0 || svc.Loaded() > 5*pages {
			t.Errorf("%d events: a step read %d events, and %d whole", head.Seq, svc.Outlined(), svc.Loaded())
		}
	}
}

// climb is a loop with a score that rises, and ends at its limit.
const climb = `name: climb
max_iterations: 6
state: {n: 0}
score: {key: height, target: 50.0}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: measure, set: {height: "double(state.n)"}}
`

// drawn is a row with its scores.
type drawn struct {
	listed
	Scores []struct {
		Score float64
		Best  bool
	}
	Target float64
}

// M16: who watches the list of runs is told of each change in the runs that were asked for.
func TestTheListIsLive(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(2), "climb.yaml": climb}, private)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	type page struct{ Runs []drawn }
	heard := make(chan page, 1000)
	s.wait(s.run(map[string]any{"definition": "climb"}).Run)
	var watch sync.WaitGroup
	stop, end := context.WithCancel(ctx)
	defer end()
	for range 20 {
		watch.Go(func() {
			s.listen(stop, "/api/v1/runs?status=running&status=completed&scores=1", 0, func(m message) bool {
				var p page
				if err := json.Unmarshal([]byte(m.data), &p); err != nil || m.event != "runs" {
					t.Error(m, err)
				}
				heard <- p
				return true
			})
		})
	}
	// until waits until every client has heard that a run has a status.
	until := func(id, status string) (last drawn) {
		t.Helper()
		for n := 0; n < 20; {
			select {
			case p := <-heard:
				for _, r := range p.Runs {
					if r.Run == id && r.Status == status {
						last = r
						n++
					}
				}
			case <-ctx.Done():
				t.Fatalf("the run is not %s", status)
			}
		}
		return last
	}
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	until(id, "running")
	g.let <- struct{}{}
	g.let <- struct{}{}
	until(id, "completed")
	other := s.run(map[string]any{"definition": "climb"}).Run
	got := until(other, "completed")
	if len(got.Scores) != 6 || got.Scores[5].Score != 6 || !got.Scores[5].Best || got.Scores[0].Best || got.Target != 50 {
		t.Errorf("the row is %+v", got)
	}
	end()
	watch.Wait()
	var p page
	s.ok("GET", "/api/v1/runs?scores=1&limit=1", nil, &p)
	if len(p.Runs) != 1 || len(p.Runs[0].Scores) != 6 {
		t.Errorf("the list has %+v", p)
	}
	s.refused(400, "bad_request", "GET", "/api/v1/runs?limit=none", nil, "Accept", "text/event-stream")
}
