// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
)

// noted is a value as a Go program has it.
type isSnapshot struct {
	Text string
	Took time.Duration
	Data []byte `json:"data"`
	N    uint64
}

// goValue is a Go value of some kind, made of a mix.
func goValue(m string) any {
	n := digit(m, 0)*10 + digit(m, 1)
	switch digit(m, 2) {
	case 0:
		return n
	case 1:
		return isSnapshot{m, time.Duration(n), []byte(m), math.MaxUint64 - uint64(n)}
	case 2:
		return []byte(m)
	case 3:
		return time.Duration(n) * time.Millisecond
	case 4:
		return int64(math.MaxInt64 - n)
	case 5:
		return uint64(math.MaxUint64) - uint64(n)
	case 6:
		return map[string][]int{m: {n, 1<<53 + n}}
	}
	return m
}

// scopes are what a key of the state may begin with that a loop decides by.
var scopes = []string{"", "", "temp:", "user:", "app:"}

// wrapped is an invocation as an agent of one's own hands it down: in a type of its own.
type wrapped struct{ agent.InvocationContext }

func (w wrapped) WithContext(ctx context.Context) agent.InvocationContext {
	return wrapped{w.InvocationContext.WithContext(ctx)}
}

// helper is an agent that is a tool, alone or in a loop. What it does depends on what it
// is asked: where it runs is not the same when some of its calls are in the log.
func (f *forest) helper(p place) tool.Tool {
	name, fails := f.name("helper"), f.dice.IntN(3) == 0
	a := custom(f, name, func(ctx agent.InvocationContext, yield yield) {
		h := fnv.New64a()
		fmt.Fprint(h, name, ctx.UserContent().Parts[0].Text)
		m := fmt.Sprintf("%05d", h.Sum64()%100000)
		ev := says(name + " " + m)
		ev.Actions.StateDelta = map[string]any{p.keys + "text": goValue(m), "temp:" + p.keys + "helped": m}
		if fails && digit(m, 4) < 3 {
			ev.Actions.StateDelta[p.keys+"k0"] = math.NaN()
		}
		yield(ev, nil)
	})
	if f.dice.IntN(2) == 0 {
		a = f.must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: f.name("helpers"), SubAgents: []agent.Agent{a}}, MaxIterations: 1 + uint(f.dice.IntN(2)),
		}))
	}
	return agenttool.New(a, nil)
}

// counts counts in a key that the user's sessions share, and that a resumed run finds as
// it is now.
func counts(ctx agent.Context, key string) error {
	n := 0.0
	if v, err := ctx.State().Get(key); err == nil {
		n = v.(float64)
	}
	return ctx.State().Set(key, int(n)+1)
}

// counted leaves those keys out: what was made again has counted twice.
var loggedEvents = cmpopts.IgnoreMapEntries(func(key string, _ any) bool {
	return strings.HasPrefix(key, "user:") && strings.Contains(key, "count_")
})

// intrude runs something in a session in which a run is under way: it is refused, and the
// run goes on.
func (p *process) intrude(id string) {
	p.Helper()
	for what, second := range map[string]iter.Seq2[*session.Event, error]{
		"run":    p.Run(p.Context(), "ana", "s1", genai.NewContentFromText("me too", genai.RoleUser), agent.RunConfig{}),
		"resume": p.Resume(p.Context(), "ana", "s1", id, agent.RunConfig{}),
	} {
		said, err := collect(p, second)
		if busy, ok := errors.AsType[*runner.BusyError](err); !ok || busy.RunID != id || len(said) > 0 {
			p.Errorf("a second %s beside %s: %q, %v", what, id, said, err)
		}
	}
}
