// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"strconv"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

// scene is what stand-ins do in one run. Whatever they do depends on nothing but
// the scene and their place in the run, so that a run that is resumed goes as the
// one that was cut off. Each of the functions may be nil.
type scene struct {
	target *definition.Agent // the loop that it is about; nil for all
	way    way               // in which that is to end
	never  bool              // it is not to end by any

	score    func(at place) float64                             // of the target
	words    func(a *definition.Agent, at place) (string, bool) // of any agent
	usage    func(at place) *scripted.Usage
	fail     func(a *definition.Agent, at place) *scripted.Failure
	said     func(a *definition.Agent, at place, out line) line // in place of what any agent would leave
	hearing  *hearing                                           // of what finalizers are told
	circles  *loop.NoProgress                                   // of the target, in place of the file's
	escalate string                                             // an agent that asks to leave at its end

	iterations int   // of the target or, without one, of each loop: then the run is cut off
	stateSize  int64 // so is one with a state of so many bytes

	mu      sync.Mutex
	courses map[string]*course // by loop
}

// course is how the iterations of a loop go, the same in every run of the scene.
func (s *scene) course(l *definition.Agent) *course {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.courses == nil {
		s.courses = make(map[string]*course)
	}
	if s.courses[l.Name] == nil {
		s.courses[l.Name] = &course{}
	}
	return s.courses[l.Name]
}

func placeOf(ctx agent.InvocationContext) place {
	at := place{addr: drive.At(ctx).Address(), loops: make(map[string]int), sample: 1}
	var numbers []string
	for l := drive.At(ctx).Loop(); l != nil; l = l.Outer {
		if at.within == "" {
			at.within = l.Name
		}
		at.loops[l.Name] = l.Iteration
		numbers = append([]string{strconv.Itoa(l.Iteration)}, numbers...)
	}
	at.number = strings.Join(numbers, ".")
	for part := range strings.SplitSeq(string(at.addr), "/") {
		if _, n, ok := strings.Cut(part, "#"); ok {
			if k, err := strconv.Atoi(n); err == nil {
				at.sample = k
			}
		}
	}
	return at
}

// wayOf is how a loop is to end in the scene, and in which iteration; 0: it is
// not to.
func (s *scene) wayOf(c *cast, l *definition.Agent) (way, int) {
	if s.target == l && s.never {
		return way{}, 0
	}
	n := finishAt
	if limit := int(l.Loop.MaxIterations); limit > 0 {
		n = min(n, limit)
	}
	if s.target == l && s.way.reason != "" {
		return s.way, n
	}
	if ways := c.goals[l.Name].ways; len(ways) > 0 {
		return ways[0], n
	}
	return way{}, 0
}
