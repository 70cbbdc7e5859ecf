// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/refrain-dev/refrain/agent"
)

// FuzzModel compares trees of loops and sequences with a model of them that
// fits a screen. B1, B2, B5, T1, T3, C20, C24.
func FuzzModel(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		m := &model{rnd: rand.New(rand.NewPCG(seed, 2))}
		root := m.node(3)
		got, err := play(t, root.agent(t))
		if err != nil {
			t.Fatal(err)
		}
		root.run(m, false)
		check(t, "events", lines(got), m.said)
	})
}

// model makes a tree and notes what it must say.
type model struct {
	rnd  *rand.Rand
	n    int
	said []string
}

type node struct {
	kind string // loop, seq or leaf
	name string
	most int
	subs []*node
	acts []string // of a leaf: "", "exit" or words
	at   int
}

func (m *model) node(depth int) *node {
	m.n++
	n := &node{kind: []string{"loop", "loop", "seq", "leaf"}[m.rnd.IntN(4)], most: 1 + m.rnd.IntN(4)}
	if depth == 0 {
		n.kind = "leaf"
	}
	n.name = fmt.Sprintf("%s%d", n.kind, m.n)
	if n.kind == "leaf" {
		for i := range 400 { // more than it runs
			n.acts = append(n.acts, []string{"", "exit", fmt.Sprint(i), fmt.Sprint(i), fmt.Sprint(i)}[m.rnd.IntN(5)])
		}
		return n
	}
	for range 1 + m.rnd.IntN(3) {
		n.subs = append(n.subs, m.node(depth-1))
	}
	return n
}

// run reports whether the nearest loop is to be left.
func (n *node) run(m *model, inLoop bool) bool {
	switch n.kind {
	case "leaf":
		act := n.acts[n.at]
		n.at++
		if act != "" {
			m.said = append(m.said, n.name+": "+act)
		}
		return act == "exit"
	case "seq":
		for _, sub := range n.subs {
			if sub.run(m, inLoop) && inLoop {
				return true
			}
		}
		return false
	}
	for range n.most {
		for _, sub := range n.subs {
			if sub.run(m, true) {
				return false
			}
		}
	}
	return false
}

// agent is the real thing.
func (n *node) agent(t testing.TB) agent.Agent {
	var subs []agent.Agent
	for _, sub := range n.subs {
		subs = append(subs, sub.agent(t))
	}
	switch n.kind {
	case "loop":
		return repeat(t, n.name, uint(n.most), subs...)
	case "seq":
		return sequence(t, n.name, subs...)
	}
	at := 0
	return does(t, n.name, func(_ agent.InvocationContext, say say) error {
		act := n.acts[at]
		at++
		switch act {
		case "":
		case "exit":
			say(escalate(words(act)))
		default:
			say(words(act))
		}
		return nil
	})
}
