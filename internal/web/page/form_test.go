// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// choose takes an option of the list with a label.
func (t *tab) choose(label, option string) {
	t.Helper()
	find := `(() => { const l = [...document.querySelectorAll('label')].find(l => l.offsetParent !== null && l.innerText.trim().split('\n')[0].toLowerCase() === ` + quote(strings.ToLower(label)) +
		`); const s = l && (l.control || l.querySelector('select')); return s && [...s.options].some(o => o.text === ` + quote(option) + `) ? s : null })()`
	t.until("a list "+label+" with "+option, `!!`+find)
	t.js(`(() => { const s = ` + find + `; s.value = [...s.options].find(o => o.text === ` + quote(option) +
		`).value; s.dispatchEvent(new Event('change', {bubbles: true})); return true })()`)
}

// reads waits until a file of the folder has some texts.
func (t *tab) reads(name string, want ...string) {
	t.Helper()
	var text []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		text, _ = os.ReadFile(filepath.Join(t.site.dir, name))
		has := true
		for _, w := range want {
			has = has && strings.Contains(string(text), w)
		}
		if has {
			return
		}
	}
	t.Fatalf("%s lacks one of %q:\n%s", name, want, text)
}

// lacks waits until a file of the folder does not have a text.
func (t *tab) lacks(name, unwanted string) {
	t.Helper()
	var text []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		text, _ = os.ReadFile(filepath.Join(t.site.dir, name))
		if len(text) > 0 && !strings.Contains(string(text), unwanted) {
			return
		}
	}
	t.Fatalf("%s has %q:\n%s", name, unwanted, text)
}

// shows waits until the form has, or has not, a field with a label.
func (t *tab) shows(label string, is bool) {
	t.Helper()
	t.until(label+" to be as it should",
		`[...document.querySelectorAll('.formset label')].some(l => l.offsetParent !== null && l.innerText.trim().toLowerCase() === `+
			quote(strings.ToLower(label))+`) === `+map[bool]string{true: "true", false: "false"}[is])
}

// U1, U2, U3, U4, U7, U11, U12: an agent is made in a form, with its type, and used as a step of another;
// what a loop has is there if it is one.
func TestTypesAndReuse(t *testing.T) {
	s := serve(t, nil)
	p := open(t, s)
	p.visit("/definitions")
	p.press("New agent…")
	p.until("a loop", `document.querySelector('dialog select[name=type]').selectedOptions[0].text === 'Loop agent' && !!document.querySelector('dialog [name=kind]')`)
	p.fill("Name", "greeter")
	p.choose("Type", "text")
	p.until("no loop", `!document.querySelector('dialog [name=kind]')`)
	p.press("Create")
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	p.shows("Max iterations", false)
	p.fill("Text", "Hello {{user_input}}")
	p.fill("Description", "Greets whoever comes")
	p.fill("Output key", "greeting")
	p.press("Save")
	p.saved()
	p.reads("greeter.yaml", "type: template", "Hello {{user_input}}", "output_key: greeting")

	p.visit("/definitions")
	p.press("New agent…")
	p.fill("Name", "party")
	p.press("nothing")
	p.press("Create")
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	for field, example := range map[string]string{
		"name": "content_improver", "description": "Improves a text", "goal": "A clear and convincing text", "instructions": "Write about {{user_input}}",
	} {
		p.until("an example for "+field, `document.querySelector('#f-root-`+field+`')?.placeholder.startsWith(`+quote(example)+`)`)
	}
	for _, field := range []string{"Type", "Name", "Display name", "Description", "Goal", "Instructions", "Model", "Color", "Max iterations", "Score"} {
		p.shows(field, true)
	}
	p.fill("Color", "orange")
	p.fill("Display name", "The party")
	p.press("Add a step…")
	p.choose("Kind", "agent of this folder")
	p.until("the other definition", `document.querySelector('dialog select[name=file]')?.value === 'greeter.yaml'`)
	p.js(`document.querySelector('dialog[open] form').requestSubmit()`)
	p.until("the step", `!!document.querySelector('[data-step="greeter"]')`)
	p.addStep("guest", "text")
	p.fill("max iterations", "2")
	p.press("Save")
	p.saved()
	p.reads("party.yaml", "color: orange", "display_name: The party", "ref: greeter.yaml", "name: guest")
	p.press("Run")
	p.fill("Request", "Ana")
	p.js(`document.querySelector('dialog form').requestSubmit()`)
	p.until("the run's page", `location.pathname.startsWith('/runs/')`)
	p.sees("at a limit")
	p.sees("greeter")

	// Another type takes away what it has not, and asks before that.
	p.visit("/definitions/party")
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	p.choose("Type", "sequence")
	p.sees("Make it a sequence?")
	p.sees("max_iterations")
	p.press("Change the type")
	p.shows("Max iterations", false)
	p.sees("Once, in this order")
	p.press("Save")
	p.saved()
	p.reads("party.yaml", "type: sequential", "ref: greeter.yaml")
	p.choose("Type", "Loop agent")
	p.shows("Max iterations", true)
	p.sees("Each iteration, in this order")
	p.press("Open greeter")
	p.press("Open greeter.yaml")
	p.until("the other form", `location.pathname === '/definitions/greeter'`)
	p.sees("Greets whoever comes")
	p.accessible("text")
}

// U4, U5, U6, U7, U8, U9, U11: the order of the steps is that of the list, by the keyboard too; each step
// shows whether it may stop the loop, what it writes, and whether it gives the result; a loop has its
// callbacks, delays and what an error does to it.
func TestStepsOfALoop(t *testing.T) {
	s := serve(t, map[string]string{"story.yaml": `name: story
max_iterations: 2
sub_agents:
  - {name: judge, instructions: "Judge {{draft?}}", output_key: verdict}
  - {name: teller, text: "once upon a time", output_key: draft}
`})
	p := open(t, s)
	p.visit("/definitions/story")
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	p.until("the steps in their order", `[...document.querySelectorAll('[data-step]')].map(s => s.dataset.step).join() === 'judge,teller'`)
	p.js(`(() => { document.querySelector('[data-step="teller"] .hand').focus(); return true })()`)
	p.do(chromedp.KeyEvent(kb.ArrowUp, chromedp.KeyModifiers(chromedp.ModifierAlt)))
	p.until("the other order", `[...document.querySelectorAll('[data-step]')].map(s => s.dataset.step).join() === 'teller,judge'`)
	p.until("the focus where it was", `document.activeElement === document.querySelector('[data-step="teller"] .hand')`)

	p.until("no step that may stop", `![...document.querySelectorAll('[data-step] .tag')].some(t => t.innerText.includes('may stop'))`)
	p.press("Open judge")
	p.shows("Can exit loop", true)
	p.shows("Output key", true)
	p.js(`document.querySelector('[data-step="judge"] [id$=can_exit_loop]').click()`)
	p.until("a step that may stop", `document.querySelector('[data-step="judge"] .bar1').innerText.includes('may stop')`)
	p.until("what it writes", `document.querySelector('[data-step="judge"] .bar1').innerText.includes('→ verdict')`)

	p.press("Add a step…")
	p.press("final answer: runs once, after the loop")
	p.until("the dialog", `document.querySelector('dialog[open] input[type=checkbox]').checked`)
	p.js(`(() => { const d = document.querySelector('dialog[open]'), s = d.querySelector('select[name=kind]'); s.value = 'template'; s.dispatchEvent(new Event('change', {bubbles: true})); d.querySelector('input[name=step]').value = 'publish'; d.querySelector('form').requestSubmit(); return true })()`)
	p.until("the star", `!!document.querySelector('[data-step="publish"] .star')`)
	p.fill("Text", "The end: {{draft}}")

	p.js(`document.querySelectorAll('.formset > .panel:last-child details').forEach(d => d.open = true)`)
	for _, field := range []string{"Callbacks", "Iteration delay", "Delay before", "Delay after", "Continue on error", "On error"} {
		p.shows(field, true)
	}
	p.until("a switch", `document.querySelector('#f-root-continue_on_error').type === 'checkbox'`)
	p.fill("Iteration delay", "2s")
	p.press("Save")
	p.saved()
	p.reads("story.yaml", "iteration_delay: 2s", "can_exit_loop: true", "output_key: loop_output")
}

// U1, LOOP 34: before a run, the page says what an iteration is expected to cost, with the provider's cache and
// without it, and of which day the prices are.
func TestTheEditorSaysWhatIterationsCost(t *testing.T) {
	s := serve(t, map[string]string{"paid.yaml": "name: paid\nmax_iterations: 5\nmodel: openai/gpt-5-mini\nsub_agents:\n" +
		"  - name: write\n    max_tokens: 100\n    can_exit_loop: true\n    instructions: \"" + strings.Repeat("a rule of the house ", 400) + "{{text?}}\"\n    output_key: text\n"})
	p := open(t, s)
	p.visit("/definitions/paid")
	p.until("the iterations", `[...document.querySelectorAll('#expected tbody tr')].map(r => r.innerText.split('\t')[0].trim()).join() === 'paid,Iteration 1,Iteration 2,Iteration 3,Iteration 5,all 5'`)
	p.until("a first one without the cache, and later ones with it",
		`(() => { const of = n => [...document.querySelectorAll('#expected tbody tr')][n].querySelectorAll('td')[2].innerText; return of(1) === '0' && of(2) === '2,176' })()`)
	p.sees("list price of 2026-10-16")
	p.sees("what the models answer")
	p.accessible("expected")
}
