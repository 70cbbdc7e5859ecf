// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
)

// U6, T9: warnings do not keep a definition from running.
func TestWarnings(t *testing.T) {
	d := parse(t, `name: warned
inputs: {topic: cats, unused: 1}
sub_agents:
  - name: a
    command: [echo, "{{topic}} {{score}}", "{maybe}"]
    can_exit_loop: true
  - name: b
    text: "{maybe} {{perhaps?}}"
`)
	var b strings.Builder
	if err := d.Warnings().Format(&b); err != nil {
		t.Fatal(err)
	}
	want := `x.yaml:2:23: warning: nobody reads the input "unused" [LOOP023]
    2 | inputs: {topic: cats, unused: 1}
      |                       ^^^^^^
x.yaml:5:32: warning: {{score}} is always empty here: the loop "warned" has no score [LOOP024]
    5 |     command: [echo, "{{topic}} {{score}}", "{maybe}"]
      |                                ^^^^^^^^^
x.yaml:6:20: warning: "a" never asks to end the loop [LOOP017]
    6 |     can_exit_loop: true
      |                    ^^^^ exit_when says when it does
x.yaml:8:12: warning: {maybe} is read here but no agent writes it [LOOP020]
    8 |     text: "{maybe} {{perhaps?}}"
      |            ^^^^^^^ the keys are topic, unused
x.yaml:8:20: warning: {{perhaps?}} is read here but no agent writes it [LOOP020]
    8 |     text: "{maybe} {{perhaps?}}"
      |                    ^^^^^^^^^^^^ the keys are topic, unused
5 warnings
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := d.Build(t.Context(), definition.BuildConfig{}); err != nil {
		t.Error(err)
	}
	b.Reset()
	if err := definition.Problems(nil).Format(&b); err != nil || b.Len() > 0 {
		t.Errorf("no problems are %q, %v", b.String(), err)
	}
}
