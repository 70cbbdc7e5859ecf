// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
)

// offline are the conditions of a browser's network; the library has only the newer command, which not every Chromium knows.
type offline struct {
	Offline  bool    `json:"offline"`
	Latency  float64 `json:"latency"`
	Download float64 `json:"downloadThroughput"`
	Upload   float64 `json:"uploadThroughput"`
}

var emulateNetwork = cdp.Command[offline, cdp.Empty]{Method: "Network.emulateNetworkConditions"}

// away cuts the browser off from the server, or brings the server back.
func (t *tab) away(is bool) {
	t.Helper()
	call(t, emulateNetwork, offline{Offline: is, Download: -1, Upload: -1})
}

// M16, U12: what is typed while no server answers is kept, and sent when one does: the form of a definition, and
// the form that starts a run. Nothing says "Failed to fetch".
func TestTypedWhileTheServerIsAway(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	p := open(t, s)
	p.visit("/definitions/climb")
	p.saved()
	p.until("the form", `!!document.getElementById('f-root-goal')`)
	p.away(true)
	p.types("f-root-goal", "High enough")
	p.sees("What you have typed is kept here")
	p.until("the field in the draft", `JSON.parse(localStorage.getItem('draft:climb')).typed[0][0] === 'goal'`)
	p.away(false)
	p.seesNot("What you have typed is kept here")
	p.until("the goal in the text", `document.querySelector('.yaml').shadowRoot.querySelector('.cm-content').innerText.includes('goal: High enough')`)
	p.press("Save")
	p.saved()
	p.reads("climb.yaml", "goal: High enough")

	p.press("Run")
	p.away(true)
	p.fill("Request", "up the hill")
	p.js(`document.querySelector('dialog form button.primary').click(); true`)
	p.until("the form to say so", `document.querySelector('dialog[open]')?.innerText.includes('What you have typed is kept here')`)
	p.seesNot("Failed to fetch")
	p.accessible("away")
	p.away(false)
	p.until("the run", `location.pathname.startsWith('/runs/')`)
	p.sees("up the hill")

	// A form that is closed meanwhile sends nothing any more.
	p.visit("/definitions/climb")
	p.press("Run")
	p.away(true)
	p.js(`document.querySelector('dialog form button.primary').click(); true`)
	p.until("the form to say so", `document.querySelector('dialog[open]')?.innerText.includes('What you have typed is kept here')`)
	p.press("Back")
	p.away(false)
	p.seesNot("The server cannot be reached")
	p.visit("/")
	p.until("one run", `document.querySelectorAll('a[data-run]').length === 1`)
}
