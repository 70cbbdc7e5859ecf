// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/expr"
)

// programs keeps what was compiled, by source, so that a Plan stays plain data
// that can be copied. When there are too many it starts over.
var programs struct {
	sync.RWMutex
	bySrc map[string]*program
}

const maxPrograms = 1024

// program is an expression with the keys of state that it reads; all says that it
// may read any.
type program struct {
	*expr.Program
	reads []string
	all   bool
}

// compile is safe for concurrent use. Its errors are those of expr.Compile.
func compile(src string) (*program, error) {
	programs.RLock()
	p := programs.bySrc[src]
	programs.RUnlock()
	if p != nil {
		return p, nil
	}
	compiled, err := expr.Compile(src, variables...)
	if err != nil {
		return nil, err
	}
	p = &program{Program: compiled}
	p.reads, p.all = compiled.Reads("state")
	programs.Lock()
	defer programs.Unlock()
	if programs.bySrc == nil || len(programs.bySrc) >= maxPrograms {
		programs.bySrc = make(map[string]*program)
	}
	programs.bySrc[src] = p
	return p, nil
}

// Variables returns the variables that every expression of a plan can read, with their
// types. The caller may change the slice.
func Variables() []expr.Var { return slices.Clone(variables) }

var variables = []expr.Var{
	{Name: "state", Type: expr.Map},
	{Name: "score"},
	{Name: "scores", Type: expr.ListDouble},
	{Name: "iteration", Type: expr.Int},
	{Name: "usage", Type: expr.Map},
	{Name: "elapsed", Type: expr.Double},
	{Name: "findings"},
}

// view is what an expression sees: the tally as it stands, and a state.
type view struct {
	t     *Tally
	state map[string]any
}

// Value implements expr.Scope.
func (v *view) Value(name string) (any, bool) {
	t := v.t
	switch name {
	case "state":
		return v.state, true
	case "score":
		if t.Score == nil {
			return nil, true
		}
		return *t.Score, true
	case "scores":
		return t.Scores, true
	case "iteration":
		return t.Iteration, true
	case "findings":
		return t.Ended.kinds(), true
	case "elapsed":
		return t.Active.Seconds(), true
	case "usage":
		usage := map[string]any{
			"calls": t.Usage.Calls, "input_tokens": t.Usage.InputTokens, "output_tokens": t.Usage.OutputTokens,
			"tokens": t.Usage.tokens(),
		}
		if t.Usage.Cost != nil {
			usage["cost"] = *t.Usage.Cost
		}
		return usage, true
	}
	return nil, false
}

// Reads returns the state keys that StopWhen, Score and Watch.Tests read, sorted; see also Compares. all reports that
// they may read any key.
func (p *Plan) Reads() (keys []string, all bool) {
	add := func(src string) {
		if q, err := compile(src); err == nil {
			keys, all = append(keys, q.reads...), all || q.all
		}
	}
	if p.StopWhen != nil {
		p.StopWhen.each(add)
	}
	if s := p.Score; s != nil && s.Expr != "" {
		add(s.Expr)
	} else if s != nil {
		keys = append(keys, s.Key)
	}
	keys = append(keys, p.measures()...)
	slices.Sort(keys)
	return slices.Compact(keys), all
}

// each calls f with the expressions of a condition and its parts.
func (c *Condition) each(f func(src string)) {
	if c.Expr != "" {
		f(c.Expr)
	}
	for i := range c.Any {
		c.Any[i].each(f)
	}
	for i := range c.All {
		c.All[i].each(f)
	}
	if c.Not != nil {
		c.Not.each(f)
	}
}
