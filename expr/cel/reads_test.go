// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/expr/cel"
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
		found, hides := cel.Mentions(tt.src, "state")
		var got []string
		for _, m := range found {
			got = append(got, tt.src[m.From:m.To])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || hides != tt.hides {
			t.Errorf("%s: hides %t (-want +got)\n%s", tt.src, hides, diff)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		src  string
		want [][]string
	}{
		{"state.a.b.c > 1 && state.d", [][]string{{"a", "b", "c"}, {"d"}}},
		{`json(state.a).b + state["a"]["c"]`, [][]string{{"a", "b"}, {"a", "c"}}},
		{"state.?a.?b.orValue(0)", [][]string{{"a", "b"}}},
		{"has(state.a.b)", [][]string{{"a", "b"}}},
		{"state.a.items.exists(x, x.state.b == state.c.d)", [][]string{{"a", "items"}, {"c", "d"}}},
		{`"b" in state.a.tags`, [][]string{{"a", "tags"}}},
		{"state.a[state.i.n].b", [][]string{{"a"}, {"i", "n"}}},
		{"[1].map(state, state.a.b)", nil},
		{"state.", nil},
	} {
		if diff := cmp.Diff(tt.want, cel.Paths(tt.src, "state")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.src, diff)
		}
	}
}
