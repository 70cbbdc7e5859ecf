// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"testing"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// A run of a file: its page works whole, and offers nothing that would change it.
func TestViewAFile(t *testing.T) {
	from := serve(t, map[string]string{"climb.yaml": quick, "consent.yaml": asking})
	runs := session.InMemoryService()
	read := func(id string) {
		t.Helper()
		res, err := http.Get(from.url + "/api/v1/runs/" + id + "/export")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		log, err := runlog.ReadFile("-", res.Body)
		if err != nil {
			t.Fatal(err)
		}
		run := log.Run()
		run.ID = id
		if err := run.Save(t.Context(), runs, lease.Key{AppName: "refrain", UserID: "user", SessionID: id}); err != nil {
			t.Fatal(err)
		}
	}
	done, asks := from.start(t, "climb"), from.start(t, "consent")
	p := open(t, from)
	p.visit("/runs/" + done)
	p.sees("at a limit")
	p.visit("/runs/" + asks)
	p.sees("May we go on?")
	read(done)
	read(asks)
	s := serve(t, nil, func(c *server.Config) { c.Service, c.Dir, c.ReadOnly = runs, "", true })
	p.site = s
	p.visit("/runs/" + done)
	p.sees("An exported run, to look at only.")
	p.sees("at a limit")
	p.sees("Why it stopped")
	p.sees("Checkpoints")
	p.until("the chart", `document.querySelectorAll('.chart g[role=button]').length > 2`)
	p.js(`document.querySelector('.chart g[role=button]').dispatchEvent(new MouseEvent('click', {bubbles: true})); true`)
	p.until("the iteration", `document.querySelector('.insp h2')?.innerText === 'Iteration 1'`)
	p.sees("Export")
	for _, name := range []string{"Pause", "Resume", "Fork…", "Fork", "Fork from here", "Cancel…", "Go on with more…", "Try the step again",
		"Remove", "Definitions"} {
		p.until("no "+name, `![...document.querySelectorAll('button, a')].some(b => (b.getAttribute('aria-label') || b.innerText.trim()) === `+quote(name)+`)`)
	}
	p.accessible("file")
	p.visit("/runs/" + asks)
	p.sees("May we go on?")
	p.until("no way to answer", `!document.querySelector('.askbox button')`)
	p.visit("/")
	p.sees("climb")
	p.seesNot("Run a loop")
}
