// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// gaining gains less in each iteration than its judge wavers.
const gaining = `name: gaining
max_iterations: 8
state: {n: 0}
score: {key: mark, min_delta: 0.1, patience: 2, judge: {step: judge, samples: 2}}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: judge, model: scripted/script.yaml, instructions: Mark it., output_key: mark}
`

// LOOP 14: where a run was made by earlier rules, the page of back-tests shows it by these or by today's.
func TestBacktestPageHasBothRules(t *testing.T) {
	store := session.InMemoryService()
	s := serve(t, map[string]string{"gaining.yaml": gaining,
		"script.yaml": marks("judge", 0.8, 0.3, 1.1, 0.6, 1.4, 0.9, 1.7, 1.2, 2, 1.5, 2.3, 1.8, 2.6, 2.1, 2.9, 2.4)}, func(c *server.Config) { c.Service = store })
	p := open(t, s)
	id := s.start(t, "gaining")
	p.visit("/runs/" + id)
	p.sees("Why it stopped")
	p.visit("/backtest?definition=gaining")
	p.sees("No difference")
	p.seesNot("Rules of today") // there is one version

	// The same run, as if it had been made by the first version of the rules.
	got, err := store.Get(t.Context(), &session.GetRequest{AppName: "refrain", UserID: "user", SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "refrain", UserID: "user", SessionID: "before"})
	if err != nil {
		t.Fatal(err)
	}
	for ev := range got.Session.Events().All() {
		old := *ev
		old.Seq = 0
		if m := old.Mark; m != nil && m.Kind == mark.KindLoopStarted {
			var plan map[string]any
			if err := m.Decode(&plan); err != nil {
				t.Fatal(err)
			}
			delete(plan, "rules")
			text, err := json.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			old.Mark = &mark.Mark{Kind: m.Kind, Data: text}
		}
		if err := store.AppendEvent(t.Context(), made.Session, &old); err != nil {
			t.Fatal(err)
		}
	}
	p.visit("/backtest?definition=gaining")
	p.sees("1 run was made by earlier rules about the scores of a judge.")
	p.sees("Would have lost something")
	p.accessible("rules")
	p.press("Rules of today")
	p.seesNot("Would have lost something")
	p.until("the choice in the address", `location.search.includes('rules=today') && document.querySelector('.seg [aria-pressed=true]').innerText === 'Rules of today'`)
	p.press("Rules of then")
	p.sees("Would have lost something")
}

// The choices of a back-test fit a phone, and look like fields rather than chosen cards; a definition shows the path of its file; texts of
// the page name no flags of the command line, which who reads them cannot give.
func TestPageFitsAndNamesFilesAndNoFlags(t *testing.T) {
	s := serve(t, map[string]string{"counts.yaml": "name: counts\nmax_iterations: 4\nscore: {key: n, min_delta_percent: 5}\nsub_agents: [{name: count, value: iteration, output_key: n}]\n"})
	if err := os.Mkdir(filepath.Join(s.dir, "bakery"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "bakery", "loop.yaml"), []byte("name: bread\ntext: hi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, s)
	id := s.start(t, "counts")
	p.do(chromedp.EmulateViewport(390, 844))
	p.visit("/runs/" + id)
	p.sees("Why it stopped")
	p.js(`localStorage.setItem('lang', 'pt'); true`) // its texts are the longest
	p.visit("/backtest?definition=counts")
	p.until("the field", `!!document.querySelector('#bt-field')`)
	p.until("the page to fit", `document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
	p.until("choices without a thick frame", `getComputedStyle(document.querySelector('#bt-field').parentElement).boxShadow === 'none'`)
	p.visit("/definitions/bakery")
	p.until("the path of the file", `[...document.querySelectorAll('.crumb, #h-yaml')].every(e => e.innerText.includes('bakery/loop.yaml'))`)
	p.until("no flags", `Promise.all(['en', 'pt'].map(l => import('/words/' + l + '.js'))).then(all => all.every(m => !/ --[a-z]/.test(JSON.stringify(m.default))))`)
}
