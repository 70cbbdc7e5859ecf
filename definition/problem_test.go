// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/definition"
)

func problems(t *testing.T, text string) string {
	t.Helper()
	_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	ps, ok := errors.AsType[definition.Problems](err)
	if !ok {
		t.Fatalf("%s: got %v, want problems", text, err)
	}
	var b strings.Builder
	ps.Format(&b)
	return b.String()
}

// Whatever stands in a stranger's file, what is shown of it commands no terminal:
// not in the message, the hint, the excerpt or the file's name.
// F11, T33
func TestProblemsObeyNoTerminal(t *testing.T) {
	const osc = `\e]0;PWNED\a\u202e\x9b31m`
	files := map[string]string{
		"model":      "name: a\nmodel: \"x/" + osc + "\"\nsub_agents: [{name: x, text: hi}]\n",
		"expression": "name: a\nstop_when: \"state.zz" + osc + " == 1\"\nsub_agents: [{name: x, text: hi}]\n",
		"template":   "name: a\ntext: \"{{#" + osc + "\"\n",
		"name":       "name: \"a" + osc + "\"\ntext: a\n",
		"field":      "\"na" + osc + "me\": a\ntext: a\n",
		"ref":        "name: a\nsub_agents: [{ref: \"x" + osc + "\"}]\n",
		"key":        "name: a\nstate: {\"k" + osc + "\": 1}\ntext: a\n",
		"order":      "name: a\norder: [\"" + osc + "\"]\nsub_agents: [{name: x, text: hi}]\n",
		"url":        "name: a\nurl: \"http://" + osc + "/\"\n",
		"excerpt":    "name: a\ntext: a\nx: \u202e\u2066 # \u202e\n",
		"file":       "nothing",
	}
	check := func(what, text string) {
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s: %U in %q", what, r, text)
				return
			}
		}
	}
	for what, text := range files {
		name := "x.yaml"
		if what == "file" {
			name = "x\x1b]0;PWNED\a\u202e.yaml"
		}
		_, err := definition.Parse(name, []byte(text), definition.Options{})
		problems, ok := errors.AsType[definition.Problems](err)
		if !ok {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var b strings.Builder
		if err := problems.Format(&b); err != nil {
			t.Fatal(err)
		}
		check(what, b.String())
		check(what, err.Error())
		for _, p := range problems {
			check(what, p.Error())
			if strings.Contains(p.Error(), "\n") {
				t.Errorf("%s: more than a line: %q", what, p.Error())
			}
		}
	}
	// Each part by itself: none may lean on whoever has made it.
	p := &definition.Problem{File: "f\x1b", Line: 1, Column: 1, Length: 1, Severity: definition.SeverityError, Code: "LOOP004",
		Message: "m\x1b\u202e", Hint: "h\x1b\u202e", Excerpt: "e\x1b\u202e"}
	check("parts", p.Error())
	check("parts", p.Format())
	p.Excerpt = ""
	check("hint alone", p.Format())
}

// A definition in JSON is often one line: its problems have their columns however
// far behind they are, in characters.
func TestPlacesInALongLine(t *testing.T) {
	for _, n := range []int{0, 1, 3, 40, 400} {
		text := `{"name": "x", "max_iterations": 3, "sub_agents": [`
		for i := range n {
			text += fmt.Sprintf(`{"name": "a%d", "text": %q}, `, i, strings.Repeat("é", 23))
		}
		text += `{"name": "b", "text": "b", `
		column := utf8.RuneCountInString(text) + 1
		text += `"outputkey": "b"}]}`
		_, err := definition.Parse("x.json", []byte(text), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != 1 || problems[0].Line != 1 || problems[0].Column != column {
			t.Errorf("%d agents before: got %v, want a problem at 1:%d", n, err, column)
		}
	}
}
