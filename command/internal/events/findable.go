// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Findable returns an error if the log cannot contain events of the agent or the iteration. With coming, an iteration that has
// not begun yet is allowed.
func Findable(run *runstore.Run, shown iter.Seq[*session.Event], agent string, iteration int, coming bool) error {
	if agent != "" {
		names := agentsIn(run.All())
		if !slices.Contains(names, agent) {
			return fmt.Errorf("run %s has no agent %q (%s)", run.ID, agent, term.Meant(agent, names))
		}
	}
	if iteration == 0 || coming {
		return nil
	}
	last := 0
	for ev := range shown {
		last = max(last, OutermostIteration(ev))
	}
	switch {
	case iteration <= last:
		return nil
	case last == 0:
		return fmt.Errorf("run %s has no iteration %d: no loop has begun in it", run.ID, iteration)
	}
	return fmt.Errorf("run %s has no iteration %d: it has 1 to %d", run.ID, iteration, last)
}

// agentsIn returns the names of the agents in a log and in its definition.
func agentsIn(events iter.Seq[*session.Event]) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var authors []string
	for ev := range events {
		if !slices.Contains(authors, ev.Author) {
			authors = append(authors, ev.Author)
		}
		add(ev.Address.Agent())
		if ev.Mark == nil || ev.Mark.Kind != mark.KindRunStarted {
			continue
		}
		var started mark.RunStarted
		if ev.Mark.Decode(&started) != nil {
			continue
		}
		if p, err := program.Decode(started); err == nil {
			if def, err := p.Definition(); err == nil {
				for a := range def.Root.All {
					add(a.Name)
				}
			}
		}
	}
	for _, author := range authors {
		add(author)
	}
	return names
}

// OutermostIteration returns the number of the event's iteration of its outermost loop; 0 if the event is outside of loops.
func OutermostIteration(ev *session.Event) int {
	if _, rest, in := strings.Cut(string(ev.Address), "["); in {
		number, _, _ := strings.Cut(rest, "]")
		n, _ := strconv.Atoi(number)
		return n
	}
	if ev.Mark == nil {
		return 0
	}
	switch ev.Mark.Kind {
	case mark.KindIterationFinished:
		var it loop.IterationRecord
		if ev.Mark.Decode(&it) == nil {
			return it.Number
		}
	case mark.KindHinted:
		var m mark.Hinted
		if ev.Mark.Decode(&m) == nil {
			return m.Iteration
		}
	case mark.KindLegStarted:
		var leg mark.LegStarted
		if ev.Mark.Decode(&leg) == nil {
			return leg.Iteration
		}
	case mark.KindRolledBack:
		var back mark.RolledBack
		if ev.Mark.Decode(&back) == nil {
			return back.Iteration
		}
	}
	return 0
}
