// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"sync"

	"github.com/refrain-dev/refrain/expr"
)

// program is a compiled expression of a plan, taken apart if it compares.
type program struct {
	*expr.Program
	sides    expr.Comparison
	compared bool
}

// programs keeps what was compiled, by source, so that a Plan stays plain data
// that can be copied. When there are too many it starts over.
var programs struct {
	mu    sync.Mutex
	bySrc map[string]*program
}

const maxPrograms = 1024

// compile is safe for concurrent use. Its errors are those of expr.Compile.
func compile(src string) (*program, error) {
	programs.mu.Lock()
	p := programs.bySrc[src]
	programs.mu.Unlock()
	if p != nil {
		return p, nil
	}
	q, err := expr.Compile(src, variables...)
	if err != nil {
		return nil, err
	}
	p = &program{Program: q}
	p.sides, p.compared = q.Comparison()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if programs.bySrc == nil || len(programs.bySrc) >= maxPrograms {
		programs.bySrc = map[string]*program{}
	}
	programs.bySrc[src] = p
	return p, nil
}

// variables of every expression of a plan.
var variables = []expr.Var{
	{Name: "state", Type: expr.Map},
	{Name: "score"},
	{Name: "scores", Type: expr.ListDouble},
	{Name: "iteration", Type: expr.Int},
	{Name: "usage", Type: expr.Map},
	{Name: "elapsed", Type: expr.Double},
}

// values are the variables of an expression.
func (t *Tally) values(o *Outcome) map[string]any {
	state, scores := o.State, t.Scores
	if state == nil {
		state = map[string]any{}
	}
	if scores == nil {
		scores = []float64{}
	}
	usage := map[string]any{
		"calls": t.Usage.Calls, "input_tokens": t.Usage.InputTokens, "output_tokens": t.Usage.OutputTokens,
		"tokens": t.Usage.InputTokens + t.Usage.OutputTokens,
	}
	if t.Usage.Cost != nil {
		usage["cost"] = *t.Usage.Cost
	}
	var score any
	if t.Score != nil {
		score = *t.Score
	}
	return map[string]any{
		"state": state, "score": score, "scores": scores, "iteration": t.Iteration,
		"usage": usage, "elapsed": t.Active.Seconds(),
	}
}
