// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"math"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// rangePrices has the static prices, in units, of nodes that CEL evaluates again in each iteration of a comprehension, the
// nodes that give the range of one, and the sizes of maps with computed keys.
type rangePrices struct {
	steps  map[int64]float64
	ranges map[int64]bool
	maps   map[int64]int
}

// folds finds the comprehensions of a tree.
func folds(e ast.Expr) rangePrices {
	r := rangePrices{map[int64]float64{}, map[int64]bool{}, map[int64]int{}}
	r.find(e)
	return r
}

// find returns the number of nodes that are evaluated with e, without the steps of comprehensions in it.
func (r rangePrices) find(e ast.Expr) float64 {
	n := 1.0
	if entries := computedKeys(e); entries > 1 {
		r.maps[e.ID()] = entries
	}
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		r.ranges[c.IterRange().ID()] = true
		r.steps[c.LoopStep().ID()] = r.find(c.LoopStep()) + r.find(c.LoopCondition())
		return n + r.find(c.IterRange()) + r.find(c.AccuInit()) + r.find(c.Result())
	}
	for _, child := range children(e) {
		n += r.find(child)
	}
	return n
}

// decorate charges the nodes that r has found.
func (r rangePrices) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if entries := r.maps[i.ID()]; entries > 0 {
		if _, made := i.(interpreter.InterpretableConstructor); made {
			i = &uniqueKeys{i, entries}
		}
	}
	nodes, isRange := r.steps[i.ID()], r.ranges[i.ID()]
	if nodes < 10 && !isRange {
		return i, nil
	}
	return &pricedNode{i, nodes * 50, isRange}, nil
}

// pricedNode charges for a step of a comprehension, or for the walk through its range.
type pricedNode struct {
	interpreter.InterpretableV2
	ns      float64
	isRange bool
}

// Exec implements interpreter.InterpretableV2.
func (n *pricedNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	m := meter{frame: frame, ns: n.ns}
	m.flush()
	v := n.InterpretableV2.Exec(frame)
	if n.isRange {
		if made, ok := v.(traits.Mapper); ok { // whose keys are sorted
			m.spend(count(v) * (200 + 100*math.Log2(count(v)+2)))
			m.flush()
			if _, sorted := v.(sortedMap); !sorted {
				v = sortedMap{made}
			}
		}
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (n *pricedNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}
