// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
)

// The server's own limit of the state applies over that of a client's definition, and is checked when a
// value is set: of 80 steps of one iteration, those beyond the limit fail.
func TestStateLimitOfTheServer(t *testing.T) {
	s := open(t, nil, func(c *server.Config) { c.StateLimit, c.MaxBody = 1<<20, 16<<20 })
	var lines strings.Builder
	lines.WriteString("name: fills\nmax_iterations: 1\nstate_limit: none\nsub_agents:\n")
	for i := range 80 {
		fmt.Fprintf(&lines, "  - {name: s%d, text: %q, output_key: k%d}\n", i, strings.Repeat("{{user_input}}", 10), i)
	}
	text := lines.String()
	for _, root := range []string{text, strings.Replace(text, "max_iterations: 1\nstate_limit: none\n", "type: sequential\n", 1)} {
		id := s.run(map[string]any{"text": root, "input": strings.Repeat("x", 10_000)}).Run
		if got := s.wait(id); got != "failed" {
			t.Fatalf("the run is %s", got)
		}
		var row struct{ Runs []listed }
		s.ok("GET", "/api/v1/runs?q="+id, nil, &row)
		if got := row.Runs[0].Error; !strings.Contains(got, "s10") ||
			!strings.Contains(got, `in key "k10", and the limit of all runs here (--state-limit) is 1048576`) {
			t.Errorf("the run failed with %q", got)
		}
		one, err := s.store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		state := maps.Collect(one.Session.State().All())
		if n := session.StateSize(state); n > 1<<20 {
			t.Errorf("the state has %d bytes", n)
		}
	}
}
