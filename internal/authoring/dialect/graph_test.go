// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// A25, C29: a condition of Evo AI in a cycle is met when it is met there. The
// workflow says a text, and ends if the condition holds of it.
func TestEvoConditions(t *testing.T) {
	for _, tt := range []struct {
		op, value, said string
		met             bool
	}{
		{"equals", "yes", "yes", true},
		{"equals", "yes", "Yes", false},
		{"equals", `a"b\n`, `a"b\n`, true},
		{"not_equals", "yes", "no", true},
		{"not_equals", "yes", "yes", false},
		{"contains", "DONE.", "it is done.", true},
		{"contains", "done.", "it is doneX", false},
		{"contains", "pronto É", "está PRONTO é isso", true},
		{"not_contains", "done", "it is Done", false},
		{"not_contains", "done", "never", true},
		{"starts_with", "ok", "OK then", true},
		{"starts_with", "ok", "not ok", false},
		{"ends_with", "ok", "all OK", true},
		{"ends_with", "ok", "ok then", false},
		{"is_defined", "", "x", true},
		{"is_not_defined", "", "x", false},
		{"greater_than", "8", "8.5", true},
		{"greater_than", "8", "8", false},
		{"greater_than_or_equal", "8", " 8 ", true},
		{"less_than", "-1.5", "-2", true},
		{"less_than", "0.1", "0.1", false},
		{"less_than_or_equal", "0.1", "0.1", true},
		{"less_than", "9", "about 3", false},
		{"matches", "^v[0-9]+", "V12 is it", true},
		{"matches", "^v[0-9]+$", "v12 is it", false},
		{"not_matches", "fail|error", "an ERROR", false},
		{"not_matches", "fail|error", "fine", true},
	} {
		flow := cyclic(tt.op, tt.value, tt.said)
		res, err := dialect.Import("agents.json", flow, dialect.Options{Dialect: dialect.Evo})
		if err != nil || res.Err() != nil {
			t.Fatalf("%v, %v", err, res.Err())
		}
		script := filepath.Join(t.TempDir(), "script.yaml")
		if err := os.WriteFile(script, []byte("answers: [{agent: nobody, text: x}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stop := run(t, res.Definition, script)
		if want := map[bool]string{true: "condition", false: "max_iterations"}[tt.met]; stop != want {
			t.Errorf("%q %s %q: stop %q, want %q\n%s", tt.said, tt.op, tt.value, stop, want, res.YAML)
		}
	}
}

// cyclic is a workflow that says a text again until a condition holds of it.
func cyclic(op, value, said string) []byte {
	data, _ := json.Marshal(map[string]any{"name": "w", "type": "workflow", "config": map[string]any{"workflow": map[string]any{
		"nodes": []any{
			map[string]any{"id": "s", "type": "start-node"},
			map[string]any{"id": "m", "type": "message-node", "data": map[string]any{"message": map[string]any{"content": said}}},
			map[string]any{"id": "c", "type": "condition-node", "data": map[string]any{"conditions": []any{
				map[string]any{"id": "met", "type": "previous-output", "data": map[string]any{"field": "content", "operator": op, "value": value}},
			}}},
			map[string]any{"id": "e", "type": "message-node", "data": map[string]any{"label": "end", "message": map[string]any{"content": "over"}}},
		},
		"edges": []any{
			map[string]any{"source": "s", "target": "m"},
			map[string]any{"source": "m", "target": "c"},
			map[string]any{"source": "c", "target": "e", "sourceHandle": "met"},
			map[string]any{"source": "c", "target": "m", "sourceHandle": "bottom-handle"},
		},
	}}})
	return data
}

// drawn is a random workflow: agents that say how often they have spoken, and
// conditions on that.
type drawn struct {
	next map[string][]string // of agents, and of conditions when it is met and when not
	at   map[string]int      // from when on a condition is met
}

func draw(rnd *rand.Rand) drawn {
	d := drawn{next: map[string][]string{}, at: map[string]int{}}
	nodes := []string{"a0"}
	for n := range 1 + rnd.IntN(6) {
		nodes = append(nodes, []string{"a", "c"}[rnd.IntN(2)]+strconv.Itoa(n+1))
	}
	nodes = append(nodes, "a9")
	for k, n := range nodes[:len(nodes)-1] {
		to := func() string { return nodes[rnd.IntN(len(nodes))] }
		switch {
		case n[0] == 'c':
			d.at[n] = 1 + rnd.IntN(3)
			d.next[n] = []string{nodes[k+1], to()}
			if rnd.IntN(2) == 0 {
				slices.Reverse(d.next[n])
			}
		case rnd.IntN(6) > 0:
			d.next[n] = nodes[k+1 : k+2]
		default:
			d.next[n] = []string{to()}
		}
	}
	d.next["s"] = nodes[:1]
	return d
}

func (d drawn) json() []byte {
	agents, nodes, edges := []any{}, []any{}, []any{}
	for n, next := range d.next {
		kind, data := "start-node", map[string]any{}
		handles := []string{""}
		if n[0] == 'c' {
			kind, handles = "condition-node", []string{"met", "bottom-handle"}
			data["conditions"] = []any{map[string]any{"id": "met", "type": "previous-output", "data": map[string]any{
				"field": "content", "operator": "greater_than_or_equal", "value": strconv.Itoa(d.at[n]),
			}}}
		}
		if n[0] == 'a' {
			kind, data = "agent-node", map[string]any{"agent_id": "id-" + n}
			agents = append(agents, map[string]any{"id": "id-" + n, "name": n, "type": "llm", "instruction": "x", "config": map[string]any{}})
		}
		nodes = append(nodes, map[string]any{"id": n, "type": kind, "data": data})
		for k, to := range next {
			edges = append(edges, map[string]any{"source": n, "target": to, "sourceHandle": handles[k]})
			if _, has := d.next[to]; !has && to[0] == 'a' {
				d.next[to] = nil
				return d.json()
			}
		}
	}
	agents = append(agents, map[string]any{"id": "w", "name": "w", "type": "workflow",
		"config": map[string]any{"workflow": map[string]any{"nodes": nodes, "edges": edges}}})
	data, _ := json.Marshal(map[string]any{"agents": agents})
	return data
}

// walk is what Evo AI would do: one node after the other. It reports whether that
// comes to an end by itself.
func (d drawn) walk() (said []string, ends bool) {
	turns := map[string]int{}
	last := 0
	for n, steps := "s", 0; steps < 40; steps++ {
		switch n[0] {
		case 'a':
			if len(said) >= 10 {
				return nil, false
			}
			turns[n]++
			last = turns[n]
			said = append(said, fmt.Sprintf("%s: %d", n, last))
		case 'c':
			if last >= d.at[n] {
				n = d.next[n][0]
			} else {
				n = d.next[n][1]
			}
			continue
		}
		if len(d.next[n]) == 0 {
			return said, true
		}
		n = d.next[n][0]
	}
	return nil, false
}

// A25, C29: a workflow that is carried over does what it did: the same agents
// speak in the same order. What cannot be said is refused.
func TestGraphsRunAsTheyAreDrawn(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	var script strings.Builder
	script.WriteString("answers:\n")
	for a := range 10 {
		for turn := 1; turn <= 12; turn++ {
			fmt.Fprintf(&script, "  - {agent: a%d, turn: %d, text: \"%d\"}\n", a, turn, turn)
		}
	}
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	carried, loops, refused := 0, 0, 0
	for range 300 {
		d := draw(rnd)
		want, ends := d.walk()
		if !ends {
			continue
		}
		res, err := dialect.Import("agents.json", d.json(), dialect.Options{Dialect: dialect.Evo, Agent: "w"})
		if err != nil {
			t.Fatal(err)
		}
		if res.YAML == nil {
			refused++
			continue
		}
		if res.Definition == nil {
			t.Fatalf("%v\n%s\n%s", res.Err(), res.YAML, d.json())
		}
		carried++
		if strings.Contains(string(res.YAML), "type: loop") {
			loops++
		}
		_, said := play(t, res.Definition, file)
		said = slices.DeleteFunc(said, func(s string) bool { return s[0] != 'a' })
		if diff := cmp.Diff(want, said); diff != "" {
			t.Fatalf("(-there +here)\n%s\n%s\n%s", diff, res.YAML, d.json())
		}
	}
	if carried < 50 || loops < 20 || refused < 20 {
		t.Errorf("%d carried over, %d with loops, %d refused", carried, loops, refused)
	}
}
