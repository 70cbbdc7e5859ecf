// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"testing"
)

// steady is a run whose second step takes so long that a pause is seen while it runs.
const steady = `name: steady
max_iterations: 3
sub_agents:
  - {name: count, set: {n: "1"}}
  - {name: work, command: [sh, -c, "while [ ! -e go ]; do sleep 0.05; done"], output_key: done}
  - {name: tell, text: "told", output_key: words}
`

// M10, LOOP 26: the page says at once that a pause was taken, and before which step the run will stand still; then
// who has paused it, and with which step it goes on.
func TestPauseSaysBeforeWhichStep(t *testing.T) {
	s := serve(t, map[string]string{"steady.yaml": steady})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "steady"))
	p.until("the step to run", `!!document.querySelector('[data-key="steady[1]/work"].run')`)
	p.press("Pause")
	p.sees("The pause was taken. Once work has ended, the run stands still before tell.")
	p.until("the head to say so, and no second pause", `document.querySelector('.head .st').innerText.trim() === 'pausing' && [...document.querySelectorAll('.head button')].find(b => b.innerText.trim() === 'pausing').disabled`)
	p.picture("pausing")
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.sees("Paused on this page. Resume goes on with tell.")
	p.accessible("paused")
	p.press("Português")
	p.sees("Pausada nesta página. Retomar segue com tell.")
	p.press("English")
	p.press("Resume")
	p.seesNot("Paused on this page")
	p.sees("at a limit")
}
