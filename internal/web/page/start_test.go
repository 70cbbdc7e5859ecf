// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refrain-dev/refrain/server"
)

// create makes a new agent from the dialog that is open.
func (t *tab) create(name, from string) {
	t.Helper()
	t.fill("Name", name)
	if from != "" {
		t.press(from)
	}
	t.press("Create")
	t.until("the form of "+name, `location.pathname === '/definitions/`+name+`' && !!document.querySelector('.formset') && !!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
}

// problems waits until the page has checked the text, and returns what it says is wrong with it.
func (t *tab) problems() string {
	t.Helper()
	t.until("the check", `['valid', 'error', 'errors'].some(w => document.querySelector('.panel.clip header .st')?.innerText.includes(w))`)
	found, err := eval[string](t, `[...document.querySelectorAll('.problems li')].map(l => l.innerText).join('\n')`)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// with is a server with a model for the agents that have none, which may start programs.
func with(model string) func(*server.Config) {
	return func(c *server.Config) {
		c.AllowCommands = true
		c.Getenv = func(name string) string {
			if name == "REFRAIN_MODEL" {
				return model
			}
			return ""
		}
	}
}

// U1, U2: "New agent…" is on the first screen, and in it while it is empty; what a loop starts from is one choice of a
// list; after it the focus is in the form.
func TestFirstScreen(t *testing.T) {
	s := serve(t, nil)
	p := open(t, s)
	p.visit("/")
	p.until("New agent… in the head and in the empty page", `['.row .push', '.empty'].every(at => [...document.querySelectorAll(at + ' button')].some(b => b.innerText.trim() === 'New agent…'))`)
	p.accessible("first")
	p.press("New agent…")
	p.until("a list of choices", `!document.querySelector('dialog .sw') && document.querySelectorAll('dialog .pick input[type=radio]').length === 4`)
	p.until("the type", `document.querySelector('dialog select[name=type]').selectedOptions[0].text === 'Loop agent'`)
	p.accessible("new")
	p.create("story", "")
	p.until("the focus in the name", `document.activeElement.id === 'f-root-name'`)
	p.visit("/definitions")
	p.press("New agent…")
	p.fill("Name", "story")
	p.press("Create")
	p.sees("There is story already.")
}

// U1: what the page makes has no mistake and no warning, and can be saved as it is.
func TestTemplatesAreWithoutWarnings(t *testing.T) {
	s := serve(t, nil, with("openai/x"), func(c *server.Config) { c.Getenv = getenv(c.Getenv, "OPENAI_API_KEY", "k") })
	p := open(t, s)
	for name, from := range map[string]string{"writing": "a writer and a critic", "testing": "tests and a fixer", "polling": "ask until it is so"} {
		p.visit("/")
		p.press("New agent…")
		p.create(name, from)
		if found := p.problems(); found != "" {
			t.Errorf("%s: %s", from, found)
		}
		p.press("Save")
		p.saved()
		p.reads(name+".yaml", "name: "+name)
	}
}

func getenv(before func(string) string, name, value string) func(string) string {
	return func(asked string) string {
		if asked == name {
			return value
		}
		return before(asked)
	}
}

// U1: the template "tests and a fixer" mends a program whose tests fail.
func TestFixerMends(t *testing.T) {
	s := serve(t, map[string]string{
		"go.mod": "module sum\n\ngo 1.26\n", "main.go": "package sum\n\nfunc sum(a, b int) int { return a - b }\n",
		"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Error(sum(1, 2))\n\t}\n}\n",
		"script.yaml": "answers:\n  - text: \"package sum\\n\\nfunc sum(a, b int) int { return a + b }\\n\"\n",
	}, with("scripted/script.yaml"))
	p := open(t, s)
	p.visit("/")
	p.press("New agent…")
	p.create("mend", "tests and a fixer")
	p.fill("Model", "scripted/script.yaml")
	p.press("Run")
	p.js(`document.querySelector('dialog form').requestSubmit()`)
	p.until("the run's page", `location.pathname.startsWith('/runs/')`)
	p.sees("all tests pass")
	if text, err := os.ReadFile(filepath.Join(s.dir, "main.go")); err != nil || !strings.Contains(string(text), "a + b") {
		t.Errorf("the program is\n%s %v", text, err)
	}
}

// U2, U4: a server that starts no programs does not offer them, and says at once that a text with a command is not
// taken. A file that is there already can be run.
func TestNoPrograms(t *testing.T) {
	s := serve(t, map[string]string{"shell.yaml": "name: shell\nmax_iterations: 1\nsub_agents:\n  - {name: hello, command: [echo, hello]}\n"})
	p := open(t, s)
	p.visit("/")
	p.press("New agent…")
	p.until("the template is off", `document.querySelector('dialog input[value=fix]').disabled`)
	p.sees("this server starts no programs. Whoever starts the server can allow them.")
	p.until("the type is off", `[...document.querySelectorAll('dialog select[name=type] option')].find(o => o.value === 'command').disabled`)
	p.create("talk", "ask until it is so")
	p.press("Add a step…")
	p.until("the kind is off", `[...document.querySelectorAll('dialog select[name=kind] option')].find(o => o.value === 'command').text === 'command: this server starts no programs'`)

	p.visit("/definitions/shell")
	p.until("it can be run as it is", `[...document.querySelectorAll('.head button')].some(b => b.innerText.trim() === 'Run' && !b.disabled)`)
	p.fill("Goal", "Greet")
	p.sees("Run: fix 1 error first")
	p.press("Open hello")
	p.until("why, at the field", `document.getElementById('f-sub_agents_0_-command-bad')?.innerText.includes('starts no programs')`)
}

// U6: a step that has the tool exit_loop may end the loop: its switch is on, and switched off takes the tool away.
func TestExitTool(t *testing.T) {
	s := serve(t, map[string]string{"story.yaml": `name: story
model: openai/x
sub_agents:
  - {name: writer, instructions: "Write", output_key: draft}
  - {name: critic, instructions: "Judge {{draft}}", tools: [exit_loop]}
  - {name: publish, text: "{{draft}}", output_key: loop_output}
`})
	p := open(t, s)
	p.visit("/definitions/story")
	p.until("the mark", `document.querySelector('[data-step="critic"] .bar1')?.innerText.includes('may stop') && !document.querySelector('[data-step="writer"] .bar1').innerText.includes('may stop')`)
	p.press("Open critic")
	p.until("the switch is on", `document.querySelector('#f-sub_agents_1_-can_exit_loop')?.checked`)
	p.js(`document.querySelector('#f-sub_agents_1_-can_exit_loop').click()`)
	p.until("no mark", `!document.querySelector('[data-step="critic"] .bar1').innerText.includes('may stop')`)
	p.ctrlS()
	p.saved()
	p.lacks("story.yaml", "exit_loop")

	// U8: what goes out of an agent is drawn at it.
	p.until("the ports", `['sub-agents', 'critic', 'publish', 'callbacks'].every(w => document.querySelector('.ports').innerText.includes(w))`)
	p.js(`[...document.querySelectorAll('.ports button')].find(b => b.innerText === 'none, add one').click()`)
	p.until("the field of the callbacks", `document.activeElement.id === 'f-root-callbacks'`)

	// U9: a new step comes before the one that gives the result.
	p.addStep("polish", "text")
	p.until("the order", `[...document.querySelectorAll('[data-step]')].map(s => s.dataset.step).join() === 'writer,critic,polish,publish'`)
	p.accessible("ports")
}

// U4: the form says what a field is for in this kind of agent, and that no model is there, before a run; a run that is
// refused says why.
func TestModelBeforeTheRun(t *testing.T) {
	s := serve(t, map[string]string{
		"script.yaml": "answers: [{text: Hello}]\n",
		"tool.yaml":   "name: tool\nmodel: scripted/script.yaml\ninstructions: Answer\ntools: [lookup]\n",
	}, with(""))
	p := open(t, s)
	p.visit("/")
	p.press("New agent…")
	p.create("story", "")
	p.until("the model is missing", `document.getElementById('f-root-model-bad')?.innerText.includes('no model is given for writer, critic') && document.getElementById('f-root-model-bad').innerText.includes('REFRAIN_MODEL')`)
	p.sees("Run: see to the model first")
	p.until("the text for a loop", `document.getElementById('f-root-model-doc').innerText.includes('model of all agents inside') && document.getElementById('f-root-timeout-doc').innerText.includes('time limit of the loop')`)
	p.fill("Model", "openai/gpt-5-mini")
	p.until("its key is missing", `document.getElementById('f-root-model-bad')?.innerText.includes('needs OPENAI_API_KEY')`)
	p.fill("Model", "scripted/script.yaml")
	p.until("it can be run", `[...document.querySelectorAll('.head button')].some(b => b.innerText.trim() === 'Run' && !b.disabled)`)

	p.visit("/definitions/tool")
	p.press("Run")
	p.until("the dialog", `!!document.querySelector('dialog form')`)
	p.js(`document.querySelector('dialog form').requestSubmit()`)
	p.until("the reason", `document.querySelector('dialog [role=alert]')?.innerText.includes('lookup')`)
}

// U4: texts below the fields, problems and how a loop ends are in Portuguese when the page is.
func TestFormInPortuguese(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": strings.Replace(quick, "max_iterations: 6", "max_iterations: 6\nresult: nowhere", 1), "good.yaml": quick})
	p := open(t, s)
	p.visit("/definitions/climb")
	p.sees("goal of the loop")
	p.press("Português")
	p.until("the explanations", `document.getElementById('f-root-goal-doc')?.innerText.includes('objetivo do laço')`)
	p.sees("nomeia a chave")
	p.seesNot("which no agent writes")
	p.visit("/definitions/good")
	p.sees("depois de 6 iterações")
	p.accessible("portuguese")
}

// Two tabs on one definition do not write over each other's draft without a word.
func TestTwoTabs(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	one := open(t, s)
	one.visit("/definitions/climb")
	two := one.another()
	two.visit("/definitions/climb")
	one.fill("Goal", "Higher")
	two.sees("open in another tab")
	two.fill("Goal", "Lower")
	two.until("the draft of the first is kept", `JSON.parse(localStorage.getItem('draft:climb')).text.includes('goal: Higher')`)
	two.press("See the difference…")
	two.accessible("tabs")
	two.press("Keep mine")
	two.seesNot("open in another tab")
	two.until("its own draft", `JSON.parse(localStorage.getItem('draft:climb')).text.includes('goal: Lower')`)
	one.sees("open in another tab")
	one.press("See the difference…")
	one.press("Take theirs")
	one.until("the other's goal", `document.querySelector('#f-root-goal').value === 'Lower'`)
	one.seesNot("open in another tab")
}

// another is another tab of the same browser.
func (t *tab) another() *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(t.ctx)
	t.Cleanup(cancel)
	second := &tab{T: t.T, ctx: ctx, site: t.site}
	if err := chromedp.Listen(ctx, second.hear); err != nil {
		t.Fatal(err)
	}
	return second
}
