// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"slices"

	"github.com/refrain-dev/refrain/definition"
)

// needs finds out what is needed of each stand-in: of what its output key gets, and
// of its result.
type needs struct {
	output, result map[string]*need            // by agent
	side           map[string]map[string]*need // by agent and key
}

func readNeeds(c *cast) *needs {
	r := &reading{keys: make(map[string][]*need)}
	n := &needs{output: make(map[string]*need), result: make(map[string]*need), side: make(map[string]map[string]*need)}
	for _, a := range c.leaves(c.def.Root) {
		if !reaches(a) {
			continue
		}
		out := &need{}
		if a.LLM != nil {
			out.schema = a.LLM.OutputSchema
		}
		if a.Human != nil {
			asks(a, out)
		}
		n.output[a.Name], n.result[a.Name] = out, resultNeed(a, out)
		if a.OutputKey != "" {
			r.keys[a.OutputKey] = append(r.keys[a.OutputKey], out)
		}
		if a.ResultKey != "" {
			r.keys[a.ResultKey] = append(r.keys[a.ResultKey], n.result[a.Name])
		}
	}
	c.sides(r, n)
	for range 3 { // what one expression computes another one reads
		for a := range c.def.Root.All {
			r.agent(a, n.result[a.Name])
		}
	}
	return n
}

// asks has the fields that a person's answer has.
func asks(a *definition.Agent, out *need) {
	if approving(a) {
		out.kind = object
		out.field("approved").kind, out.field("reason").kind = yesNo, words
		return
	}
	for _, o := range a.Human.Options {
		out.only = append(out.only, o)
	}
}

// resultNeed has the fields that a task's result has.
func resultNeed(a *definition.Agent, out *need) *need {
	n := &need{kind: object}
	code := func(name string, codes []int) {
		f := n.field(name)
		f.kind = number
		if len(codes) == 1 { // with any other code the real task fails; its stand-in says "not yet"
			codes = append(slices.Clone(codes), codes[0]+1)
		}
		for _, c := range codes {
			f.only = append(f.only, float64(c))
		}
	}
	switch {
	case a.Command != nil:
		code("exit_code", okCodes(a))
		n.field("stdout").kind, n.field("stderr").kind = words, words
	case a.HTTP != nil:
		code("status", okStatus(a))
		n.field("body").kind, n.field("headers").kind = words, object
	default:
		n.field("text").kind = words
	}
	if jsonTask(a) && a.Human == nil {
		n.fields["json"] = out
	}
	return n
}
