// SPDX-License-Identifier: Apache-2.0

package webui_test

import "testing"

// dressed has names and colors for people, and says what no person should see as it is.
const dressed = `name: dressed
display_name: The dressed loop
color: orange
max_iterations: 2
sub_agents:
  - {name: say, display_name: "The speaker", color: "#2040c0", text: "a \u001b[31mred\u001b[0m word\u2028and \u202Eevil", output_key: words}
  - {name: plain, set: {n: "1"}}
`

// U11, T6: a run has the names and colors of its definition, and nothing in it that cannot be seen or that
// turns the direction of its text; the raw events show that as JSON does.
func TestARunHasItsNamesAndColors(t *testing.T) {
	s := serve(t, map[string]string{"dressed.yaml": dressed})
	p := open(t, s)
	id := s.start(t, "dressed")
	p.visit("/runs/" + id + "#1/say/output")
	p.sees("Why it stopped")
	p.until("the run's name and color", `document.querySelector('h1').innerText === 'The dressed loop' && document.querySelector('h1 .dot').style.background === 'orange' && document.title.includes('The dressed loop')`)
	p.until("the step's", `(() => { const row = document.querySelector('[data-key="dressed[1]/say"]'); return row?.innerText.includes('The speaker') && row.querySelector('.dot').style.background === 'rgb(32, 64, 192)' })()`)
	p.until("none of the other step's", `(() => { const row = document.querySelector('[data-key="dressed[1]/plain"]'); return row?.innerText.includes('plain') && !row.querySelector('.dot') })()`)
	p.until("its name in the inspector", `document.querySelector('.insp h2')?.innerText === 'The speaker'`)
	for where, at := range map[string]string{"the result": ".result .prose", "the step": ".insp .prose"} {
		p.until(where+" without what cannot be seen", `document.querySelector(`+quote(at)+`)?.textContent === 'a red word\nand evil'`)
	}
	p.js(`document.querySelector('#tab-state').click()`)
	p.until("the value without", `document.querySelector('.insp .changes ins')?.textContent === 'a red word\nand evil'`)
	p.js(`document.querySelector('#tab-raw').click()`)
	p.until("all of it, escaped", `['\\u001b[31m', '\\u2028', '\\u202e'].every(c => document.querySelector('.insp .raw')?.textContent.includes(c)) && !/[\u001b\u2028\u202e]/.test(document.querySelector('.insp .raw').textContent)`)
	p.accessible("dressed")
}
