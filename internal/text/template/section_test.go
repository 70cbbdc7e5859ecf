// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refrain-dev/refrain/internal/text/template"
)

// B6, D3: a prompt can differ in the first iteration.
func TestSections(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"true", "{{#done}}yes{{/done}}{{^done}}no{{/done}}", "yes"},
		{"false", "{{#no}}yes{{/no}}{{^no}}no{{/no}}", "no"},
		{"null", "{{#null}}yes{{/null}}{{^null}}no{{/null}}", "no"},
		{"missing", "{{#missing}}yes{{/missing}}{{^missing}}no{{/missing}}", "no"},
		{"empty text", "{{#empty}}yes{{/empty}}{{^empty}}no{{/empty}}", "no"},
		{"empty list", "{{#nothing}}yes{{/nothing}}{{^nothing}}no{{/nothing}}", "no"},
		{"text is no list", "{{#draft}}{{.}}, that is {{draft}}{{/draft}}", "a cat, that is a cat"},
		{"number", "{{#score}}{{.}}{{/score}}", "7.6"},
		{"list", "{{#list}}({{.}}){{/list}}", "(x)(y)"},
		{"list of lists", "{{#nested}}({{#.}}{{.}}{{/.}}){{/nested}}", "(12)(ab)"},
		{"items", "{{#issues}}{{n}}. {{text}} of {{draft}}; {{/issues}}", "1. long of a cat; 2. dull of a cat; "},
		{"field of the item only", "{{#issues}}{{.n}}{{.draft}}{{/issues}}", "12"},
		{"map", "{{#analysis}}{{score}} {{why.tone}} {{n}}{{/analysis}}", "7 flat 3"},
		{"dotted", "{{#analysis.why}}{{tone}}{{/analysis.why}}", "flat"},
		{"dotted key inside", "{{#analysis}}{{best.score}}{{/analysis}}", "8"},
		{"item before key, broken", "{{#issues}}<{{text.x}}>{{/issues}}", "<><>"},
		{"same name nested", "{{#done}}a{{#done}}b{{/done}}c{{/done}}", "abc"},
		{"spaces", "{{# done }}={{/ done }}{{^ no}}-{{/no }}", "=-"},
		{"standalone lines", "a\n  {{#done}} \nb\n\t{{/done}}\nc\n", "a\nb\nc\n"},
		{"standalone, CRLF", "a\r\n{{#done}}\r\nb\r\n{{/done}}\r\nc", "a\r\nb\r\nc"},
		{"standalone at both ends", "  {{#done}}\nb\n  {{/done}}", "b\n"},
		{"standalone comment", "a\n{{! one\n two }}\nb", "a\nb"},
		{"not alone", "a {{#done}}\nb\n{{/done}} c\n{{n}}\n", "a \nb\n c\n3\n"},
		{"two on a line", " {{#done}}b{{/done}}\n {{#done}} {{/done}}\n", " b\n  \n"},
		{"left-out lines", "a\n{{#no}}\nb {{n}}\n{{/no}}\nc", "a\nc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fill(t, tt.text, state).Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// D17, D20
func TestKeys(t *testing.T) {
	tmpl, err := template.Parse("{{draft}} {tone?}\n{{#issues}}é {{text}} {{.}} {{.n}} {{app:x}}{{^y}}{{z}}{{/y}}\n{{/issues}}{{prev.a?}}", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []template.Ref{
		{Name: "draft", Line: 1, Column: 1},
		{Name: "tone", Optional: true, Single: true, Line: 1, Column: 11},
		{Name: "issues", Section: true, Line: 2, Column: 1},
		{Name: "text", Inner: true, Line: 2, Column: 14},
		{Name: "app:x", Inner: false, Line: 2, Column: 36},
		{Name: "y", Section: true, Inner: true, Line: 2, Column: 45},
		{Name: "z", Inner: true, Line: 2, Column: 51},
		{Name: "prev.a", Optional: true, Line: 3, Column: 12},
	}
	if diff := cmp.Diff(want, tmpl.Keys(), cmpopts.IgnoreFields(template.Ref{}, "From", "To", "Close")); diff != "" {
		t.Error(diff)
	}
}

// D17: whoever rewrites a text finds each tag in it, the closing ones too.
func TestTagsAreInTheText(t *testing.T) {
	const text = "é {{{ draft }}}{tone?}{{# issues }}{{^x}}{{ x? }}{{/ x}}{{ / issues }}"
	tmpl, err := template.Parse(text, template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var tags, closing []string
	for _, ref := range tmpl.Keys() {
		tags = append(tags, text[ref.From:ref.To])
		if at := ref.NameIn(text, ref.From); text[at:at+len(ref.Name)] != ref.Name {
			t.Errorf("%s is at %d", ref.Name, at)
		}
		if ref.Section {
			at := ref.NameIn(text, ref.Close)
			closing = append(closing, text[ref.Close:at]+text[at:at+len(ref.Name)])
		}
	}
	if diff := cmp.Diff([]string{"{{{ draft }}}", "{tone?}", "{{# issues }}", "{{^x}}", "{{ x? }}"}, tags); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"{{ / issues", "{{/ x"}, closing); diff != "" {
		t.Error(diff)
	}
}

// Deep nesting is refused before it costs anything.
func TestSectionsAreNotNestedWithoutEnd(t *testing.T) {
	const n = 70_000
	_, err := template.Parse(strings.Repeat("{{#x}}", n)+strings.Repeat("{{/x}}", n), template.Options{})
	errs, ok := errors.AsType[template.Errors](err)
	if !ok || len(errs) != 1 || !strings.Contains(errs[0].Msg, "nested more than 64 deep") {
		t.Errorf("error %.200v, want one about the depth", err)
	}
}
