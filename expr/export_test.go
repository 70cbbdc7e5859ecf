// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"context"
	"slices"
	"strings"
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
func CostOf(p *Program, vals map[string]any) (uint64, error) {
	_, cost, err := p.eval(context.Background(), Values(vals))
	return cost, err
}
