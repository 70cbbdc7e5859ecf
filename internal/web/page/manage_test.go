// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"testing"
)

// confirms presses the button of the open dialog that does it.
func (t *tab) confirms() {
	t.Helper()
	button := `document.querySelector('dialog[open] form .acts button:last-child:not(:disabled)')`
	t.until("a dialog", `!!`+button)
	t.js(button + `.click(); true`)
}

// U12: a definition is run, duplicated, renamed and deleted from its row, and keeps its comments.
func TestADefinitionIsManagedFromItsRow(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	p := open(t, s)
	p.visit("/definitions")
	p.press("Run climb")
	p.fill("Request", "to the top")
	p.confirms()
	p.until("the run", `location.pathname.startsWith('/runs/')`)
	p.sees("to the top")

	p.visit("/definitions")
	p.press("Manage climb")
	p.accessible("manage")
	p.press("Duplicate climb")
	p.fill("New name", "climb")
	p.confirms()
	p.sees("There is climb already.")
	p.fill("New name", "hill")
	p.confirms()
	p.until("the copy", `location.pathname === '/definitions/hill'`)
	p.reads("hill.yaml", "# A comment that stays.", "name: hill")

	p.visit("/definitions")
	p.press("Manage hill")
	p.press("Rename hill")
	p.fill("New name", "mountain")
	p.confirms()
	p.sees("mountain.yaml")
	p.seesNot("hill.yaml")
	p.reads("mountain.yaml", "name: mountain")

	p.press("Manage climb")
	p.press("Delete climb")
	p.sees("The file climb.yaml is removed from the disk.")
	p.confirms()
	p.seesNot("climb.yaml")
	for _, gone := range []string{"hill.yaml", "climb.yaml"} {
		if _, err := os.Stat(filepath.Join(s.dir, gone)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}

// gated is a loop whose second iteration is worse, and rejected; unscored one without a score.
const gated = `name: judged
max_iterations: 3
quality_gate: 2
state: {n: 0}
score: {key: height}
inputs: {who: {}, how: {default: softly}}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: say, text: "for {{who}}, {{how}}", output_key: words}
  - {name: measure, set: {height: "state.n == 2 ? 1.0 : double(state.n) + 2.0"}}
`

const unscored = `name: unscored
max_iterations: 2
sub_agents:
  - {name: say, text: "words", output_key: words}
`

// U11: a run that has ended is run again with its whole input; what it has found and where it went stand above the
// iterations, of which a click opens one, and a rejected one says so in words.
func TestAnEndedRunIsReadAndRunAgain(t *testing.T) {
	s := serve(t, map[string]string{"judged.yaml": gated, "unscored.yaml": unscored})
	p := open(t, s)
	id, _ := s.post(t, "/runs", map[string]any{
		"definition": "judged", "input": "line one\nline two", "state": map[string]any{"who": "Ana", "how": "loudly"},
	})["run"].(string)
	p.visit("/runs/" + id)
	p.sees("Why it stopped")
	p.until("where it went above the iterations", `!!(document.getElementById('h-where').compareDocumentPosition(document.getElementById('h-iterations')) & Node.DOCUMENT_POSITION_FOLLOWING)`)
	p.until("the findings too", `!document.getElementById('h-findings') || !!(document.getElementById('h-findings').compareDocumentPosition(document.getElementById('h-iterations')) & Node.DOCUMENT_POSITION_FOLLOWING)`)
	p.until("the second iteration", `!!document.querySelector('[data-key="judged[2]"] .sr')`)
	if sr, err := eval[string](p, `document.querySelector('[data-key="judged[2]"] .sr').textContent`); err != nil || sr != "rejected" && sr != "undone" {
		t.Errorf("the rejected iteration says %q, %v", sr, err)
	}
	p.js(`document.querySelector('[data-key="judged[2]"] .t').click(); true`)
	p.until("its steps", `!!document.querySelector('[data-key="judged[2]/say"]')`)
	p.accessible("ended")
	p.press("Run again…")
	p.until("the input and the values", `(() => { const f = document.querySelector('dialog form'); return f?.querySelector('textarea').value === 'line one\nline two' && [...f.querySelectorAll('input')].map(i => i.value).join() === 'Ana,loudly' })()`)
	p.confirms()
	p.until("another run", `location.pathname.startsWith('/runs/') && !location.pathname.endsWith(`+quote(id)+`)`)
	p.sees("for Ana, loudly")

	p.visit("/runs/" + s.start(t, "unscored"))
	p.sees("Why it stopped")
	p.until("no panel for a score", `!document.getElementById('h-score')`)
	p.accessible("unscored")
}
