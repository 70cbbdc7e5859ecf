// SPDX-License-Identifier: Apache-2.0

package webui_test

import "testing"

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
