// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/expr"
)

// A renaming edits the source at these places, and only if no other variable has the name of the state.
func TestMentionsAreThePlacesOfKeys(t *testing.T) {
	for _, tt := range []struct {
		src   string
		want  []string
		hides bool
	}{
		{`state.a > 1 && state["b c"] == state.?d.orValue(0)`, []string{"a", "b c", "d"}, false},
		{`"a" in state && prev.a == 1`, []string{"a"}, false},
		{`state . a == "state.b" // state.c`, []string{"a"}, false},
		{`[1, 2].exists(x, x == state.a)`, []string{"a"}, false},
		{`[{"a": 1}].exists(state, state.a == 1)`, nil, true},
		{`optional.of({"a": 1}).optMap(state, state.a).hasValue() && state.b == 1`, []string{"b"}, true},
		{`"a" + "b" in state`, nil, false},
		{`state.(`, nil, false},
	} {
		found, hides := expr.Mentions(tt.src, "state")
		var got []string
		for _, m := range found {
			got = append(got, tt.src[m.From:m.To])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || hides != tt.hides {
			t.Errorf("%s: hides %t (-want +got)\n%s", tt.src, hides, diff)
		}
	}
}
