// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// wavering gains less in each iteration than its judge wavers.
const wavering = `name: wavering
max_iterations: 8
state: {n: 0}
score: {key: mark, min_delta: 0.1, patience: 2, judge: {step: judge, samples: 2}}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
`

func waveringMarks() string {
	var text strings.Builder
	text.WriteString("answers:\n")
	for n := range 8 {
		mark := 0.3 * float64(n+1)
		text.WriteString(fmt.Sprintf("  - {agent: judge, text: \"%.1f\"}\n  - {agent: judge, text: \"%.1f\"}\n", mark+0.5, mark))
	}
	return text.String()
}

// copyOfBefore writes the log of a run into another session, as if it had been made by the first version of the rules.
func (s *site) copyOfBefore(id, as string) {
	s.Helper()
	made, err := s.store.Create(s.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: as})
	if err != nil {
		s.Fatal(err)
	}
	for _, ev := range s.log(id) {
		old := *ev
		old.Seq = 0
		if m := old.Mark; m != nil && m.Kind == mark.KindLoopStarted {
			var plan map[string]any
			if err := m.Decode(&plan); err != nil || plan["rules"] == nil {
				s.Fatal(plan, err)
			}
			delete(plan, "rules")
			text, err := json.Marshal(plan)
			if err != nil {
				s.Fatal(err)
			}
			old.Mark = &mark.Mark{Kind: m.Kind, Data: text}
		}
		if err := s.store.AppendEvent(s.Context(), made.Session, &old); err != nil {
			s.Fatal(err)
		}
	}
}

// LOOP 14: a run that was made by earlier rules is back-tested by those and by today's, as the request says: with
// another value, for all values, and on the page.
func TestBacktestByBothRules(t *testing.T) {
	s := open(t, map[string]string{"wavering.yaml": wavering, "script.yaml": waveringMarks()})
	id := s.run(map[string]any{"definition": "wavering"}).Run
	s.wait(id)
	s.copyOfBefore(id, "before")
	ids := []string{"before"}
	var got struct {
		Older  int
		Trials []struct {
			Stops, Was int
			Reason     string
		}
		Sweep struct {
			Now    float64
			Levels []struct {
				Value float64
				Same  int
			}
		}
	}
	s.ok("POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "set": map[string]any{"max_iterations": 8}}, &got)
	if tr := got.Trials[0]; got.Older != 1 || tr.Stops >= 8 || tr.Reason != "converged" || tr.Was != 8 {
		t.Errorf("by its own rules: %+v", got)
	}
	s.ok("POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "rules": "today"}, &got)
	if tr := got.Trials[0]; got.Older != 1 || tr.Stops != 8 || tr.Reason != "max_iterations" {
		t.Errorf("by today's rules: %+v", got)
	}
	for rules, same := range map[string]int{"recorded": 0, "today": 1} {
		s.ok("POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "sweep": "score.min_delta", "rules": rules}, &got)
		for _, l := range got.Sweep.Levels {
			if l.Value == got.Sweep.Now && l.Same != same {
				t.Errorf("%s: %d runs as they were with the value that was", rules, l.Same)
			}
		}
	}
	s.refused(400, "bad_request", "POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "rules": "old"})
	s.refused(400, "bad_request", "POST", "/api/v1/runs:backtest", map[string]any{"runs": ids, "rules": "recorded"})
	s.refused(400, "bad_request", "GET", "/api/v1/runs:backtest?definition=wavering&rules=old", nil)
}
