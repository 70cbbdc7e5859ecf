// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"testing"
)

// LOOP 16: result names the key that is handed back, or asks for the best.
func TestResultOfALoop(t *testing.T) {
	d := parse(t, "name: l\nresult: draft\nsub_agents: [{name: w, text: x, output_key: draft}]\n")
	if l := d.Root.Loop; l.Result != "draft" || l.BestOnExit {
		t.Errorf("%+v", l)
	}
	d = parse(t, "name: l\nresult: best\nsub_agents: [{name: w, text: x, output_key: draft}]\n")
	if l := d.Root.Loop; l.Result != "" || !l.BestOnExit {
		t.Errorf("%+v", l)
	}
}
