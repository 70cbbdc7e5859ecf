// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"go.yaml.in/yaml/v4"
)

// types writes into the field with an id as a person does, and stays in it.
func (t *tab) types(id, value string) {
	t.Helper()
	t.until("the field "+id, `!!document.getElementById(`+quote(id)+`)`)
	t.js(`(() => { const f = document.getElementById(` + quote(id) +
		`); f.focus(); f.setSelectionRange(f.value.length, f.value.length); return true })()`)
	t.do(chromedp.KeyEvent(value))
}

// erases deletes the last characters of the field that has the focus.
func (t *tab) erases(n int) {
	t.Helper()
	t.do(chromedp.KeyEvent(strings.Repeat(kb.Backspace, n)))
}

// stays waits until the field with an id has a value, and the focus.
func (t *tab) stays(id, value string) {
	t.Helper()
	t.until("the focus in "+id, `document.activeElement.id === `+quote(id)+` && document.activeElement.value === `+quote(value))
}

func (t *tab) ctrlS() {
	t.Helper()
	t.do(chromedp.KeyEvent("s", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

const notSaved = `![...document.querySelectorAll('.head .st')].some(s => s.innerText.trim() === 'saved')`

// U4, U12: what is typed into a field counts at once. The head does not call it saved, and Ctrl+S within the
// field saves it; the field keeps the focus and what is written in it.
func TestTypedCountsAtOnce(t *testing.T) {
	s := serve(t, map[string]string{"story.yaml": `name: story
max_iterations: 2
score: {key: height}
sub_agents:
  - {name: teller, text: "once upon a time", output_key: draft}
  - {name: judge, set: {height: "3.0"}}
`})
	p := open(t, s)
	p.visit("/definitions/story")
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	p.saved()

	p.types("f-root-goal", "A story that a child likes")
	p.until("it is not called saved", notSaved)
	p.ctrlS()
	p.saved()
	p.reads("story.yaml", "goal: A story that a child likes")
	p.stays("f-root-goal", "A story that a child likes")

	// What is taken back at once is gone too.
	p.types("f-root-description", "x")
	p.erases(1)
	p.ctrlS()
	p.saved()
	p.lacks("story.yaml", "description")
	p.types("f-root-description", "Tells")
	p.ctrlS()
	p.saved()
	p.reads("story.yaml", "description: Tells")

	// A part of a field counts as well.
	p.types("f-root-score-target", "25")
	p.ctrlS()
	p.saved()
	p.reads("story.yaml", "target: 25")
	p.erases(2)
	p.ctrlS()
	p.saved()
	p.lacks("story.yaml", "target")

	// A step keeps its place and the focus while its name is written.
	p.press("Open teller")
	p.types("f-sub_agents_0_-name", "_two")
	p.stays("f-sub_agents_0_-name", "teller_two")
	p.ctrlS()
	p.saved()
	p.reads("story.yaml", "name: teller_two")
	p.stays("f-sub_agents_0_-name", "teller_two")

	// A value that cannot be written yet is not saved, is not lost, and says why.
	p.press("Open judge")
	p.types("f-sub_agents_1_-set", "{")
	p.until("why it is not written", `document.getElementById('f-sub_agents_1_-set-bad')?.innerText.includes('not in the text yet')`)
	p.until("it is not called saved", notSaved)
	p.ctrlS()
	p.sees("set is not in the text yet")
	p.until("it is not called saved", notSaved)
	p.erases(1)
	p.until("it is as it was", `!document.getElementById('f-sub_agents_1_-set-bad')?.innerText`)
	p.saved()
}

// unfolds opens the list in which the field with an id stands.
func (t *tab) unfolds(id string) {
	t.Helper()
	t.until("the field "+id, `(() => { const d = document.getElementById(`+quote(id)+
		`)?.closest('details'); if (d) d.open = true; return !!d })()`)
}

// keys types text one key at a time into whatever has the focus, with a pause after each.
func (t *tab) keys(text string, pause time.Duration) {
	t.Helper()
	for _, r := range text {
		t.do(chromedp.KeyEvent(string(r)))
		time.Sleep(pause)
	}
}

// U4, U12: whatever the speed of the typist and of the browser, the editor of the text keeps every key in its place,
// and a field under "More fields", which moves once it is set, keeps the focus until it is left.
func TestKeysAreKeptInOrder(t *testing.T) {
	for _, pause := range []time.Duration{0, 30 * time.Millisecond, 60 * time.Millisecond, 150 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			s := serve(t, map[string]string{"story.yaml": "goal: A\nname: story\nmax_iterations: 2\nsub_agents:\n  - {name: teller, text: " +
				"hello, output_key: draft}\n"})
			p := open(t, s)
			p.visit("/definitions/story")
			p.saved()
			p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
			call(p, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 20})

			// The editor, at the end of its first line.
			p.js(`(() => { document.querySelector('.yaml').shadowRoot.querySelector('.cm-content').focus(); return true })()`)
			p.do(chromedp.KeyEvent(kb.End))
			p.keys(" short text that is kept", pause)
			p.ctrlS()
			p.saved()
			p.reads("story.yaml", "goal: A short text that is kept\nname: story\n")
			call(p, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 1})

			p.press("Open teller")
			p.unfolds("f-sub_agents_0_-description")
			p.js(`(() => { document.getElementById('f-sub_agents_0_-description').focus(); return true })()`)
			p.keys("Writes the advertisement", pause)
			p.stays("f-sub_agents_0_-description", "Writes the advertisement")
			p.ctrlS()
			p.saved()
			p.reads("story.yaml", "description: Writes the advertisement")
			p.stays("f-sub_agents_0_-description", "Writes the advertisement")
		})
	}
}

// U4: the schema of an answer is written as JSON, and stands in the file as it was meant.
func TestOutputSchemaIsWrittenAsJSON(t *testing.T) {
	s := serve(t, map[string]string{"judge.yaml": "name: judge\nmodel: openai/gpt-5-mini\nmax_iterations: 2\nsub_agents:\n  - " +
		"{name: critic, instructions: Judge it., can_exit_loop: false, output_key: verdict}\n"})
	p := open(t, s)
	p.visit("/definitions/judge")
	p.saved()
	p.press("Open critic")
	p.unfolds("f-sub_agents_0_-output_schema")
	p.until("a text area", `document.getElementById('f-sub_agents_0_-output_schema')?.tagName === 'TEXTAREA'`)
	p.types("f-sub_agents_0_-output_schema", `{"type": "object", "properties": {"score": {"type": "number"}}}`)
	p.ctrlS()
	p.saved()
	text, err := os.ReadFile(filepath.Join(s.dir, "judge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Steps []struct {
			Schema struct {
				Type       string
				Properties map[string]struct{ Type string }
			} `yaml:"output_schema"`
		} `yaml:"sub_agents"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if got := file.Steps[0].Schema; got.Type != "object" || got.Properties["score"].Type != "number" {
		t.Errorf("the file is\n%s", text)
	}
}
