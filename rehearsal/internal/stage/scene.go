// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"strconv"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/rehearsal/internal/study"
)

// Scene is what stand-ins do in one run. Whatever they do depends on nothing but
// the scene and their place in the run, so that a run that is resumed goes as the
// one that was cut off. Each of the functions may be nil.
type Scene struct {
	Target *definition.Agent // the loop that it is about; nil for all
	Way    study.Way         // in which that is to end
	Never  bool              // it is not to end by any

	Score    func(at study.Place) float64                             // of the target
	Words    func(a *definition.Agent, at study.Place) (string, bool) // of any agent
	Usage    func(at study.Place) *scripted.Usage
	Fail     func(a *definition.Agent, at study.Place) *scripted.Failure
	Said     func(a *definition.Agent, at study.Place, out study.Line) study.Line // in place of what any agent would leave
	Hearing  *Hearing                                                             // of what finalizers are told
	Circles  *loop.NoProgress                                                     // of the target, in place of the file's
	Escalate string                                                               // an agent that asks to leave at its end

	Iterations int   // of the target or, without one, of each loop: then the run is cut off
	StateSize  int64 // so is one with a state of so many bytes

	mu      sync.Mutex
	courses map[string]*study.Course // by loop
}

// course is how the iterations of a loop go, the same in every run of the scene.
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

// wayOf is how a loop is to end in the scene, and in which iteration; 0: it is
// not to.
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
