// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/expr"
)

// Condition is an expression, or a combination of conditions. Exactly one of Expr, Any,
// All and Not is set. Its JSON is a plain string if only Expr is set.
//
// An expression sees:
//
//	state      the run's state (map)
//	score      the iteration's score, null if it has none
//	scores     recent scores, oldest first, at most 64
//	iteration  the number of the iteration, from 1
//	usage      calls, input_tokens, output_tokens, tokens; cost, only if it is known
//	elapsed    seconds spent in steps
//	findings   kinds of the findings of the iteration that has ended; see Finding
//
// Expressions need an engine: see package expr.
//
// After a step, score is the score of the last iteration that ended.
//
// A condition that cannot be evaluated, such as one over a missing key, is false, and so
// is its Not. The stop record says why.
type Condition struct {
	// Expr is a CEL expression that gives true or false.
	Expr string `json:"expr,omitzero"`
	// Any holds if at least one of these conditions holds.
	Any []Condition `json:"any,omitzero"`
	// All holds if all of these conditions hold.
	All []Condition `json:"all,omitzero"`
	// Not holds if this condition does not hold.
	Not *Condition `json:"not,omitzero"`
	// For is the number of iterations in a row in which the condition must hold. 0 means 1.
	For uint `json:"for,omitzero"`
}

// MarshalJSON writes a condition that is only an expression as a string. It does not escape >
// and <; the encoder around it may.
func (c Condition) MarshalJSON() ([]byte, error) {
	type object Condition
	var v any = object(c)
	if c.Expr != "" && c.Any == nil && c.All == nil && c.Not == nil && c.For == 0 {
		v = c.Expr
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// UnmarshalJSON reads a string or an object. It returns an error for an unknown field.
func (c *Condition) UnmarshalJSON(b []byte) error {
	*c = Condition{}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Expr)
	}
	type object Condition
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode((*object)(c)); err != nil {
		return fmt.Errorf("read a condition: %w", err)
	}
	return nil
}

// String writes the condition for people: a and (b or not c).
func (c Condition) String() string {
	var s string
	switch {
	case c.Expr != "":
		s = c.Expr
	case c.Any != nil:
		s = join(c.Any, " or ")
	case c.All != nil:
		s = join(c.All, " and ")
	case c.Not != nil:
		s = "not (" + c.Not.String() + ")"
	}
	if c.For > 1 {
		s = fmt.Sprintf("%s for %d iterations", s, c.For)
	}
	return s
}

func join(cs []Condition, word string) string {
	parts := make([]string, len(cs))
	for i, c := range cs {
		parts[i] = c.String()
		if (len(c.Any) > 1 || len(c.All) > 1) && len(cs) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, word)
}

// programs caches compiled expressions by their source, so that a Plan stays plain data that can be copied. At
// maxPrograms entries the cache is emptied.
var programs struct {
	sync.RWMutex
	bySrc map[string]*program
}

const maxPrograms = 1024

// program is a compiled expression with the state keys that it reads. all says that it may read any key.
type program struct {
	expr.Program
	reads []string
	all   bool
}

// compile returns the program of an expression, from the cache if possible. It is safe for concurrent use. Its errors
// are those of expr.Compile.
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

// scope is what an expression sees: the current tally and a state.
type scope struct {
	t     *Tally
	state map[string]any
}

// Value implements expr.Scope.
func (v *scope) Value(name string) (any, bool) {
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
		p.StopWhen.walk(add)
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

// walk calls f with every expression in a condition and in its parts.
func (c *Condition) walk(f func(src string)) {
	if c.Expr != "" {
		f(c.Expr)
	}
	for i := range c.Any {
		c.Any[i].walk(f)
	}
	for i := range c.All {
		c.All[i].walk(f)
	}
	if c.Not != nil {
		c.Not.walk(f)
	}
}
