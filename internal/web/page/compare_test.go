// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two runs are chosen in the list and seen side by side: scores, stops, what they took, results with
// what changed, and the definition. The page has an address of its own, and follows a run that goes on.
func TestTwoRunsAreCompared(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick, "slow.yaml": slow})
	p := open(t, s)
	before := s.start(t, "climb")
	p.visit("/runs/" + before)
	p.sees("Why it stopped")
	better := strings.NewReplacer("max_iterations: 6", "max_iterations: 9", "so on", "so forth", "target: 50.0", "target: 8.0").Replace(quick)
	if err := os.WriteFile(filepath.Join(s.dir, "climb.yaml"), []byte(better), 0o600); err != nil {
		t.Fatal(err)
	}
	after := s.start(t, "climb")
	p.visit("/")
	p.until("both runs, ended", `document.querySelectorAll('.runs .st.good, .runs .st.warn').length === 2`)
	p.sees("Compare: choose two runs")
	choose := func(id string) {
		p.js(`document.querySelector('input[aria-label="Choose ` + id + ` to compare"]').click(); true`)
	}
	choose(after)
	p.sees("Compare: choose one more run")
	choose(before)
	p.press("Compare " + before + " and " + after) // the older one first
	p.until("its address", `location.pathname + location.search === '/compare?a=`+before+`&b=`+after+`'`)
	p.sees("Two runs compared")
	p.sees("A: Why it stopped")
	p.sees("Stopped after 6 iterations, without reaching 50.")
	p.sees("The score reached 8 in iteration 8.")
	p.until("the lines of both", `document.querySelectorAll('.chart .A line').length === 5 && document.querySelectorAll('.chart .B line').length === 7`)
	p.until("whose target is which", `['A target 50', 'B target 8'].every(w => [...document.querySelectorAll('.chart text')].some(e => e.textContent === w))`)
	p.until("how far they are apart", `[...document.querySelectorAll('.pair tr')].some(r => r.innerText.startsWith('Iterations') && r.innerText.includes('6 of 6') && r.innerText.includes('8 of 9 +2'))`)
	p.until("what changed in the result", `[...document.querySelectorAll('ins')].map(i => i.innerText).join('|').includes('8') && [...document.querySelectorAll('del')].some(d => d.innerText.includes('6'))`)
	p.until("what changed in the definition", `[...document.querySelectorAll('.diff .add')].some(d => d.innerText.includes('max_iterations: 9'))`)
	p.until("texts that can be read", overlaps+` === ''`)
	p.accessible("compare")
	p.press("Swap A and B")
	p.until("the other address", `location.search === '?a=`+after+`&b=`+before+`'`)
	p.until("the other order", `document.querySelectorAll('.chart .A line').length === 7`)
	p.press("Table")
	p.until("a score that leads to its iteration", `document.querySelector('.tablebox a[href="/runs/`+before+`#6"]')?.innerText === '6'`)
	p.accessible("compared-as-table")

	live := s.start(t, "slow")
	p.visit("/compare?a=" + before + "&b=" + live)
	p.sees("It still runs.")
	p.until("two scores of the run that goes on", `document.querySelectorAll('.chart .B rect.pt, .chart .B rect.best').length > 2`)
	s.post(t, "/runs/"+live+":cancel", map[string]any{})
	p.seesNot("It still runs.")
	p.press("Português")
	p.sees("Duas execuções comparadas")
	p.visit("/compare")
	p.sees("Escolha duas execuções na lista.")
	p.visit("/compare?a=" + before + "&b=r_none")
	p.sees("r_none")
}
