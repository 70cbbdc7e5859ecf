// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"testing"
)

// The terminal and the page write a duration, a count, a score and an amount of money alike. The cases are those of
// TestOneFigureHasOneForm in internal/values/brief.
func TestFiguresOfThePageAreThoseOfTheTerminal(t *testing.T) {
	cases, err := os.ReadFile("../../values/brief/testdata/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil)
	p := open(t, s)
	p.visit("/")
	wrong, err := eval[[]string](p, `Promise.all([import('/format.js'), import('/words.js')]).then(([f, w]) => {
		const forms = {...f, 'off by': v => f.offBy(8.1, v), size: f.bytes}
		const wrong = []
		for (const lang of ['en', 'pt']) {
			w.setLang(lang)
			for (const c of `+string(cases)+`) {
				const got = forms[c.kind](c.value), want = c[lang] || c.en
				if (got !== want) wrong.push(lang + ' ' + c.kind + ' ' + c.value + ' is ' + got + ', want ' + want)
			}
		}
		return wrong
	})`)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}
