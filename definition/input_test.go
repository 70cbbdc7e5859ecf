// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
)

const inputs = `
name: x
type: template
text: "{{file}}{{count}}{{ratio}}{{deep}}{{tags}}{{opts}}{{who}}{{level}}{{seen}}"
inputs:
  file: README.md
  count: {type: int, default: 3}
  ratio: {type: number, default: 1}
  deep: false
  tags: {type: list, default: [a]}
  opts: {type: map, default: {k: [1]}}
  who: {description: whose it is}
state: {level: 1, seen: {}}
`

func parse(t *testing.T, text string) *definition.Definition {
	t.Helper()
	d, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A20, D7
func TestInitialState(t *testing.T) {
	d := parse(t, inputs)
	got, err := d.InitialState(map[string]string{"who": "Ana: 1"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"file": "README.md", "count": int64(3), "ratio": 1.0, "deep": false, "tags": []any{"a"},
		"opts": map[string]any{"k": []any{int64(1)}}, "who": "Ana: 1", "level": int64(1), "seen": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	got["opts"].(map[string]any)["k"].([]any)[0] = "changed"
	again, _ := d.InitialState(map[string]string{"who": ""})
	if diff := cmp.Diff(want["opts"], again["opts"]); diff != "" {
		t.Errorf("two runs share their state: %s", diff)
	}
}

func TestInitialStateFromText(t *testing.T) {
	got, err := parse(t, inputs).InitialState(map[string]string{
		"file": "main.go", "count": " 12 ", "ratio": "2.5", "deep": "true", "tags": "x, y", "who": "me",
		"opts": `{"a": {"b": [1, 2.5, null, "t"]}}`, "level": "2", "seen": `{}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"file": "main.go", "count": int64(12), "ratio": 2.5, "deep": true, "tags": []any{"x", "y"}, "who": "me",
		"opts":  map[string]any{"a": map[string]any{"b": []any{int64(1), 2.5, nil, "t"}}},
		"level": int64(2), "seen": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A path that a definition gives is looked for beside it, wherever the run is; one
// that a run is given is its own.
func TestPathsAreBesideTheDefinition(t *testing.T) {
	d, err := definition.Parse("some/where/x.yaml", []byte("name: a\ninputs: {dir: {type: path, default: start}}\ntext: '{{dir}}'\n"), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": filepath.Join(here, "some/where/start"), "mine": "mine"} {
		values := map[string]string{"dir": given}
		if given == "" {
			values = nil
		}
		state, err := d.InitialState(values)
		if err != nil || state["dir"] != want {
			t.Errorf("%q: %v, %v, want %s", given, state["dir"], err, want)
		}
	}
}

// A definition without inputs says so, and lists nothing.
func TestThereIsNoInputToChoose(t *testing.T) {
	_, err := parse(t, "name: a\ntext: hi\n").InitialState(map[string]string{"foo": "1"})
	if want := `there is no input "foo" (the definition has no inputs)`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestInitialStateSaysWhatIsWrong(t *testing.T) {
	d := parse(t, inputs)
	for _, tt := range []struct {
		values map[string]string
		want   string
	}{
		{nil, `input "who" (string) is required: whose it is`},
		{map[string]string{"who": "x", "cuont": "1"}, `there is no input "cuont" (did you mean "count"?)`},
		{map[string]string{"who": "x", "count": "1.5"}, `input "count": must be a whole number, got "1.5"`},
		{map[string]string{"who": "x", "deep": "yes"}, `input "deep": must be true or false, got "yes"`},
		{map[string]string{"who": "x", "ratio": "NaN"}, `input "ratio": must be a number, got "NaN"`},
		{map[string]string{"who": "x", "tags": "[a"}, `input "tags": must be a list in JSON: not YAML: while parsing a flow sequence: did not find expected ',' or ']'`},
		{map[string]string{"who": "x", "opts": "[1]"}, `input "opts": must be a map in JSON, got "[1]"`},
		{map[string]string{"who": "x", "opts": "a: 1"}, `input "opts": must be a map in JSON, got "a: 1"`},
	} {
		_, err := d.InitialState(tt.values)
		if err == nil || err.Error() != tt.want {
			t.Errorf("InitialState(%v): %v, want %s", tt.values, err, tt.want)
		}
		if e, ok := errors.AsType[*definition.InputError](err); !ok || e.Input == "" {
			t.Errorf("no InputError in %v", err)
		}
	}
}
