// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// tall has steps far from each other.
var tall = "name: tall\nmodel: openai/x\nmax_iterations: 2\nsub_agents:\n" +
	"  - name: first\n    output_key: a\n    instructions: |\n" + strings.Repeat("      a rule of the house\n", 60) +
	"  - name: second\n    output_key: b\n    instructions: |\n" + strings.Repeat("      another rule\n", 60) +
	"  - name: third\n    text: the end\n"

// inSight says that a text of the editor can be seen, and is in the line of the cursor.
func inSight(text string) string {
	return `(() => {
		const box = document.querySelector('.yaml'), line = box.shadowRoot?.querySelector('.cm-activeLine')
		if (!line?.innerText.includes(` + quote(text) + `)) return false
		const r = line.getBoundingClientRect(), b = box.getBoundingClientRect()
		return r.top >= b.top && r.bottom <= b.bottom
	})()`
}

// U12: one step is open at a time, again after the page was loaded anew, and the text beside the form shows the step
// that somebody is in.
func TestOneStepIsOpenAndTheTextFollows(t *testing.T) {
	s := serve(t, map[string]string{"tall.yaml": tall})
	p := open(t, s)
	p.visit("/definitions/tall")
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	opened := func(names string) {
		t.Helper()
		p.until("only "+names+" to be open", `[...document.querySelectorAll('[data-step]')].filter(s => s.querySelector('.stepbody')).map(s => s.dataset.step).join() === `+quote(names))
	}
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.press("Open third")
	opened("third")
	p.until("the text of the third", inSight("name: third"))
	p.press("Open second")
	opened("second")
	p.until("the text of the second", inSight("name: second"))
	p.js(`(() => { const f = document.querySelector('[data-step="first"] .hand'); f.focus(); return true })()`)
	p.until("the text of the first, which has the focus", inSight("name: first"))
	opened("second")
	p.types("f-sub_agents_1_-name", "_b")
	opened("second_b") // a step stays open while its name is written
	p.until("the text of what is written", inSight("name: second_b"))
	p.do(chromedp.Reload(), chromedp.WaitVisible("main"))
	opened("second_b")
	p.until("its text", inSight("name: second_b"))
	p.press("Close second_b")
	opened("")
	p.do(chromedp.Reload(), chromedp.WaitVisible("main"))
	p.until("the steps", `document.querySelectorAll('[data-step]').length === 3`)
	opened("")
}

// U4: the fields that few people set are in groups by what they are for, each once.
func TestFieldsAreInGroups(t *testing.T) {
	s := serve(t, map[string]string{"tall.yaml": tall})
	p := open(t, s)
	p.visit("/definitions/tall")
	p.press("Open first")
	p.js(`document.querySelectorAll('details.more').forEach(d => d.open = true); true`)
	group := func(where, purpose, heading, fields string) {
		t.Helper()
		p.until(heading+" with its fields", `(() => {
			const g = document.querySelector(`+quote(where)+` + ' [data-purpose=`+purpose+`]')
			return g?.querySelector('h3').innerText === `+quote(heading)+` && `+quote(fields)+`.split(' ').every(f => g.querySelector('[id$="-' + f + '-doc"]'))
		})()`)
	}
	group(`[data-step="first"]`, "model", "The model", "context temperature thinking tools")
	group(`[data-step="first"]`, "failure", "If something fails", "on_error retry")
	group(".formset > .panel:last-child", "time", "Time", "iteration_timeout delay_before")
	p.until("each field once", `(ids => ids.length === new Set(ids).size)([...document.querySelectorAll('.formset [id]')].map(e => e.id))`)
	if n, err := eval[int](p, `Math.max(...[...document.querySelectorAll('[data-purpose=other]')].map(g => g.querySelectorAll(':scope > .fields > label').length), 0)`); err != nil || n > 6 {
		t.Errorf("%d fields in no group, %v", n, err)
	}
	p.accessible("groups")
}

// U10: what ends a loop is switched on and off in sentences; what is off has no value in the text.
func TestEndsAreSwitchedOn(t *testing.T) {
	s := serve(t, map[string]string{"tall.yaml": tall})
	p := open(t, s)
	p.visit("/definitions/tall")
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	p.until("one switch on", `[...document.querySelectorAll('.cond')].filter(l => l.querySelector('input').checked).map(l => l.innerText.trim()).join() === 'after a number of iterations; after 5 if this is off'`)
	p.sees("none; a step may, if “can exit loop” is on in it")
	p.press("when it goes in circles")
	p.press("when the score is good enough, or hardly improves")
	p.until("the focus in the score", `document.activeElement.id === 'f-root-score'`)
	p.do(chromedp.KeyEvent("a"))
	p.press("after failures in a row")
	p.until("its value", `document.getElementById('f-root-max_consecutive_failures')?.value === '3'`)
	p.types("f-root-max_consecutive_failures", "\b4") // the field stays while it is empty
	p.stays("f-root-max_consecutive_failures", "4")
	p.accessible("ends")
	p.ctrlS()
	p.saved()
	p.reads("tall.yaml", "no_progress: true", "score: a", "max_consecutive_failures: 4", "max_iterations: 2")
	p.press("after a number of iterations; after 5 if this is off")
	p.press("when it goes in circles")
	p.until("no field for what is off", `!document.getElementById('f-root-no_progress')`)
	p.ctrlS()
	p.saved()
	p.lacks("tall.yaml", "no_progress")
	p.lacks("tall.yaml", "max_iterations")
}
