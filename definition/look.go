// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
)

var colors = []string{
	"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray", "orange", "pink", "purple", "brown",
}

// Colors are the colors that have a name; any other is #rrggbb.
func Colors() []string { return slices.Clone(colors) }

// Shown is what people are shown: the display name, or else the name.
func (a *Agent) Shown() string {
	if a.DisplayName != "" {
		return a.DisplayName
	}
	return a.Name
}

var hexColor = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)

func colorShape() shape {
	hex := &jsonschema.Schema{Type: "string", Pattern: hexColor.String(), Title: `"#rrggbb"`}
	return either(oneOf(colors...), hex)
}

func shownShape() shape {
	return &jsonschema.Schema{Type: "string", MinLength: new(1), MaxLength: new(vocabulary.MaxName), Title: "text"}
}

func (r *reader) displayName(n *yaml.Node, _ string) (string, bool) {
	text, ok := r.text(n, "display_name")
	switch {
	case !ok:
	case text == "":
		r.report(r.src.Of(n), CodeValue, "display_name is empty").Hint = "leave it out to show the name"
	case utf8.RuneCountInString(text) > vocabulary.MaxName:
		r.report(r.src.Of(n), CodeValue, "display_name is longer than %d characters", vocabulary.MaxName)
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
		r.report(r.src.Of(n), CodeName, "display_name has a line break or another character in it that cannot be shown on a line")
	}
	return text, ok
}

func (r *reader) color(n *yaml.Node, _ string) (string, bool) {
	text, ok := r.text(n, "color")
	if !ok || slices.Contains(colors, text) || hexColor.MatchString(text) {
		return text, ok
	}
	hint := "the colors are " + strings.Join(colors, ", ") + `, or "#rrggbb"`
	if short := []rune(text); len(short) == 4 && hexColor.MatchString("#000"+text[1:]) {
		hint = strings.ToLower(`write "#` + string([]rune{short[1], short[1], short[2], short[2], short[3], short[3]}) + `"`)
	} else if hexColor.MatchString("#" + text) {
		hint = `write "#` + text + `"`
	}
	r.report(r.src.Of(n), CodeValue, "there is no color %q", text).Hint = didYouMean(text, colors, "%q", hint)
	return text, true
}
