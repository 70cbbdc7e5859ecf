// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An address that nobody can read, or that names what is not there, gets a page that says so.
func TestBadAddresses(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	p := open(t, s)
	p.visit("/#%zz")
	p.sees("No run yet.")
	p.visit("/definitions/climb?edit={bad")
	p.sees("The address asks for a change that cannot be read.")
	p.sees("Before it runs")
	p.visit("/definitions/nosuch")
	p.until("a title and what it is about", `/.+: .*nosuch/.test(document.querySelector('[role=alert]')?.innerText)`)
	p.visit("/runs/nosuch")
	p.sees("No such run")
	p.seesNot("Not connected")
}

// describe opens a definition and gives it a description.
func (t *tab) describe(name, description string) {
	t.Helper()
	t.visit("/definitions/" + name)
	t.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	t.fill("Description", description)
	t.until("a draft", `!!localStorage.getItem('draft:`+name+`')`)
}

// What another has written since is not lost: neither a save nor a draft that is opened again
// overwrites it, before a person has seen both and chosen.
func TestChangedOnDisk(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	p := open(t, s)
	file := filepath.Join(s.dir, "climb.yaml")
	another := func(comment string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Replace(quick, "A comment that stays", comment, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.describe("climb", "Mine")
	another("Theirs")
	p.press("Save")
	p.sees("The file has changed")
	p.until("the difference", `[...document.querySelectorAll('dialog .diff .del')].some(d => d.innerText.includes('# Theirs'))`)
	p.press("Back")
	p.reads("climb.yaml", "# Theirs", "Climbs until")
	p.visit("/definitions/climb") // the draft is older than the file, and stays so
	p.sees("The file has changed")
	p.press("Back")
	p.fill("Goal", "Up")
	p.press("Save")
	p.sees("The file has changed")
	p.accessible("changed")
	p.press("Overwrite")
	p.saved()
	p.reads("climb.yaml", "A comment that stays", "description: Mine", "goal: Up")

	// A save that is refused before a run is said in the dialog of the run.
	p.describe("climb", "Mine again")
	p.js(`window.real = fetch; window.fetch = (at, how) => how.method === 'PUT' ? Promise.resolve(new Response('{"title":"No room","detail":"the disk is full"}', {status: 507})) : real(at, how)`)
	p.press("Run")
	p.until("the dialog", `!!document.querySelector('dialog form')`)
	p.js(`document.querySelector('dialog form').requestSubmit()`)
	p.until("the reason", `document.querySelector('dialog [role=alert]')?.innerText === 'No room: the disk is full'`)
	p.press("Back")
	p.js(`window.fetch = real`)
	another("Others'")
	p.press("Run")
	p.until("the dialog", `!!document.querySelector('dialog form')`)
	p.js(`document.querySelector('dialog form').requestSubmit()`) // saves first
	p.sees("The file has changed")
	p.press("Take theirs")
	p.saved()
	p.until("their description", `document.querySelector('#f-root-description').value === 'Climbs until it is high enough'`)
	p.until("no draft", `!localStorage.getItem('draft:climb')`)
	p.fill("Goal", "Higher")
	p.press("Save")
	p.saved()
	p.reads("climb.yaml", "# Others'", "goal: Higher")

	p.fill("Goal", "Highest")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.press("Save")
	p.sees("The file was removed")
	p.press("Overwrite")
	p.saved()
	p.reads("climb.yaml", "# Others'", "goal: Highest")
}

// A draft that has no file yet is in the list, and keeps its name.
func TestDraftWithoutAFile(t *testing.T) {
	s := serve(t, nil)
	p := open(t, s)
	create := func() {
		t.Helper()
		p.visit("/definitions")
		p.press("New agent…")
		p.fill("Name", "story")
		p.press("Create")
	}
	create()
	p.until("the draft", `location.pathname === '/definitions/story' && !!localStorage.getItem('draft:story')`)
	create()
	p.sees("There is story already.")
	p.press("Back")
	p.sees("draft, kept in this browser")
	p.press("story")
	p.press("Discard…")
	p.sees("Discard the draft?")
	p.js(`document.querySelector('dialog .danger').click()`)
	p.until("the list", `location.pathname === '/definitions'`)
	p.sees("No definition in this folder yet.")
}
