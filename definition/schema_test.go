// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(definition.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(definition.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(definition.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asData returns what an editor sees of a file; ok is false if it is no YAML document.
func asData(t *testing.T, data []byte) (v any, ok bool) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) != 1 {
		return nil, false
	}
	if v, ok = dataOf(doc.Content[0], 0); !ok {
		return nil, false
	}
	// Through JSON, for numbers as the validator knows them.
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	return v, err == nil
}

// dataOf is a node as JSON has it: keys are texts, and what is infinite is null.
func dataOf(n *yaml.Node, depth int) (any, bool) {
	if depth > 64 {
		return nil, false
	}
	switch n.Kind {
	case yaml.AliasNode:
		return dataOf(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, ok := dataOf(c, depth+1)
			if !ok || len(list) > 1000 {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	case yaml.MappingNode:
		m, merged := map[string]any{}, map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, ok := dataOf(n.Content[i+1], depth+1)
			if !ok {
				return nil, false
			}
			key := n.Content[i].Value
			if _, twice := m[key]; twice {
				return nil, false // no JSON
			}
			if from, isMap := v.(map[string]any); isMap && key == "<<" {
				merged = from
				continue
			}
			m[key] = v
		}
		for k, v := range merged {
			if _, own := m[k]; !own {
				m[k] = v
			}
		}
		return m, true
	}
	switch n.ShortTag() {
	case "!!binary":
		return nil, false // nothing of JSON's
	case "!!str", "!!timestamp", "!!merge":
		return n.Value, true
	}
	var v any
	if err := n.Load(&v); err != nil {
		return n.Value, true
	}
	if _, err := json.Marshal(v); err != nil {
		return nil, true
	}
	return v, true
}

// structural are the codes of what a JSON Schema can see.
var structural = []string{definition.CodeField, definition.CodeValue, definition.CodeMissing, definition.CodeNoSteps}

// What editors check by is made of the table that files are read by. It lets
// every definition pass that can be run.
func TestSchemaLetsDefinitionsPass(t *testing.T) {
	s := compiledSchema(t)
	var files []string
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/good/parts/*.yaml", "testdata/seeds/*fixed.yaml",
		"testdata/seeds/document.yaml", "testdata/same/loop.yaml", "../examples/*/*.yaml", "../examples/*/parts/*.yaml"} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	checked := 0
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "script") {
			continue
		}
		data, ok := asData(t, []byte(readFile(t, file)))
		if !ok {
			t.Errorf("%s is no YAML document", file)
			continue
		}
		checked++
		if err := s.Validate(data); err != nil {
			t.Errorf("%s: %#v", file, err)
		}
	}
	if checked < 15 {
		t.Errorf("only %d files", checked)
	}
	for _, name := range []string{"../README.md", "../doc/definition.md", "../doc/coding.md"} {
		for _, b := range yamlBlocks(readFile(t, name)) {
			if data, _ := asData(t, []byte(b)); s.Validate(data) != nil {
				t.Errorf("%s: %v\n%s", name, s.Validate(data), b)
			}
		}
	}
}

// The schema and the checker agree about the structure of every broken file:
// what has a wrong structure is refused by both, and what only [definition.Load]
// can see is wrong passes the schema.
func TestSchemaAgreesAboutBrokenDefinitions(t *testing.T) {
	t.Parallel()
	s := compiledSchema(t)
	wrong, right := 0, 0
	for _, def := range brokenDefinitions(t) {
		data, ok := asData(t, def.data)
		if !ok {
			continue
		}
		file := def.file()
		_, err := def.load()
		problems, _ := errors.AsType[definition.Problems](err)
		isStructural := slices.ContainsFunc(problems, func(p *definition.Problem) bool {
			return p.Severity == definition.SeverityError && p.File == file && slices.Contains(structural, p.Code)
		})
		switch refused := s.Validate(data); {
		case def.name == "leading-zero": // a schema sees the number 8, and not how it is written
		case isStructural && refused == nil:
			t.Errorf("%s: the schema lets it pass:\n%v", file, problems)
		case isStructural:
			wrong++
		case refused == nil:
			right++
		}
	}
	t.Logf("%d broken in structure and refused by both, %d that only the checker can refuse", wrong, right)
	if wrong < 60 || right < 30 {
		t.Errorf("%d and %d", wrong, right)
	}
}

// The file that editors are told to read is this version's.
func TestSchemaFile(t *testing.T) {
	const file = "schema.json"
	if *update {
		if err := os.WriteFile(file, definition.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readFile(t, file), string(definition.Schema())); diff != "" {
		t.Errorf("%s is out of date; run go test ./definition -update (-file +made):\n%s", file, diff)
	}
}

// A default is the answer at the deadline: an editor says that it needs one, as the checker does.
func TestSchemaWantsADeadlineForADefault(t *testing.T) {
	s := compiledSchema(t)
	for field, want := range map[string]bool{"": true, "deadline: 1h": true, "default: true": false, "default: true, deadline: 1h": true} {
		file := write(t, t.TempDir(), "ask.yaml", "name: x\nsub_agents:\n  - {name: ask, question: Go?, "+field+"}\n  - {name: say, text: hi}\nmax_iterations: 1\n")
		data, _ := asData(t, []byte(readFile(t, file)))
		_, err := definition.Load(file)
		if refused := s.Validate(data); (refused == nil) != want || (err == nil) != want {
			t.Errorf("%q: the schema says %v, the checker %v", field, refused, err)
		}
	}
}

// An editor that has no title shows the name of a part of the schema, such as "agent.unknown", in its messages.
func TestPartsOfTheSchemaHaveWords(t *testing.T) {
	var doc struct {
		Defs map[string]struct{ Title string } `json:"$defs"`
	}
	if err := json.Unmarshal(definition.Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for name, part := range doc.Defs {
		if part.Title == "" || strings.ContainsAny(part.Title, ".$") {
			t.Errorf("%s has the title %q", name, part.Title)
		}
	}
	for name, want := range map[string]string{"agent.unknown": "agent", "root.loop": "loop agent", "config.llm": "config of llm",
		"step": "step", "field.cache": "true or false, duration or map"} {
		if got := doc.Defs[name].Title; got != want {
			t.Errorf("%s has the title %q, want %q", name, got, want)
		}
	}
}
