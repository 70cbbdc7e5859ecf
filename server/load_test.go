// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"strings"
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
