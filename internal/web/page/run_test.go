// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// wordy is a loop with a long expression for a score, figures of many digits, and no text result.
const wordy = `name: wordy
max_iterations: 8
state: {n: 0}
score: {expr: "state.n > 30 ? double(state.n) * 15000.0 : 120000.0 - 90000.0 / (double(state.n) * double(state.n))", target: 121000.0}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
`

// Whoever opens a run has the focus on it, whatever fragment is put into the open page is opened, and
// the page is left from the middle of it, for the change that a finding proposes, without a fault.
func TestARunIsOpenedAndLeft(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	p := open(t, s)
	id := s.start(t, "climb")
	p.visit("/")
	p.until("the run", `!!document.querySelector('a[data-run]')`)
	p.js(`document.querySelector('a[data-run]').click(); true`)
	p.sees("Why it stopped")
	p.until("the focus on the page", `document.activeElement.id === 'main'`)
	for _, at := range []struct{ hash, name, tab string }{{"2/say/state", "say", "State"}, {"3/count/events", "count", "Events"}, {"4", "Iteration 4", "Output"}} {
		p.js(`location.hash = ` + quote(at.hash))
		p.until(at.hash+" to be open", `document.querySelector('.insp h2')?.innerText === `+quote(at.name)+` &&
			document.querySelector('.insp [role=tab][aria-selected=true]').innerText.startsWith(`+quote(at.tab)+`) &&
			document.querySelector('[data-key][aria-selected=true]').dataset.key.startsWith('climb[`+at.hash[:1]+`]')`)
	}
	p.visit("/runs/" + id)
	p.sees("See the change")
	p.js(`new Promise(done => { scrollTo(0, 600); requestAnimationFrame(() => { [...document.querySelectorAll('a')].find(a => a.innerText === 'See the change').click(); done() }) })`)
	p.sees("The change")
	p.js(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`)
	p.until("the focus on the page or its dialog", `!!document.activeElement.closest('main, dialog')`)
}

// overlaps names texts of the chart that lie on each other or outside of it.
const overlaps = `(() => {
	const box = document.querySelector('.chart').closest('.panel').getBoundingClientRect()
	const all = [...document.querySelectorAll('.chart text')].map(t => [t.textContent, t.getBoundingClientRect()])
	const bad = all.filter(([, r]) => r.left < box.left || r.right > box.right).map(([t]) => t + ' is cut')
	for (const [i, [a, r]] of all.entries()) for (const [b, q] of all.slice(i + 1))
		if (r.left < q.right - 1 && q.left < r.right - 1 && r.top < q.bottom - 2 && q.top < r.bottom - 2) bad.push(a + ' on ' + b)
	return bad.join(', ')
})()`

// U11: what stands in a run's page stands there once and whole, on a phone too.
func TestARunIsReadWhole(t *testing.T) {
	s := serve(t, map[string]string{"wordy.yaml": wordy})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "wordy"))
	p.sees("It handed back no text.")
	p.until("the sentence, once", `document.querySelector('main').innerText.split('without reaching 121,000').length === 2`)
	for _, look := range looks {
		p.do(chromedp.EmulateViewport(look.width, look.height))
		p.until("the chart at its size", `document.querySelector('.chart').getBoundingClientRect().right <= innerWidth`)
		if bad, err := eval[string](p, overlaps); err != nil || bad != "" {
			t.Errorf("%s: in the chart, %s %v", look.name, bad, err)
		}
		cut, err := eval[string](p, `[...document.querySelectorAll('.head .acts > *, .panel > header .seg button')].filter(b => {
			const r = b.getBoundingClientRect(), box = b.closest('.acts, header').getBoundingClientRect()
			return r.right > Math.min(innerWidth, box.right) || r.left < box.left || r.bottom > box.bottom || r.top < box.top
		}).map(b => b.innerText).join(', ')`)
		if err != nil || cut != "" {
			t.Errorf("%s: %s cut off; %v", look.name, cut, err)
		}
	}
	p.press("Show its state")
	p.until("the state", `document.querySelector('#tab-state').getAttribute('aria-selected') === 'true'`)
	p.until("its value", `document.querySelector('.insp .changes')?.innerText.includes('8')`)
	p.until("each action in words", `[...document.querySelectorAll('.head .acts > *')].every(b => b.innerText.trim())`)
	p.press("Remove…")
	p.sees("Remove wordy?")
}

// LOOP 31: a fork says after which iteration it begins, and takes another definition and other limits; one
// that does not fit says why, and makes no run.
func TestAForkIsChosen(t *testing.T) {
	other := strings.NewReplacer("name: say", "name: tell", "so on", "so forth").Replace(quick)
	s := serve(t, map[string]string{"climb.yaml": quick, "forth.yaml": strings.Replace(quick, "so on", "so forth", 1), "other.yaml": other})
	p := open(t, s)
	id := s.start(t, "climb")
	p.visit("/runs/" + id)
	p.sees("at a limit")
	from := func(n string) {
		p.js(`[...document.querySelectorAll('.cps tr')].find(r => r.innerText.trim().startsWith(` + quote(n) + `)).querySelector('button').click()`)
	}
	from("2")
	p.sees("Fork after iteration 2, score 2")
	p.choose("Definition", "other")
	p.press("Fork")
	p.sees("No fork was made")
	p.choose("Definition", "forth")
	p.fill("Iterations in all", "4")
	p.accessible("fork")
	p.press("Fork")
	p.until("the fork's page", `location.pathname.startsWith('/runs/') && !location.pathname.endsWith(`+quote(id)+`)`)
	p.sees("forked from " + id)
	p.sees("Stopped after 4 iterations")
	p.sees("Step <b>4</b> & so forth")
	p.press("compare them")
	p.sees("A: Why it stopped")
	p.until("the run first", `document.querySelector('.pair thead').innerText.indexOf(`+quote(id)+
		`) > 0 && document.querySelectorAll('.pair thead a')[0].href.endsWith(`+quote(id)+`)`)
	p.visit("/runs/" + id)
	p.sees("at a limit")
	from("0")
	p.sees("Fork before the first iteration")
	p.press("Fork")
	p.sees("forked from " + id)
	p.visit("/")
	p.until("three runs", `document.querySelectorAll('a[data-run]').length === 3`)
}

// M15: the active time goes on in the ledger as it does in the head, between two events too.
func TestActiveTimeIsOneFigure(t *testing.T) {
	s := serve(t, map[string]string{"waits.yaml": `name: waits
max_iterations: 2
timeout: 30m
sub_agents:
  - {name: say, text: "once", output_key: words, delay_after: 20s}
  - {name: end, set: {n: "1"}}
`})
	p := open(t, s)
	id := s.start(t, "waits")
	p.visit("/runs/" + id)
	p.until("the same figures, and then later ones", `(() => {
		const row = [...document.querySelectorAll('.ledger tr')].find(r => r.innerText.startsWith('Active time'))?.querySelector('.num').innerText
		const head = [...document.querySelectorAll('.keys > div')].find(d => d.innerText.startsWith('Active'))?.querySelector('dd').innerText
		return !!head && parseFloat(head) > 2 && row?.endsWith(' of 30m') && Math.abs(parseFloat(row) - parseFloat(head)) <= 1
	})()`)
	s.post(t, "/runs/"+id+":cancel", map[string]any{})
}

// M9: while a run is followed, the iteration under way is open; those before it fold, unless somebody has
// opened them.
func TestFollowingOpensWhatRuns(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": slow})
	p := open(t, s)
	id := s.start(t, "climb")
	p.visit("/runs/" + id)
	p.until("a later iteration, alone", `(() => {
		const open = [...document.querySelectorAll('.tree [aria-expanded=true]')].map(r => r.dataset.key)
		return open.length === 1 && !['climb[1]', 'climb[2]'].includes(open[0])
	})()`)
	s.post(t, "/runs/"+id+":cancel", map[string]any{})
}

// A run says how much of its input came from the provider's cache, and what that has saved; so does a step.
func TestARunSaysWhatTheCacheHasSaved(t *testing.T) {
	s := serve(t, map[string]string{
		"kept.yaml": "name: kept\nmax_iterations: 2\nmodel: scripted/script.yaml\nprices: {scripted: {input: 100, output: 1, cached_input: 10}}\n" +
			"sub_agents:\n  - {name: say, instructions: a, can_exit_loop: true}\n",
		"script.yaml": "answers: [{text: words, repeat: true, usage: {prompt: 2000, cached: 1240, output: 10}}]\n",
	})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "kept") + "#1/say/output")
	p.sees("Why it stopped")
	p.until("the share and the saving", `[...document.querySelectorAll('.keys div')].some(d => d.querySelector('dt').textContent === 'From the cache' && d.querySelector('dd').innerText === '62% 0.223 saved')`)
	p.until("the step's share", `document.querySelector('.insp .meta')?.innerText.includes('62% of it from the cache')`)
	p.accessible("kept")
}
