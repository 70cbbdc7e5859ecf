// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/expr"
)

// FunctionNames are the functions that an expression can call, in order.
func FunctionNames() []string {
	env, err := base()
	if err != nil {
		panic(err)
	}
	all := names(env, nil)
	for i, name := range all {
		if name == "least" || name == "greatest" {
			all[i] = "math." + name
		}
		if name == "bind" {
			all[i] = "cel." + name
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == "in" || strings.Contains(name, "@") })
	slices.Sort(all)
	return slices.Compact(all)
}

// Declared are the functions of the environment, those without a name of their own too.
func Declared() []string {
	env, err := base()
	if err != nil {
		panic(err)
	}
	var all []string
	for name := range env.Functions() {
		switch name {
		case "in", "_in_", "__not_strictly_false__": // older names, which the parser does not write
		default:
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// CostOf evaluates a program and returns its cost.
func CostOf(p expr.Program, vals map[string]any) (uint64, error) {
	_, cost, err := p.(*program).eval(context.Background(), expr.Values(vals))
	return cost, err
}
