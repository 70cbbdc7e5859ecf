// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/server"
)

// The page lists the schedules of the folder, with how their last runs ended and why, and pauses and continues them.
func TestSchedulesAreOnThePage(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick, "schedules.yaml": `schedules:
  - {name: often, definition: climb, every: 1s}
  - {name: yearly, definition: climb, cron: "0 2 1 1 *", timezone: Europe/Berlin}
`}, func(cfg *server.Config) { cfg.Schedules = true })
	if err := s.server.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := open(t, s)
	p.visit("/definitions")
	p.sees("0 2 1 1 * Europe/Berlin")
	p.until("a run that has ended, and why", `/often@20\d+T\d+Z/.test(document.body.innerText) && /at a limit/.test(document.body.innerText) && /iterations/.test(document.querySelector('.schedules').innerText)`)
	p.press("Pause yearly")
	p.sees("paused by local")
	p.accessible("schedules")
	p.picture("schedules")
	p.press("Continue yearly")
	p.seesNot("paused by local")

	text := "schedules: [{name: often, definition: climb, evry: 1s}]\n"
	if err := os.WriteFile(filepath.Join(s.dir, "schedules.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.sees("unknown field \"evry\"") // the page asks again by itself
	p.sees("yearly")                 // the last valid file is in force
}
