// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/template"
)

// departures are the cases of the Mustache specification whose result is another
// one here, and why.
var departures = map[string]string{
	"interpolation/HTML Escaping":                      "a prompt is no HTML: what a model should read is what was said",
	"interpolation/Implicit Iterators - HTML Escaping": "likewise",
	"sections/Implicit Iterator - HTML Escaping":       "likewise",
	"interpolation/Dotted Names are never single keys": "best.score and prev.draft are keys, although there may be no map best",
	"interpolation/Dotted Names - No Masking":          "likewise: the whole name comes before its parts",
}

// mustacheCase is one case, as the specification writes it.
type mustacheCase struct {
	Name     string `yaml:"name"`
	Data     any    `yaml:"data"`
	Template string `yaml:"template"`
	Expected string `yaml:"expected"`
}

// D3, D5: the tags that Mustache has mean what Mustache says.
func TestMustacheSpecification(t *testing.T) {
	text, err := os.ReadFile("testdata/mustache.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]mustacheCase
	if err := yaml.Load(text, &all, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	unused := make(map[string]bool)
	for id := range departures {
		unused[id] = true
	}
	for file, cases := range all {
		for _, c := range cases {
			runMustache(t, file, c)
			delete(unused, file+"/"+c.Name)
		}
	}
	for id := range unused {
		t.Errorf("departure %q is no case", id)
	}
	if n := len(slices.Concat(all["interpolation"], all["sections"], all["inverted"], all["comments"])); n < 110 {
		t.Errorf("found only %d cases", n)
	}
}

// The specification's own cases, where there is a copy of it.
func TestMustacheSpecificationItself(t *testing.T) {
	dir := os.Getenv("MUSTACHE_SPEC")
	if dir == "" {
		t.Skip("MUSTACHE_SPEC is not the path of a copy of the specification's folder specs")
	}
	for _, file := range []string{"interpolation", "sections", "inverted", "comments"} {
		text, err := os.ReadFile(filepath.Join(dir, file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var spec struct {
			Tests []mustacheCase `yaml:"tests"`
		}
		if err := yaml.Load(text, &spec); err != nil {
			t.Fatal(err)
		}
		if len(spec.Tests) < 10 {
			t.Errorf("%s has only %d cases", file, len(spec.Tests))
		}
		for _, c := range spec.Tests {
			runMustache(t, file, c)
		}
	}
}

func runMustache(t *testing.T, file string, c mustacheCase) {
	id := file + "/" + c.Name
	t.Run(id, func(t *testing.T) {
		tmpl, err := template.Parse(c.Template, template.Options{Dialect: template.Mustache})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Execute(func(key string) (any, bool) {
			if key == "." {
				return c.Data, true
			}
			m, _ := c.Data.(map[string]any)
			v, ok := m[key]
			return v, ok
		})
		if err != nil {
			t.Fatal(err)
		}
		diff := cmp.Diff(c.Expected, got)
		if why, departs := departures[id]; departs && diff == "" {
			t.Errorf("it is no departure, although %s", why)
		} else if !departs && diff != "" {
			t.Errorf("%q with %v (-want +got):\n%s", c.Template, c.Data, diff)
		}
	})
}

// What departs, departs in this way.
func TestDeparturesFromMustache(t *testing.T) {
	state := map[string]any{"code": "a < b && \"c\"", "best.score": 8.5, "best": map[string]any{"score": 7, "draft": "Once"}}
	want := `a < b && "c" 8.5 Once`
	if got := fill(t, "{{code}} {{best.score}} {{best.draft}}", state).Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The specification has no case for this: of two items with the same field, the
// inner one's counts.
func TestInnermostItemComesFirst(t *testing.T) {
	state := map[string]any{"loop": map[string]any{"name": "refine", "n": 1, "step": map[string]any{"name": "critic"}}, "name": "outer"}
	if got, want := fill(t, "{{#loop}}{{#step}}{{name}} {{n}}{{/step}} {{name}}{{/loop}} {{name}}", state).Text, "critic 1 refine outer"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
