// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// generator writes small definitions by chance, with everything that bounds a
// run.
type generator struct {
	rnd     *rand.Rand
	n       int
	bounded bool // every model is within a loop whose time is bounded
}

func (g *generator) chance(n int) bool { return g.rnd.IntN(n) == 0 }

func (g *generator) pick(words ...string) string { return words[g.rnd.IntN(len(words))] }

// some is a line, or nothing as often as not.
func (g *generator) some(in, format string, args ...any) string {
	if g.chance(2) {
		return ""
	}
	return in + fmt.Sprintf(format, args...) + "\n"
}

func (g *generator) seconds(most int) string { return fmt.Sprintf("%ds", 1+g.rnd.IntN(most)) }

func (g *generator) definition() string {
	g.bounded = g.chance(2)
	var b strings.Builder
	b.WriteString("prices: {m: {input: 2, output: 2}, scripted: {input: 2, output: 2}}\n")
	b.WriteString("max_model_calls: " + g.pick("none", "500", "30") + "\n")
	root := g.agent("", 3, false, false)
	b.WriteString(strings.Replace(root, "- ", "  ", 1))
	text := b.String()
	// The root stands at the margin.
	lines := strings.Split(text, "\n")
	for i := 2; i < len(lines); i++ {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// agent is an element of a list of sub-agents, indented so far.
func (g *generator) agent(in string, depth int, inLoop, isStep bool) string {
	g.n++
	name := fmt.Sprintf("a%d", g.n)
	var b strings.Builder
	field := func(format string, args ...any) { fmt.Fprintf(&b, in+"  "+format+"\n", args...) }
	fmt.Fprintf(&b, "%s- name: %s\n", in, name)
	kind := g.rnd.IntN(7)
	switch {
	case depth == 3:
		kind = g.rnd.IntN(3)
	case depth == 0:
		kind = 3 + g.rnd.IntN(4)
	}
	switch kind {
	case 0, 1:
		g.loop(&b, in, depth)
	case 2:
		field("type: %s", g.pick("sequential", "parallel"))
		field("sub_agents:")
		for range 1 + g.rnd.IntN(3) {
			b.WriteString(g.agent(in+"    ", depth-1, inLoop, false))
			b.WriteString(g.some(in+"      ", "delay_before: %s", g.seconds(3)))
			b.WriteString(g.some(in+"      ", "delay_after: %s", g.seconds(3)))
			b.WriteString(g.some(in+"      ", "continue_on_error: true"))
		}
	case 3:
		field("text: %q", name)
	default:
		field("instructions: %s", name)
		if g.chance(4) {
			field("output_schema: {type: object, properties: {mark: {type: integer}}, required: [mark]}")
		}
		if g.chance(2) {
			field("request_retry: {attempts: %d, backoff: %dms}", 1+g.rnd.IntN(4), 1+g.rnd.IntN(3000))
		}
		if g.chance(2) {
			field("output_key: k%d", g.n)
		}
		if inLoop {
			field("can_exit_loop: %v", g.chance(3))
		}
	}
	if isStep {
		g.step(&b, in, kind)
	}
	return b.String()
}

// step is how a loop treats one of its steps.
func (g *generator) step(b *strings.Builder, in string, kind int) {
	in += "  "
	if g.chance(2) {
		fmt.Fprintf(b, "%sretry: {attempts: %d, backoff: %s, max_backoff: 4s}\n", in, 1+g.rnd.IntN(4), g.seconds(4))
	}
	if kind >= 4 || kind == 2 {
		b.WriteString(g.some(in, "timeout: %s", g.seconds(12)))
	}
	if kind >= 4 && g.chance(4) {
		fmt.Fprintf(b, "%sadaptive_timeout: {min: 1s, max: %s, after: 2}\n", in, g.seconds(15))
	}
	if g.chance(4) {
		fmt.Fprintf(b, "%scircuit: {failures: %d, cooldown: %s}\n", in, 1+g.rnd.IntN(2), g.seconds(9))
	}
	b.WriteString(g.some(in, "delay_before: %s", g.seconds(3)))
	b.WriteString(g.some(in, "delay_after: %s", g.seconds(3)))
	if kind > 1 { // a loop's is for its own steps
		b.WriteString(g.some(in, "on_error: %s", g.pick("stop", "skip_step", "next_iteration")))
	}
}

func (g *generator) loop(b *strings.Builder, in string, depth int) {
	in += "  "
	fmt.Fprintf(b, "%smax_iterations: %d\n", in, 1+g.rnd.IntN(4))
	fmt.Fprintf(b, "%son_error: %s\n", in, g.pick("stop", "skip_step", "skip_step", "next_iteration"))
	if depth == 3 {
		fmt.Fprintf(b, "%stimeouts: none\n", in)
	}
	switch {
	case g.bounded:
		most := 5 + g.rnd.IntN(90)
		fmt.Fprintf(b, "%stimeout: %ds\n%s", in, most, g.some(in, "iteration_timeout: %ds", 1+g.rnd.IntN(most)))
	case g.chance(3):
		fmt.Fprintf(b, "%siteration_timeout: %s\n", in, g.seconds(30))
	}
	b.WriteString(g.some(in, "iteration_delay: %s", g.seconds(5)))
	if g.chance(4) {
		fmt.Fprintf(b, "%sbudget: {calls: %d}\n", in, 3+g.rnd.IntN(12))
	} else if g.chance(6) {
		fmt.Fprintf(b, "%sbudget: {tokens: %d, cost: %d}\n", in, 100+g.rnd.IntN(20000), 1+g.rnd.IntN(3))
	}
	final := g.chance(3)
	if final && g.chance(3) {
		fmt.Fprintf(b, "%sfinalizer: each_iteration\n", in)
	}
	g.n++
	judge := fmt.Sprintf("j%d", g.n)
	judged := g.chance(3)
	if judged {
		samples, target := strconv.Itoa(1+g.rnd.IntN(3)), ""
		if g.chance(3) {
			samples, target = samples+"..4", ", target: 9"
		}
		fmt.Fprintf(b, "%sscore: {key: %s, judge: {step: %s, samples: %s}%s}\n", in, judge, judge, samples, target)
	}
	fmt.Fprintf(b, "%ssub_agents:\n", in)
	for range 1 + g.rnd.IntN(2) {
		b.WriteString(g.agent(in+"  ", depth-1, true, true))
	}
	if judged {
		fmt.Fprintf(b, "%s  - name: %s\n%s    instructions: judge\n%s    output_key: %s\n%s    can_exit_loop: false\n", in, judge, in, in, judge, in)
		g.step(b, in+"  ", 4)
	}
	if final {
		fmt.Fprintf(b, "%s  - name: f%s\n%s    instructions: sum up\n%s    output_key: loop_output\n", in, judge, in, in)
	}
}
