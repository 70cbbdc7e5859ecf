// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// racing is a race of two judged loops whose scores are within the judge's noise.
const racing = `name: search
type: parallel
race: {slices: [2 iterations, rest]}
output_key: found
state: {n: 0}
sub_agents:
  - name: plain
    display_name: "<i>Plain</i>"
    max_iterations: 3
    score: {key: mark, judge: {step: plain_judge, samples: 2}}
    sub_agents:
      - {name: plain_count, set: {n: state.n + 1}}
      - {name: plain_say, text: "plain {{n}}", output_key: draft}
      - {name: plain_judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
  - name: bold
    max_iterations: 3
    score: {key: mark, judge: {step: bold_judge, samples: 2}}
    sub_agents:
      - {name: bold_count, set: {n: state.n + 1}}
      - {name: bold_say, text: "bold {{n}}", output_key: draft}
      - {name: bold_judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
`

// The page shows which loop has won a race and why, with all scores, and every loop of it in the tree.
func TestARaceIsShownWithItsDecision(t *testing.T) {
	s := serve(t, map[string]string{"search.yaml": racing, "script.yaml": marks("plain_judge", 1.4, 0.9, 2.4, 1.9) +
		strings.TrimPrefix(marks("bold_judge", 1.5, 1, 2.5, 2, 3.5, 3), "answers:\n")})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "search"))
	p.sees("Why it stopped")
	p.sees("bold wins and goes on. It has the best score, 2.25 ± 0.35, within the judge's noise of plain.")
	p.until("the scores of both", `[...document.querySelectorAll('table.race tbody tr')].map(r => r.innerText.replace(/\s+/g, ' ').trim()).join('; ') ===
		"<i>Plain</i> within the judge's noise 2.15 ± 0.35 2 of 2; bold wins 2.25 ± 0.35 2 of 2"`)
	p.until("the loops in the tree", `['search', 'search/plain', 'search/bold'].every(k => document.querySelector('[data-key="' + k + '"]'))`)
	p.until("the winner in the tree", `document.querySelector('[data-key="search/bold"]').innerText.includes('wins') && document.querySelector('[data-key="search/bold"]').innerText.includes('2.25 ± 0.35')`)
	p.js(`document.querySelector('[data-key="search/plain"] .fold').click(); true`)
	p.until("an iteration of the other", `document.querySelector('[data-key="search/plain[2]"]')?.innerText.includes('2.15 ± 0.35')`)
	p.until("the chart of the winner", `document.querySelectorAll('.chart g[role=button]').length === 3`)
	p.accessible("race")
	p.js(`[...document.querySelectorAll('table.race button')][0].click(); true`)
	p.until("the chart of the other", `document.querySelectorAll('.chart g[role=button]').length === 2`)
	p.js(`document.querySelector('[data-key="search"]').click(); true`)
	p.until("the decision in the inspector", `document.querySelector('.insp table.race tbody')?.rows.length === 2`)
	p.press("Português")
	p.sees("bold vence e continua.")
	p.seesNot("wins and goes on")
}

// wavering is a loop whose judge does not tell its second version from the first.
const wavering = `name: wavering
max_iterations: 3
state: {n: 0}
score: {key: mark, judge: {step: judge, samples: 2}}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
`

// LOOP 14: in the tree and among the checkpoints a judge's score has its error too; a version that the judge does not
// tell from the one before says so, and so do two runs that are compared.
func TestScoresInTheTreeHaveTheirErrors(t *testing.T) {
	s := serve(t, map[string]string{"wavering.yaml": wavering, "script.yaml": marks("judge", 5.5, 5, 5.6, 5.1, 9.5, 9)})
	p := open(t, s)
	a, b := s.start(t, "wavering"), s.start(t, "wavering")
	p.visit("/runs/" + a)
	p.sees("Why it stopped")
	row := func(n string) string {
		return `document.querySelector('[data-key="wavering[` + n + `]"]').innerText`
	}
	p.until("the error", row("2")+`.includes('5.35 ± 0.35') && `+row("3")+`.includes('9.25 ± 0.32')`)
	p.until("the noise", row("2")+`.includes("within the judge's noise") && !`+row("3")+`.includes('noise')`)
	p.until("the error of a checkpoint", `document.querySelector('.cps').innerText.includes('5.35 ± 0.35')`)
	const fork = `document.querySelectorAll('.cps .fork')[0]`
	p.until("no column of buttons", `getComputedStyle(`+fork+`).opacity === '0'`)
	p.js(fork + `.focus(); true`)
	p.until("the one with the focus", `getComputedStyle(`+fork+`).opacity === '1'`)
	p.do(chromedp.EmulateViewport(390, 844))
	p.until("the score whole on a phone", `(() => { const c = document.querySelector('[data-key="wavering[2]"] .num'); return c.scrollWidth <= c.clientWidth + 1 })()`)
	p.do(chromedp.ResetViewport())
	p.visit("/compare?a=" + a + "&b=" + b)
	p.sees("9.25 ± 0.32")
}
