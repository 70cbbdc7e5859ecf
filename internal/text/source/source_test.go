// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/refrain-dev/refrain/internal/text/source"
)

func TestReadFindsPlaces(t *testing.T) {
	src := source.New("a.yaml", "a.yaml", 0, "")
	n, faults := source.Read(strings.NewReader("\ufeffname: é\napi_key: very-secret\nlist: [ö, bb]\n"), src, new(int))
	if n == nil || len(faults) > 0 {
		t.Fatalf("got %v, faults %v", n, faults)
	}
	if at := src.Of(n.Content[5].Content[1]); at.Src != src || at.Line != 3 || at.Column != 11 || at.Length != 2 {
		t.Errorf("bb stands at %d:%d, %d long", at.Line, at.Column, at.Length)
	}
	if line := src.Excerpt(2); strings.Contains(line, "very-secret") {
		t.Errorf("the excerpt shows a secret: %s", line)
	}
}

// Within gives the same place whether it goes on from an earlier place, or begins anew.
func TestWithinDoesNotDependOnTheOrder(t *testing.T) {
	for name, text := range map[string]string{
		"plain":  "text: one {{a}}\n  two {{b}}\n",
		"single": "text: 'it''s {{a}}\n\n  é {{b}}'\n",
		"double": "text: !!str \"\\u0041 {{a}}\\\n  \\t{{b}}\"\n",
		"folded": "text: &x >-\n  {{a}}\n  𝄞 {{b}}\n\n  end\n",
		"kept":   "text: |+\n    {{a}}\n      {{b}}\n\n",
		"other":  "text: \"{{a}}\" # not here: {{b}}\n",
	} {
		read := func() (*source.Source, *source.Node) {
			src := source.New("a", "a", 0, "")
			n, faults := source.Read(strings.NewReader(text), src, new(int))
			if n == nil || len(faults) > 0 {
				t.Fatalf("%s: got %v, faults %v", name, n, faults)
			}
			return src, n.Content[1]
		}
		src, n := read()
		var places [][2]int
		for line := range 6 {
			for column := range 20 {
				places = append(places, [2]int{line + 1, column + 1})
			}
		}
		for _, back := range []bool{false, true} {
			if back {
				slices.Reverse(places)
			}
			for _, p := range places {
				at := src.Within(n, p[0], p[1])
				fresh, m := read()
				want := fresh.Within(m, p[0], p[1])
				if at.Line != want.Line || at.Column != want.Column || at.Length != want.Length {
					t.Errorf("%s: %v of the value is at %d:%d, and at %d:%d if asked first", name, p, at.Line, at.Column,
						want.Line, want.Column)
				}
			}
		}
	}
}

func TestReadHasLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		text, want string
		ofFile     bool
		line       int
	}{
		"nothing":    {"", "the file is empty", false, 1},
		"a byte":     {"a: b\nc: \xff\n", "the file has a byte that is not UTF-8 text in it", false, 2},
		"a control":  {"a: \x01", "the file has the control character U+0001 in it", false, 1},
		"not YAML":   {"a: b: c\n", "not YAML: mapping values are not allowed in this context", false, 1},
		"size":       {strings.Repeat("#", source.MaxFile+1), "the file is larger than 1 MiB", true, 0},
		"depth":      {strings.Repeat("[", 70) + strings.Repeat("]", 70), "values are nested deeper than 64", true, 1},
		"in circles": {"a: &x [*x]", "values are nested deeper than 64", true, 1},
		"values":     {"[" + strings.Repeat("1,", 20_000) + "]", "the files have more than 20000 values", true, 1},
	} {
		n, faults := source.Read(strings.NewReader(tt.text), source.New("a", "a", 0, ""), new(int))
		if n != nil || len(faults) != 1 {
			t.Errorf("%s: got %v and %d faults", name, n, len(faults))
			continue
		}
		if f := faults[0]; f.Message != tt.want || f.OfFile != tt.ofFile || f.At.Line != tt.line {
			t.Errorf("%s: %q in line %d, of the file: %v", name, f.Message, f.At.Line, f.OfFile)
		}
	}
	_, faults := source.Read(iotest.ErrReader(errors.ErrUnsupported), source.New("a", "a", 0, ""), new(int))
	if len(faults) != 1 || !errors.Is(faults[0].Err, errors.ErrUnsupported) {
		t.Errorf("a file that cannot be read: %v", faults)
	}
	n, faults := source.Read(strings.NewReader("a: 1\n---\nb: 2\n"), source.New("a", "a", 0, ""), new(int))
	if n == nil || len(faults) != 1 || faults[0].At.Line < 2 {
		t.Errorf("a second document: %v, %v", n, faults)
	}
}

// JSON writes a character beyond 16 bits as two escapes, which YAML does not know.
func TestJSONWithSurrogates(t *testing.T) {
	src := source.New("a.json", "a.json", 0, "")
	n, faults := source.Read(strings.NewReader(`{"a": "\ud83d\ude80 {{x}}",	"b": 1}`), src, new(int))
	if n == nil || len(faults) > 0 {
		t.Fatalf("got %v, faults %v", n, faults)
	}
	if v := n.Content[1]; v.Value != "🚀 {{x}}" {
		t.Errorf("got %q", v.Value)
	}
	if at := src.Within(n.Content[1], 1, 3); at.Line != 1 || at.Column != 21 {
		t.Errorf("{{x}} stands at %d:%d", at.Line, at.Column)
	}
	if at := src.Of(n.Content[2]); at.Column != 29 || at.Length != 3 {
		t.Errorf(`"b" stands at %d, %d long`, at.Column, at.Length)
	}
}

// A secret is known by its field, or by the option of a command that it belongs to.
func TestSecretsAreConcealed(t *testing.T) {
	text := "command: [curl, --token, hush-hush, --api-key=also-hush]\nnested: {password: {value: third-hush}}\ntoken: \"{{key}}\"\n"
	src := source.New("a", "a", 0, "")
	if n, faults := source.Read(strings.NewReader(text), src, new(int)); n == nil {
		t.Fatal(faults)
	}
	for line, shown := range []bool{false, false, true} {
		got := src.Excerpt(line + 1)
		if strings.Contains(got, "hush") || shown && !strings.Contains(got, "{{key}}") {
			t.Errorf("line %d is shown as %s", line+1, got)
		}
	}
}
