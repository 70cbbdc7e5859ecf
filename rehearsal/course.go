// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"sync"
)

// course is how the iterations of a studied loop go in a scene.
type course struct {
	mu     sync.Mutex
	states []map[string]any // before each iteration
	firsts []picks          // what was found for each
	found  map[string]picks
	vain   map[aim]bool // what was not found, whatever the score
}

// at finds the choices for an iteration. Aims says what each is to come to.
func (c *course) at(s *study, n int, to aim, aims func(int) aim) picks {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		c.found, c.vain, c.states = make(map[string]picks), make(map[aim]bool), []map[string]any{s.begin}
	}
	for k := len(c.states); k < n; k++ {
		some := c.look(s, k, aims(k))
		c.states = append(c.states, s.iteration(c.states[k-1], k, aims(k), some).state)
	}
	return c.look(s, n, to)
}

func (c *course) look(s *study, n int, to aim) picks {
	key := fmt.Sprint(n, to)
	if some, ok := c.found[key]; ok {
		return some
	}
	var last picks
	if len(c.firsts) > 0 {
		last = c.firsts[len(c.firsts)-1]
	}
	kind := aim{stop: to.stop, exit: to.exit}
	some, there := s.find(c.states[n-1], n, to, last, !c.vain[kind])
	c.vain[kind] = c.vain[kind] || !there
	c.found[key], c.firsts = some, append(c.firsts, some)
	return some
}
