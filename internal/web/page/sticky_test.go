// SPDX-License-Identifier: Apache-2.0

package webui_test

import "testing"

// U12: the text of a definition stays in sight while its form is scrolled.
func TestTheTextStaysBesideTheForm(t *testing.T) {
	s := serve(t, map[string]string{"climb.yaml": quick})
	p := open(t, s)
	p.visit("/definitions/climb")
	p.until("the form", `!!document.getElementById('f-root-budget-on')`)
	p.until("the editor", `!!document.querySelector('.yaml')?.shadowRoot?.querySelector('.cm-content')`)
	p.js(`document.getElementById('f-root-budget-on').scrollIntoView(); true`)
	p.until("the text in sight", `scrollY > 500 && document.querySelector('.yaml').getBoundingClientRect().top >= 0`)
	p.accessible("sticky")
}
