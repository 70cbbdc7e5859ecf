// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// stepKey identifies a step in all its attempts.
type stepKey struct {
	session    lease.Key
	invocation string
	address    session.Address
}

func keyOf(ctx agent.InvocationContext) stepKey {
	return stepKey{lease.KeyOf(ctx.Session()), ctx.InvocationID(), drive.At(ctx).Address()}
}

// attempt has the state that earlier attempts of a step leave to the next.
type attempt struct {
	sent    int    // messages that have come to an end
	task    string // under way; empty if there is none
	context string
	where   string
}

const maxAttempts = 1000

// memory keeps the attempts of steps that did not succeed. If it forgets one, the work is only done
// again.
type memory struct {
	mu   sync.Mutex
	left map[stepKey]attempt
}

func (m *memory) of(k stepKey) attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left[k]
}

// keep notes an attempt; the zero attempt removes it.
func (m *memory) keep(k stepKey, a attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a == (attempt{}) {
		delete(m.left, k)
		return
	}
	if m.left == nil || len(m.left) >= maxAttempts {
		m.left = make(map[stepKey]attempt)
	}
	m.left[k] = a
}
