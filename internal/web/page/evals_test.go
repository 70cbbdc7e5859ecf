// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	evals "github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// An eval stands in the list with its verdict and its cost, and shows its cases with the largest loss first. A case leads to its runs
// side by side, and a run becomes a case of a file.
func TestEvalsAreSeenByCase(t *testing.T) {
	var store session.Service
	s := serve(t, map[string]string{"quick.yaml": quick}, func(cfg *server.Config) { store = cfg.Service })
	file := filepath.Join(t.TempDir(), "set.yaml")
	var text strings.Builder
	text.WriteString("repeat: 2\nchecks: [completed]\ncases:\n  - {id: gain, input: both, checks: [{contains: no}]}\n")
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		text.WriteString("  - {id: loss-" + id + ", input: say " + id + ", checks: [{contains: <i>yes</i>}]}\n")
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := cases.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	version := func(side, name, text string) evals.Version {
		p := &program.Program{Dir: s.dir, Root: s.dir}
		def, err := p.ReadOwn(name, program.Text("name: t\ntext: "+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		v, err := evals.NewVersion(name, p, def)
		if err != nil {
			t.Fatal(err)
		}
		v.Side = side
		return v
	}
	cfg := evals.Config{Supervisor: s.server.Supervisor(), Service: store, AppName: "refrain", UserID: "user", Owner: lease.Process(), LeaseTTL: patience}
	run := func(versions ...evals.Version) string {
		ev, err := evals.Start(t.Context(), cfg, &evals.Plan{Versions: versions, File: file, Hash: set.Hash(), Set: *set}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer ev.Close()
		if err := ev.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return ev.ID
	}
	two := run(version(evals.SideA, "new.yaml", `"no {{user_input}}"`), version(evals.SideB, "old.yaml", `"<i>yes</i> {{user_input}}"`))
	one := run(version(evals.SideA, "old.yaml", `"<i>yes</i> {{user_input}}"`))

	p := open(t, s)
	p.visit("/evals")
	p.sees("new.yaml against old.yaml")
	p.until("both verdicts", `(() => { const rows = [...document.querySelectorAll('.evals tbody tr')].map(r => r.innerText); `+
		`return rows.length === 2 && rows[0].includes(`+quote(one)+`) && rows[0].includes('failed') && `+
		`rows[1].includes(`+quote(two)+`) && rows[1].includes('worse') })()`)
	p.accessible("evals")
	p.press("new.yaml against old.yaml")
	p.until("its address", `location.pathname === '/evals/`+two+`'`)
	p.until("the largest losses first", `(() => { const ids = [...document.querySelectorAll('.cases tbody th')].map(r => r.innerText); `+
		`return ids.length === 9 && ids.slice(0, 8).every(id => id.startsWith('loss-')) && ids[8] === 'gain' })()`)
	p.until("text as text", `document.querySelector('.cases .because')?.innerText.includes('<i>yes</i>') && !document.querySelector('main i:not([class])')`)
	p.accessible("eval")
	p.press("loss-c")
	p.until("both runs", `location.pathname + location.search === '/compare?a=`+two+`.A.loss-c.1&b=`+two+`.B.loss-c.1'`)
	p.until("what both answered", `['no say c', '<i>yes</i> say c'].every(text => [...document.querySelectorAll('.resulttext .prose')].some(r => r.innerText === text))`)
	p.visit("/evals/" + one)
	p.press("gain")
	p.until("the run", `location.pathname === '/runs/`+one+`.A.gain.1'`)

	id := s.start(t, "quick")
	p.visit("/runs/" + id)
	p.press("Make a case…")
	p.accessible("make-a-case")
	p.fill("File of cases", "quick/mine.yaml")
	p.press("Make the case")
	p.sees("quick/mine.yaml has the case " + id + ".")
	made, err := cases.Open(filepath.Join(s.dir, "quick", "mine.yaml"))
	if err != nil || len(made.Cases) != 1 || made.Cases[0].ID != id {
		t.Errorf("the file has %+v (%v)", made, err)
	}
	p.press("Português")
	p.sees("quick/mine.yaml tem o caso")
	p.visit("/evals/" + two)
	p.sees("primeiro as maiores perdas de A")
	p.visit("/evals")
	p.sees("pior")
	p.visit("/evals/ev_none")
	p.sees("Não há tal avaliação")
}
