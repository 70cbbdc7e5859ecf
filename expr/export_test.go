// SPDX-License-Identifier: Apache-2.0

package expr

import (
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
