// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The pictures in the README: of a run, and of the form. make pictures writes them into doc.
func TestPictures(t *testing.T) {
	files := make(map[string]string)
	for name, from := range map[string]string{"bakery.yaml": "templates/refine/loop.yaml", "script.yaml": "templates/refine/script.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../../command/internal/writing", from))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = strings.Replace(string(text), "name: refine", "name: bakery", 1)
	}
	s := serve(t, files)
	id, _ := s.post(t, "/runs", map[string]any{"definition": "bakery", "input": "An advertisement for a bakery"})["run"].(string)
	p := open(t, s)
	p.do(chromedp.EmulateViewport(1280, 900))
	p.visit("/runs/" + id)
	p.sees("Why it stopped")
	p.until("the chart", `document.querySelectorAll('.chart g[role=button]').length === 3`)
	p.js(`document.querySelectorAll('.chart g[role=button]')[1].dispatchEvent(new MouseEvent('click', {bubbles: true})); true`)
	p.until("the iteration", `document.querySelector('.insp h2')?.innerText === 'Iteration 2'`)
	p.js(`document.querySelector('[data-key$="[2]/writer"]').click(); true`)
	p.until("what changed", `!!document.querySelector('.insp ins')`)
	p.js(`scrollTo(0, 0); document.activeElement.blur(); true`)
	p.shoot("run")
	p.visit("/definitions/bakery")
	p.sees("Before it runs")
	p.until("the editor", `!!document.querySelector('.yaml').shadowRoot?.querySelector('.cm-content')`)
	p.press("Open writer")
	p.until("the step", `!!document.querySelector('.stepbody')`)
	p.js(`scrollTo(0, 0); document.activeElement.blur(); true`)
	p.shoot("form")

	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"doc/run.png", "doc/form.png"} {
		shot, err := os.ReadFile(filepath.Join("../../..", name))
		if err != nil || len(shot) > 200_000 || !strings.Contains(string(readme), "("+name+")") {
			t.Errorf("%s: %d bytes, %v; it has to be small, and in the README", name, len(shot), err)
		}
		if _, err := png.Decode(bytes.NewReader(shot)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// shoot keeps what can be seen in the folder that REFRAIN_PICTURES names.
func (t *tab) shoot(name string) {
	t.Helper()
	dir := os.Getenv("REFRAIN_PICTURES")
	if dir == "" {
		return
	}
	shot, err := chromedp.Run(t.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
