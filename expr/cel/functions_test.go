// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/expr/cel"
)

// What the manual says of the functions is so.
func TestFunctionsDoWhatTheirExamplesSay(t *testing.T) {
	for _, f := range cel.Functions() {
		p, err := expr.Compile(f.Example)
		if err != nil {
			t.Errorf("%s: %s: %v", f.Form, f.Example, err)
			continue
		}
		if holds, err := expr.EvalBool(p, nil); err != nil || !holds {
			t.Errorf("%s: %s is %v, %v", f.Form, f.Example, holds, err)
		}
	}
}

// The manual lists every function that an expression can call, and no other.
func TestEveryFunctionIsListed(t *testing.T) {
	var listed []string
	for _, f := range cel.Functions() {
		for _, m := range regexp.MustCompile(`(?:(cel|math|lists|strings|optional)\.)?(\w+)\(`).FindAllStringSubmatch(f.Form, -1) {
			listed = append(listed, strings.TrimPrefix(m[1]+"."+m[2], "."))
		}
	}
	slices.Sort(listed)
	listed = slices.Compact(listed)
	if have := cel.FunctionNames(); !slices.Equal(listed, have) {
		t.Errorf("listed:    %s\ncan be called: %s", listed, have)
	}
}
