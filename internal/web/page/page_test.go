// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/server"
)

// slow is a loop with a score whose step takes a while, so that it can be watched.
const slow = `# A comment that stays.
name: climb
description: Climbs until it is high enough
max_iterations: 300
state: {n: 0}
score: {key: height, target: 500.0}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: say, text: "Step <b>{{n}}</b> & so on", output_key: words, delay_after: 300ms}
  - {name: measure, set: {height: "double(state.n)"}}
`

const quick = `# A comment that stays.
name: climb
description: Climbs until it is high enough
max_iterations: 6
state: {n: 0}
score: {key: height, target: 50.0}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: say, text: "Step <b>{{n}}</b> & so on", output_key: words}
  - {name: measure, set: {height: "double(state.n)"}}
`

const asking = `name: consent
max_iterations: 2
sub_agents:
  - {name: boss, question: "May we go on?", output_key: may}
  - {name: done, text: "may: {{may}}", output_key: out}
`

// post sends JSON to the API and returns the answer.
func (s *site) post(t *testing.T, path string, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/v1"+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("POST %s: %s %s %v", path, res.Status, answer, err)
	}
	var v map[string]any
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatalf("POST %s: %s: %v", path, answer, err)
	}
	return v
}

func (s *site) start(t *testing.T, name string) string {
	t.Helper()
	id, _ := s.post(t, "/runs", map[string]any{"definition": name})["run"].(string)
	if id == "" {
		t.Fatal("the run has no ID")
	}
	return id
}

// U1, U10, U12, M16: a loop is built in the form from nothing, run, watched, paused and resumed.
func TestBuildAndRun(t *testing.T) {
	s := serve(t, nil)
	p := open(t, s)
	p.visit("/definitions")
	p.sees("No definition in this folder yet.")
	p.press("New agent…")
	p.fill("Name", "story")
	p.press("nothing")
	p.press("Create")
	p.until("the editor", `location.pathname === '/definitions/story' && !!document.querySelector('.yaml').shadowRoot?.querySelector('.cm-content')`)
	p.fill("goal", "A story that a child likes")
	p.until("the goal in the text", `document.querySelector('.yaml').shadowRoot.querySelector('.cm-content').innerText.includes('goal: A story')`)
	p.addStep("teller", "text")
	p.addStep("counter", "expression")
	p.fill("set", "{counter: 'double(size(state.teller))'}")
	p.press("Open teller") // which closes the other
	p.fill("text", "once upon a time")
	p.fill("max iterations", "3")
	p.fill("score", "counter")
	p.press("Parts of score")
	p.fill("target", "100")
	p.until("the target in the text", `document.querySelector('.yaml').shadowRoot.querySelector('.cm-content').innerText.includes('target: 100')`)
	p.press("Save")
	p.saved()
	text, err := os.ReadFile(filepath.Join(s.dir, "story.yaml"))
	if err != nil || !strings.Contains(string(text), "once upon a time") || !strings.Contains(string(text), "key: counter") {
		t.Fatalf("the file is %s, %v", text, err)
	}
	p.js(`delete Crypto.prototype.randomUUID`) // as over plain http from another machine
	p.press("Run")
	p.fill("Request", "a cat")
	p.js(`document.querySelector('dialog form').requestSubmit()`)
	p.until("the run's page", `location.pathname.startsWith('/runs/')`)
	p.sees("at a limit")
	p.sees("once upon a time")
	p.sees("a cat")
	p.sees("Why it stopped")
	p.press("Runs")
	p.sees("story")
	p.sees("1 run")
	p.press("Own criterion")
	p.sees("No run matches")
	p.press("At a limit")
	p.sees("1 run")
}

// saved waits until the page says that its text is on the disk.
func (t *tab) saved() {
	t.Helper()
	t.until("it to be saved", `[...document.querySelectorAll('.head .st')].some(s => s.innerText.trim() === 'saved')`)
}

// addStep adds a step of a kind.
func (t *tab) addStep(name, kind string) {
	t.Helper()
	t.press("Add a step…")
	t.until("the dialog", `!!document.querySelector('dialog[open] input[name=step]')`)
	t.do(chromedp.Focus(`dialog[open] input[name=step]`), chromedp.KeyEvent(name))
	t.js(`(() => { const s = document.querySelector('dialog[open] select[name=kind]'); s.value = [...s.options].find(o => o.innerText === ` +
		quote(kind) + `).value; s.dispatchEvent(new Event('change', {bubbles: true})); document.querySelector('dialog[open] form').requestSubmit(); return true })()`)
	t.until("the step "+name, `!!document.querySelector('[data-step='+JSON.stringify(`+quote(name)+`)+']')`)
}

// M9 to M15: a run is watched while it goes on, paused, loaded again, resumed and canceled; text of
// a model is never HTML.
func TestWatchAndControl(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": slow})
	p := open(t, s)
	id := s.start(t, "climb")
	p.visit("/runs/" + id)
	p.sees("running")
	p.sees("How it can stop")
	p.until("two scores", `document.querySelectorAll('.chart g[role=button]').length >= 2`)
	p.press("Pause")
	p.sees("paused")
	before := p.text()
	p.do(chromedp.Reload(), chromedp.WaitVisible("main"))
	p.sees("paused")
	if !strings.Contains(before, "Iteration 1") || !strings.Contains(p.text(), "Iteration 1") {
		t.Error("the iterations are gone after a reload")
	}
	p.press("Resume")
	p.sees("running")
	p.visit("/runs/" + id + "#1/say/output") // a step has an address
	p.do(chromedp.Reload(), chromedp.WaitVisible("main"))
	p.until("the step", `document.querySelector('[data-key$="[1]/say"]')?.getAttribute('aria-selected') === 'true'`)
	p.sees("Step <b>1</b> & so on")
	p.js(`document.querySelector('#tab-state').click()`)
	p.until("the address of the tab", `location.hash === '#1/say/state'`)
	p.press("Cancel…")
	p.sees("Resume continues it later")
	p.press("Cancel the run")
	p.sees("canceled")
	p.press("Resume") // as the command does
	p.sees("running")
}

// marks is a script in which an agent answers with marks, one after another.
func marks(agent string, all ...float64) string {
	var text strings.Builder
	text.WriteString("answers:\n")
	for _, m := range all {
		fmt.Fprintf(&text, "  - {agent: %s, text: \"%v\"}\n", agent, m)
	}
	return text.String()
}

// noisy is a loop whose judge is asked twice about each version.
const noisy = `name: noisy
max_iterations: 4
state: {n: 0}
score: {key: mark, judge: {step: judge, samples: 2}}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
`

// LOOP 14: a score of a judge has its error as a whisker in the chart, and in words beside it.
func TestScoresHaveTheirErrors(t *testing.T) {
	s := serve(t, map[string]string{"noisy.yaml": noisy, "script.yaml": marks("judge", 1.5, 1, 2.5, 2, 3.5, 3, 4.5, 4)})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "noisy"))
	p.until("four whiskers", `document.querySelectorAll('.chart .whisk').length === 4`)
	p.until("the best in the chart", `[...document.querySelectorAll('.chart text')].some(e => e.textContent === 'best 4.25 ± 0.31')`)
	p.until("the best among the figures", `document.querySelector('dl.keys').innerText.includes('4.25 ± 0.31')`)
	p.until("the best for a screen reader", `!!document.querySelector('.chart g[aria-label="Iteration 4, score 4.25 ± 0.31, best"]')`)
}

// The chart shows where a loop that had converged began another leg.
func TestLegsAreInTheChart(t *testing.T) {
	s := serve(t, map[string]string{"legs.yaml": `name: legs
max_iterations: 8
score: {key: n, min_delta: 0.5, patience: 2}
state: {n: 0}
on_plateau: [fresh]
sub_agents:
  - {name: count, set: {n: "state.n < 2 ? state.n + 1 : state.n"}}
`})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "legs"))
	p.until("a line where the leg begins", `document.querySelectorAll('.chart line.leg').length === 1`)
	p.until("its name", `[...document.querySelectorAll('.chart text')].some(e => e.textContent === 'leg 1')`)
	p.until("a point of the leg", `!!document.querySelector('.chart g[aria-label="Iteration 5, score 1, leg 1"]')`)
	p.until("no line from the version before", `document.querySelectorAll('.chart line.ln').length === 6`)
}

// A question is answered where it is asked, and a run is forked from an iteration.
func TestAnswerAndFork(t *testing.T) {
	s := serve(t, map[string]string{"consent.yaml": asking, "climb.yaml": quick})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "consent"))
	p.sees("May we go on?")
	p.press("Yes")
	p.sees("2 of 2")
	p.press("No")
	p.seesNot("asks you")

	id := s.start(t, "climb")
	p.visit("/runs/" + id)
	p.sees("at a limit")
	p.js(`[...document.querySelectorAll('.cps tr')].find(r => r.innerText.trim().startsWith('2')).querySelector('button').click()`)
	p.press("Fork")
	p.until("the fork's page", `location.pathname.startsWith('/runs/') && !location.pathname.endsWith(`+quote(id)+`)`)
	p.sees("forked from " + id)
	p.sees("at a limit")
	p.press("Fork…") // a number has to be one
	p.until("the dialog", `!!document.querySelector('dialog [name=iteration]')`)
	for value, refused := range map[string]string{"-1": "rangeUnderflow", "1.5": "stepMismatch", "e": "badInput"} {
		p.fill("After iteration", value)
		p.until(value+" to be refused", `document.querySelector('dialog [name=iteration]').validity.`+refused)
	}
}

// YAML with a mistake is underlined where it is, and mended by its fix; comments stay.
func TestEditYAML(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": strings.Replace(slow, "max_iterations", "max_iteratons", 1)})
	p := open(t, s)
	p.visit("/definitions/climb")
	p.sees("1 error")
	p.sees("unknown field")
	p.until("the underline", `!!document.querySelector('.yaml').shadowRoot.querySelector('.cm-lintRange-error')`)
	p.press("Use max_iterations")
	p.sees("valid")
	p.press("Save")
	p.saved()
	text, err := os.ReadFile(filepath.Join(s.dir, "climb.yaml"))
	if err != nil || string(text) != slow {
		t.Errorf("the file is\n%s\n%v", text, err)
	}
}

// saving is a loop whose score hardly improves in the end.
const saving = `# A comment that stays.
name: polish
max_iterations: 8
state: {n: 0}
score: {key: quality, min_delta: 0.3}
sub_agents:
  - {name: count, set: {n: state.n + 1, quality: "10.0 - 8.0 / double(state.n + 1)"}}
`

// A threshold is moved over past runs, from the run's page to the definition.
func TestBacktestPage(t *testing.T) {
	s := serve(t, map[string]string{"polish.yaml": saving})
	p := open(t, s)
	p.visit("/backtest")
	p.sees("No run has ended with a score yet.")
	for range 2 {
		p.visit("/runs/" + s.start(t, "polish"))
		p.sees("Why it stopped")
	}
	p.press("Back-test…")
	p.until("the page of back-tests", `location.pathname === '/backtest'`)
	p.until("both runs", `document.querySelectorAll('.bt tbody tr:not(.grp)').length === 2`)
	p.sees("No difference")
	p.until("the value that was", `document.querySelector('#bt-value').value === '0.3'`)
	// From the keyboard: each arrow is a level, and the end of the slider loses results.
	key := func(name string) {
		p.js(`document.querySelector('#bt-slider').focus()`)
		p.do(chromedp.KeyEvent(name))
	}
	key(kb.ArrowRight)
	p.until("another value", `document.querySelector('#bt-value').value !== '0.3'`)
	key(kb.End)
	p.sees("Would have lost something")
	p.until("a figure of losses", `document.querySelector('.balance .down')?.innerText === '2'`)
	key(kb.Home)
	p.seesNot("Would have lost something")
	p.fill("score.min_delta", "1")
	p.sees("With 1 in place of 0.3")
	p.accessible("backtest")
	p.press("Put 1 into the file…")
	p.sees("The change")
	p.until("the new line", `[...document.querySelectorAll('dialog .diff .add')].some(d => d.innerText.includes('min_delta: 1'))`)
	p.press("Take it into the draft")
	p.press("Save")
	p.saved()
	text, err := os.ReadFile(filepath.Join(s.dir, "polish.yaml"))
	if err != nil || !strings.Contains(string(text), "# A comment that stays.") || !strings.Contains(string(text), "min_delta: 1") {
		t.Errorf("the file is\n%s\n%v", text, err)
	}
	p.press("Português")
	p.press("Reteste")
	p.sees("Escolha uma definição")
	p.visit("/backtest?definition=polish&field=max_iterations")
	p.sees("Iterações, no máximo")
	p.picture("backtest-portuguese")
}

// A server with a token: the page asks for it, and what it saves is the whole log.
func TestTokenAndExport(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick}, func(c *server.Config) { c.Token = "open sesame, please" })
	p := open(t, s)
	saved := t.TempDir()
	call(p, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: saved, EventsEnabled: new(true),
		BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID})
	done := make(chan string, 1)
	if err := chromedp.Listen(p.ctx, func(ev any) {
		if ev, ok := ev.(*browser.EventDownloadProgress); ok && ev.State != "inProgress" {
			select {
			case done <- string(ev.State):
			default:
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	id := s.start(t, "climb")
	p.visit("/runs/" + id)
	p.fill("Token", "wrong")
	p.press("Open")
	p.until("an empty field", `document.querySelector('#token')?.value === ''`)
	p.sees("The server does not take this token.")
	p.fill("Token", s.token)
	p.press("Open")
	p.sees("at a limit")
	p.press("Export")
	select {
	case how := <-done:
		if how != "completed" {
			t.Fatal("the download was", how)
		}
	case <-time.After(patience):
		t.Fatal("nothing was saved:", p.text())
	}
	log, err := runlog.ReadFile(filepath.Join(saved, id+".jsonl"), nil)
	if err != nil || log.Head.ID != id || log.Len() == 0 || !log.Hashed() {
		t.Errorf("what was saved: %+v, %v", log, err)
	}
}

// judged is a loop whose judge is a model, and which runs a command.
const judged = `name: judged
max_iterations: 8
timeout: 30m
score: {key: review, target: 8.0, min_delta: 0.1, patience: 2}
on_regression: rollback
sub_agents:
  - {name: writer, model: openai/none, instructions: "Improve {{draft?}}", output_key: draft}
  - {name: check, command: [touch, made], output_key: seen}
  - {name: judge, model: openai/none, instructions: "Score {{draft}}", output_key: review}
`

// A definition is tried as it stands in the editor, without a model and without a trace.
func TestTryPage(t *testing.T) {
	s := serve(t, map[string]string{"judged.yaml": judged})
	p := open(t, s)
	p.visit("/definitions/judged")
	p.until("the editor", `!!document.querySelector('.yaml').shadowRoot?.querySelector('.cm-content')`)
	p.press("Try")
	p.sees("The score reached 8 in iteration 4.")
	p.sees("writer, judge (model); check (command)")
	p.until("a chart of four scores", `document.querySelectorAll('.try .chart g[role=button]').length === 4`)
	p.press("Gets worse")
	p.press("Try")
	p.sees("The score hardly improved any more after iteration 4.")
	p.sees("5.8 undone")
	p.accessible("try")
	p.fill("max iterations", "2")
	p.sees("This was the text before the last change.")
	p.sees("This server starts no programs for its clients") // the text could not be run here, but tried
	p.press("Never enough")
	p.press("Try")
	p.sees("Stopped after 2 iterations, without reaching 8.")
	p.press("Português")
	p.press("Experimentar")
	p.sees("Parou depois de 2 iterações, sem chegar a 8.")
	p.picture("portuguese")
	p.visit("/")
	p.sees("Ainda não há execuções.")
	files, err := os.ReadDir(s.dir)
	if err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}

// asked is a loop whose models answer from a script.
const asked = `name: refine
model: scripted/script.yaml
max_iterations: 2
sub_agents:
  - {name: writer, instructions: "Write it better than {{draft?}}", output_key: draft}
  - {name: critic, instructions: "Judge {{draft}}", output_key: feedback, tools: [exit_loop]}
  - {name: plain, set: {n: "1"}}
`

const script = `answers:
  - {agent: writer, text: The first draft.}
  - {agent: critic, text: Too short.}
  - {agent: writer, text: The second draft.}
  - {agent: critic, calls: [{name: exit_loop, args: {reason: good}}]}
`

// The inspector shows what a step has sent to its model.
func TestPromptAsSent(t *testing.T) {
	s := serve(t, map[string]string{"refine.yaml": asked, "script.yaml": script})
	p := open(t, s)
	id := s.start(t, "refine")
	p.visit("/runs/" + id)
	p.sees("Why it stopped")
	p.visit("/runs/" + id + "#2/critic/prompt")
	p.do(chromedp.Reload(), chromedp.WaitVisible("main"))
	p.sees("As sent, rebuilt from the log")
	p.sees("Judge The second draft.")
	p.sees("exit_loop")
	p.accessible("prompt")
	p.visit("/runs/" + id + "#1/plain/prompt")
	p.do(chromedp.Reload(), chromedp.WaitVisible("main"))
	p.sees("No model was asked.")
}

// Every page, in light, in dark and on a phone: axe finds nothing, nothing scrolls sideways, and
// both languages are there.
func TestEveryPage(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick, "consent.yaml": asking})
	p := open(t, s)
	id := s.start(t, "climb")
	waits := s.start(t, "consent")
	p.visit("/runs/" + id)
	p.sees("at a limit")
	p.until("the chart", `document.querySelectorAll('.chart g[role=button]').length > 2`)
	p.accessible("run")
	p.do(chromedp.EmulateViewport(390, 844))
	p.until("the switches of language and theme in one line on a phone", `(() => {
		const [language, theme] = ['.tools [lang]', '.tools [aria-label="Theme: system"]'].map(n => document.querySelector(n).getBoundingClientRect())
		return theme.width >= 24 && theme.top === language.top && theme.right <= 390
	})()`)
	p.do(chromedp.ResetViewport())
	p.visit("/runs/" + waits)
	p.sees("May we go on?")
	p.accessible("question")
	p.visit("/")
	p.sees("climb")
	p.accessible("runs")
	p.visit("/definitions")
	p.sees("consent")
	p.accessible("definitions")
	p.visit("/definitions/climb")
	p.until("the editor", `!!document.querySelector('.yaml').shadowRoot?.querySelector('.cm-content')`)
	p.sees("Before it runs")
	p.accessible("definition")
	p.press("Português")
	p.accessible("portuguese")
	p.sees("Definições")
	p.visit("/runs/" + id)
	p.sees("Por que parou")
	p.sees("O laço nunca chegou ao seu critério.")
	p.picture("run-portuguese")
}
