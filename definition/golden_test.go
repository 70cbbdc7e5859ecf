// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"flag"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
)

var update = flag.Bool("update", false, "write the golden files")

// proposal matches the proposal in a hint, which programs have as the suggestion.
var proposal = regexp.MustCompile(`did you mean (?:"([^"]+)"|(\{\{[^}]+\}\}))`)

// A9, A15, A16, F9, G1, D11, D17, T11, T33, C1, C7, C9, C16, C26
func TestBrokenDefinitions(t *testing.T) {
	all := brokenDefinitions(t)
	if len(all) < 150 {
		t.Fatalf("%d definitions", len(all))
	}
	for _, def := range all {
		t.Run(def.name, func(t *testing.T) {
			d, err := def.load()
			problems, ok := errors.AsType[definition.Problems](err)
			if !ok {
				t.Fatalf("Load = %v, %v, want Problems", d, err)
			}
			if d != nil {
				t.Error("a broken definition came with its problems")
			}
			var b strings.Builder
			if err := problems.Format(&b); err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if _, ok := definition.Codes[p.Code]; !ok {
					t.Errorf("no code %q", p.Code)
				}
				if m := proposal.FindStringSubmatch(p.Hint); m != nil && p.Suggestion != m[1]+m[2] || m == nil && p.Suggestion != "" {
					t.Errorf("the hint is %q, and the suggestion %q", p.Hint, p.Suggestion)
				}
			}
			if *update {
				def.write(t, b.String())
			} else if diff := cmp.Diff(def.golden, b.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
