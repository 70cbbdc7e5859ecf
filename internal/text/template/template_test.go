// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/text/template"
)

// from looks up in a map.
func from(m map[string]any) func(string) (any, bool) {
	return func(key string) (any, bool) { v, ok := m[key]; return v, ok }
}

func fill(t *testing.T, text string, state map[string]any) template.Result {
	t.Helper()
	tmpl, err := template.Parse(text, template.Options{})
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	res, err := tmpl.Fill(from(state))
	if err != nil {
		t.Fatalf("Fill(%q): %v", text, err)
	}
	return res
}

var state = map[string]any{
	"draft":         "a cat",
	"empty":         "",
	"braces":        "{{draft}} {draft}",
	"score":         7.6,
	"n":             3,
	"done":          true,
	"no":            false,
	"null":          nil,
	"app:tone":      "dry",
	"user:name":     "Ana",
	"temp:x":        "t",
	"iteration:x":   "i",
	"artifact.a.md": "notes",
	"best.score":    8.0,
	"prev.draft":    "a dog",
	"prev.analysis": map[string]any{"score": 6},
	"analysis":      map[string]any{"score": 7.0, "why": map[string]string{"tone": "flat"}},
	"list":          []string{"x", "y"},
	"issues":        []any{map[string]any{"text": "long", "n": 1}, map[string]any{"text": "dull", "n": 2}},
	"nested":        []any{[]any{1, 2}, []any{"a", "b"}},
	"nothing":       []any{},
}

// D3, D4, D5, D6, D7, D20
func TestPlaceholders(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no tags", "plain", "plain"},
		{"nothing", "", ""},
		{"double", "<{{draft}}>", "<a cat>"},
		{"spaces", "<{{  draft }}>", "<a cat>"},
		{"triple", "<{{{ draft }}}>", "<a cat>"},
		{"ampersand", "<{{& draft}}>", "<a cat>"},
		{"single", "<{draft}>", "<a cat>"},
		{"optional", "<{missing?}{{missing?}}{draft?}>", "<a cat>"},
		{"prefixes", "{app:tone} {user:name} {temp:x} {iteration:x} {{app:tone}} {{iteration:x}}", "dry Ana t i dry i"},
		{"artifact", "{artifact.a.md} {{artifact.a.md}}", "notes notes"},
		{"dotted key", "{{best.score}} {{prev.draft}}", "8 a dog"},
		{"field", "{{analysis.score}} {{analysis.why.tone}}", "7 flat"},
		{"field below a dotted key", "{{prev.analysis.score}}", "6"},
		{"field of what is none", "<{{draft.x}}{{analysis.x.y}}>", "<>"},
		{"values are not expanded", "{{braces}}", "{{draft}} {draft}"},
		{"no HTML escape", "{{{list}}}{{list}}", `["x","y"]["x","y"]`},
		{"comment", "a{{! {{draft }}b", "ab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fill(t, tt.text, state).Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// D5, D18; LOOP 25: braces of JSON are left alone.
func TestOtherBracesAreText(t *testing.T) {
	for _, text := range []string{
		`{"a": 1}`, `{"a": {"b": [{}]}}`, `{}`, `{{}}`, `{1x}`, `{ draft }`, `{draft.x}`, `{foo:draft}`, `{a-b}`, `{draft ?}`,
		`{draft`, `{"a":1}}`, `{{1, 2}, {3, 4}}`, `{{ two words }}`, `{{ .Values.x }}`, `${{ github.ref == 'x' }}`,
		`{{"k": "v"}}`, `{`, `{{`, `{{{`, `}}`, `{{=x}}`, `{{< 1}}`, `{app:}`, `{artifact.}`, `{{artifact.}}`, "{{\n", "\xff{\xff}",
	} {
		if got := fill(t, text, state); got.Text != text || len(got.Unset) != 0 {
			t.Errorf("fill(%q) = %+v, want it unchanged", text, got)
		}
	}
	if got := fill(t, `{"score": {{score}}, "in": {"x":{{n}}}}`, state).Text; got != `{"score": 7.6, "in": {"x":3}}` {
		t.Errorf("JSON around tags: %s", got)
	}
}

// D5
func TestMustacheDialectLeavesSingleBraces(t *testing.T) {
	tmpl, err := template.Parse("f() {return} {{draft}}", template.Options{Dialect: template.Mustache})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := tmpl.Execute(from(state)); got != "f() {return} a cat" {
		t.Error(got)
	}
}

type report struct {
	Score float64 `json:"score"`
	Big   int64
}

// D18
func TestValues(t *testing.T) {
	ten := 10
	for _, tt := range []struct {
		v    any
		want string
	}{
		{"s", "s"}, {nil, ""}, {true, "true"}, {3, "3"}, {int64(-3), "-3"}, {uint8(3), "3"},
		{7.6, "7.6"}, {3.0, "3"}, {float32(0.1), "0.1"}, {1e6, "1000000"}, {1e30, "1e+30"}, {0.0, "0"}, {math.Inf(1), "+Inf"},
		{json.Number("1.50"), "1.50"}, {json.RawMessage(`{"a":1}`), `{"a":1}`}, {[]byte("hi"), "hi"},
		{map[string]any{"b": 1, "a": "<x>"}, `{"a":"<x>","b":1}`}, {[]int{1, 2}, "[1,2]"},
		{report{Score: 7, Big: 9007199254740993}, `{"score":7,"Big":9007199254740993}`},
		{&ten, "10"}, {(*int)(nil), ""}, {90 * time.Second, "1m30s"}, {errors.New("bad"), "bad"},
		{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "2026-01-02T03:04:05Z"},
	} {
		if got := fill(t, "{{v}}!", map[string]any{"v": tt.v}).Text; got != tt.want+"!" {
			t.Errorf("%T %v: got %q, want %q", tt.v, tt.v, got, tt.want)
		}
	}
	if got := fill(t, "{{r.score}} {{r.Big}}", map[string]any{"r": &report{7.5, 9007199254740993}}).Text; got != "7.5 9007199254740993" {
		t.Errorf("fields of a struct: %q", got)
	}
	tmpl, _ := template.Parse("{{v}}", template.Options{})
	if _, err := tmpl.Execute(from(map[string]any{"v": map[string]any{"f": func() {}}})); err == nil || !strings.Contains(err.Error(), "{{v}}") {
		t.Errorf("a value that JSON cannot express: %v", err)
	}
}

// D20; C9: declared but unset is empty, with a note.
func TestUnsetNamesAreReported(t *testing.T) {
	got := fill(t, "{{b}}{{draft}}{{null}}{a}{{b}}{{c?}}{{#d}}{{e}}{{/d}}{{^d}}{{prev.f}}{{/d}}", state)
	if diff := cmp.Diff(template.Result{Text: "a cat", Unset: []string{"b", "a", "prev.f"}}, got); diff != "" {
		t.Error(diff)
	}
	tmpl, _ := template.Parse("<{{a}}>", template.Options{})
	if got, err := tmpl.Execute(nil); got != "<>" || err != nil {
		t.Errorf("without a lookup: %q, %v", got, err)
	}
}

// A text without tags costs nothing.
func TestTextWithoutTagsDoesNotAllocate(t *testing.T) {
	tmpl, err := template.Parse(`Answer as {"score": 1}.`, template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lookup := from(nil)
	if n := testing.AllocsPerRun(100, func() { _, _ = tmpl.Execute(lookup) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
