// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/text/template"
)

// A text that grows without end stops at the limit, whether a value is large, or
// sections multiply what is in them.
// F11, T33
func TestLargeTextsAreNotMade(t *testing.T) {
	hundred := make([]any, 100)
	for i := range hundred {
		hundred[i] = 0
	}
	state := map[string]any{"half": strings.Repeat("x", template.MaxText/2), "l": hundred}
	long := strings.Repeat("long ", 200)
	lists := strings.Repeat("{{#l}}", 6) + long + strings.Repeat("{{/l}}", 6) // a million million times
	for text, ok := range map[string]bool{
		"{{half}}{{half}}": true, "{{half}} {{half}}": false, "{{half}}{{half}}{{half}}{{half}}": false, lists: false,
		strings.ReplaceAll(lists, long, "{{half}}"): false,
	} {
		tmpl, err := template.Parse(text, template.Options{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := tmpl.Fill(from(state))
		if ok {
			if err != nil || len(res.Text) != template.MaxText {
				t.Errorf("%s: %d bytes, %v", text, len(res.Text), err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") || !strings.Contains(err.Error(), "keep less in the state") {
			t.Errorf("%s: %d bytes, %v", text, len(res.Text), err)
		}
	}
}

// What takes time without writing anything ends too.
func TestEmptySectionsEnd(t *testing.T) {
	items := make([]any, 100)
	for i := range items {
		items[i] = 0
	}
	for _, inside := range []string{"", "{{^l}}x{{/l}}"} {
		tmpl, err := template.Parse(strings.Repeat("{{#l}}", 9)+inside+strings.Repeat("{{/l}}", 9), template.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Fill(from(map[string]any{"l": items})); err == nil || !strings.Contains(err.Error(), "use shorter lists") {
			t.Errorf("%q: %v", inside, err)
		}
	}
}

// A text that was filled before takes its memory at once.
func TestFilledAgain(t *testing.T) {
	tmpl, err := template.Parse(strings.Repeat("more: {{long}}\n", 20), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var long any = strings.Repeat("words ", 200)
	n := testing.AllocsPerRun(20, func() {
		if _, err := tmpl.Execute(func(string) (any, bool) { return long, true }); err != nil {
			t.Fatal(err)
		}
	})
	if n > 3 {
		t.Errorf("%v allocations", n)
	}
}
