// SPDX-License-Identifier: Apache-2.0

package definition_test

import "testing"

// A base that is nearly dirty or head is noted, because it names a branch.
func TestBaseThatIsMistyped(t *testing.T) {
	for base, want := range map[string]string{
		"drity": "did you mean dirty?", "heda": "did you mean head?", "Dirty": "did you mean dirty?",
		"dirty": "", "head": "", "HEAD": "", "main": "", "HEAD~1": "", "release": "",
	} {
		got := ""
		for _, p := range parse(t, "name: x\nworkspace: {base: "+base+"}\nmax_iterations: 1\nsub_agents:\n  - {name: code, command: [ls]}\n").Notes() {
			if p.Suggestion != "" {
				got = p.Hint
			}
		}
		if got != want {
			t.Errorf("base %s: the notes hint %q, want %q", base, got, want)
		}
	}
}
