// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"strconv"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// Scene is what the stand-ins do in one run. It depends on the scene and on the place in the run
// alone, so that a resumed run does the same as the run that was cut off. Each function may be nil.
type Scene struct {
	Target *definition.Agent // the loop that the scene tests; nil for all
	Way    study.Way         // how the target ends
	Never  bool              // the target does not end by itself

	Score    func(at study.Place) float64                             // of an iteration of the target
	Words    func(a *definition.Agent, at study.Place) (string, bool) // the words of any agent
	Usage    func(at study.Place) *scripted.Usage
	Fail     func(a *definition.Agent, at study.Place) *scripted.Failure
	Said     func(a *definition.Agent, at study.Place, out study.Line) study.Line // replaces what any agent leaves
	Hearing  *Hearing                                                             // keeps what finalizers are told
	Circles  *loop.NoProgress                                                     // replaces no_progress of the target
	Escalate string                                                               // the agent that escalates when it ends

	Iterations int   // cut the run off after these iterations of the target, or of any loop if there is no target
	StateSize  int64 // cut the run off when the state of the target has more bytes
	LogSize    int64 // in bytes, about: a run whose events have more is cut off; 0 means no limit

	mu      sync.Mutex
	courses map[string]*study.Course // by loop
}

// course is the course of a loop's iterations. It is the same in every run of the scene.
func (s *Scene) course(l *definition.Agent) *study.Course {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.courses == nil {
		s.courses = make(map[string]*study.Course)
	}
	if s.courses[l.Name] == nil {
		s.courses[l.Name] = &study.Course{}
	}
	return s.courses[l.Name]
}

func placeOf(ctx agent.InvocationContext) study.Place {
	at := study.Place{Addr: drive.At(ctx).Address(), Loops: make(map[string]int), Sample: 1}
	var numbers []string
	for l := drive.At(ctx).Loop(); l != nil; l = l.Outer {
		if at.Within == "" {
			at.Within = l.Name
		}
		at.Loops[l.Name] = l.Iteration
		numbers = append([]string{strconv.Itoa(l.Iteration)}, numbers...)
	}
	at.Number = strings.Join(numbers, ".")
	for part := range strings.SplitSeq(string(at.Addr), "/") {
		if _, n, ok := strings.Cut(part, "#"); ok {
			if k, err := strconv.Atoi(n); err == nil {
				at.Sample = k
			}
		}
	}
	return at
}

// wayOf returns how a loop ends in the scene, and in which iteration; 0 if it does not end by
// itself.
func (s *Scene) wayOf(c *study.Cast, l *definition.Agent) (study.Way, int) {
	if s.Target == l && s.Never {
		return study.Way{}, 0
	}
	n := study.FinishAt
	if limit := int(l.Loop.MaxIterations); limit > 0 {
		n = min(n, limit)
	}
	if s.Target == l && s.Way.Reason != "" {
		return s.Way, n
	}
	if ways := c.Goals[l.Name].Ways; len(ways) > 0 {
		return ways[0], n
	}
	return study.Way{}, 0
}
