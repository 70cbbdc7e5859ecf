// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// U11: the rows of runs say what was asked for, on a phone too, and the search finds it.
func TestRunsAreFoundByTheirInput(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	p := open(t, s)
	input := "up the <b>north</b> face\nwithout a rope, and slowly, as the weather of this week is bad"
	first, _ := s.post(t, "/runs", map[string]any{"definition": "climb", "input": input})["run"].(string)
	s.start(t, "climb")
	p.visit("/")
	p.sees("up the <b>north</b> face without a rope")
	p.accessible("inputs")
	p.do(chromedp.EmulateViewport(860, 600))
	p.until("every column of a narrow window",
		`(() => { const t = document.querySelector('.runs'), c = t?.parentElement; return !!t && t.scrollWidth <= c.clientWidth })()`)
	p.do(chromedp.EmulateViewport(390, 844))
	p.until("it in a row of a phone",
		`(() => { const r = document.querySelector('.runs .input')?.getBoundingClientRect(); return !!r && r.height > 10 && `+
			`r.right <= 390 })()`)
	p.do(chromedp.ResetViewport())
	p.fill("Search", "NORTH")
	p.until("that run alone",
		`document.querySelectorAll('a[data-run]').length === 1 && document.querySelector('a[data-run]').dataset.run === `+quote(first))
}
