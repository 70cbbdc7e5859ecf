// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// probes are values of every sort.
var probes = []string{
	`null`, `true`, `-1`, `0`, `1`, `2.5`, `300`, `5000000000`, `""`, `"soon"`, `"5m"`, `"0s"`, `"10%"`, `"120%"`, `"64KB"`, `"none"`, `"fast"`, `"stop"`, `"rollback"`, `"full"`,
	`[]`, `[1]`, `["a"]`, `["a", "a"]`, `[[1]]`, `[null]`, `{}`, `{"zzz": 1}`, `{"a": null}`, `{"a": "b"}`, `{"a": {"type": "int", "default": 3}}`, `{"a": {"type": "int", "default": "x"}}`,
	`{"last": 2}`, `{"last": 0}`, `{"attempts": 2}`, `{"attempts": 0}`, `{"attempts": 2, "backoff": "1s"}`, `{"failures": 1, "cooldown": 5}`, `{"max": "5s"}`,
	`{"calls": 3}`, `{"calls": 0}`, `{"gain": 1}`, `{"per": "hour"}`, `{"key": "k", "target": 3}`, `{"key": 3}`, `{"keys": ["a"]}`, `{"a": {"input": 1, "output": 2}}`, `{"a": {"input": 1}}`,
	`{"when": "true", "for": 2}`, `{"any": ["true"]}`, `{"any": []}`, `{"not": {"all": ["true"]}}`, `{"wen": "true"}`, `{"type": "object", "properties": {"a": {"type": "string"}}}`, `{"type": "strnig"}`,
	`"pure"`, `"transactional"`, `"at_most_once"`, `"edit"`, `"answer"`, `"red"`, `"#12aB9f"`, `"#12a"`, `"two\nlines"`,
	`{"before_agent": [{"webhook": "https://h.example.org/"}]}`, `{"before_agent": {"webhook": "https://h.example.org/"}}`, `{"before_run": [{"command": ["a"], "veto": true, "timeout": "2s"}]}`,
	`{"after_iteration": [{"func": "f", "on_error": "continue"}]}`, `{"before_tool": [{"func": "f", "command": ["a"]}]}`, `{"before_tool": [{"veto": true}]}`, `{"before_tool": [{"func": ""}]}`, `{"before_tol": []}`, `{"after_model": []}`,
	`{"before_model": [{"webhook": "https://h.example.org/", "secret_env": "whsec_x="}]}`, `{"before_model": [{"webhook": "https://h.example.org/", "secret_env": "HOOK", "on_error": "stop"}]}`, `{"before_model": ["f"]}`,
	`[{"mcp": {"command": ["ls"], "effect": "pure"}}]`, `[{"mcp": {"command": ["ls"], "effect": "once"}}]`,
	`"1e3"`, `1e3`, `"5sm"`, `"µs"`, `"5µs"`, `"1h30m"`, `"5s1h"`, `"s"`, `"+"`, `"+5s"`, `"-5s"`, `"-5"`, `"99999999999s"`, `"99999h"`, `"100000h"`, `"0.0ns"`, `"0.1ns"`, `" 5s"`, `"inf"`, `"0x10"`, `"1_000"`, `1e-12`, `1e10`,
	`"2000GB"`, `"999GiB"`, `"0.1B"`, `"0.1KB"`, `"1.5"`, `" 64 kb "`, `"0KB"`, `"B"`, `1e13`, `5.0`, `2.0`, `-0.0`, `5.5`, `{"last": 2.0}`, `{"attempts": 2.0}`, `{"last": 2.5}`, `"0"`, `["5"]`, `[5.0]`,
	`[{"mcp": {"command": ["ls"], "headers": {"a": "b"}}}]`, `[{"mcp": {"url": "http://localhost/", "env": {"A": "b"}}}]`, `[{"mcp": {"url": "http://localhost/", "headers": {"a": "b"}}}]`, `[{"mcp": {"command": ["ls"], "env": ["A"]}}]`,
	`{"before_agent": [{"command": ["a"], "secret_env": "A"}]}`, `{"before_agent": [{"func": "a", "secret_env": "A"}]}`, `{"before_agent": [{"webhook": "https://h.example.org/", "secret_env": "A"}]}`,
	`{"type": "object", "properties": {}}`, `{"properties": {}}`, `{"type": "string", "properties": {}}`, `{"const": null}`, `{"const": "a"}`, `{"const": 1}`, `{"type": "integer", "const": 1}`, `{"type": "integer", "const": 1.5}`, `{"type": "boolean", "const": true}`,
	`{"enum": ["a", "b"]}`, `{"enum": ["a", 1]}`, `{"enum": [1]}`, `{"type": "string", "enum": [1]}`, `{"type": "integer", "enum": [1, 2.0]}`, `{"type": "integer", "enum": [1.5]}`, `{"type": "number", "enum": [1, 2.5]}`, `{"type": "number", "enum": ["a"]}`, `{"type": ["string", "null"], "enum": ["a"]}`,
	`{"type": ["string", "null"], "enum": [1]}`, `{"type": ["null", "integer"], "enum": ["a"]}`, `{"type": "string", "enum": ["a", null]}`, `{"type": "null", "enum": ["a"]}`, `{"type": "array", "items": {"type": "string"}, "enum": ["a"]}`, `{"anyOf": [{"type": "string"}], "enum": ["a"]}`, `{"type": "string", "minLength": 2.0}`,
	`"x_1-b"`, `"9x"`, `"x y"`, `"x.y"`, `"größe"`, `"名前"`, `"x—y"`, `"_x"`, `"user"`,
	`[{"func": "f"}]`, `[{"agent": {"name": "b", "text": "b"}}]`, `[{"mcp": {"command": ["ls"]}}]`, `[{"mcp": {"comand": ["ls"]}}]`, `[{"command": ["ls"], "name": "c"}]`, `[{"name": "b", "text": "b"}]`, `[{"name": "b", "txt": "b"}]`,
}

// needed is what an agent of each type cannot be without.
var needed = map[definition.Type]string{
	definition.TypeLoop: `"sub_agents": [{"name": "s", "text": "s"}]`, definition.TypeSequential: `"sub_agents": [{"name": "s", "text": "s"}]`,
	definition.TypeParallel: `"sub_agents": [{"name": "s", "text": "s"}]`, definition.TypeLLM: `"instructions": "i"`, definition.TypeCommand: `"command": ["ls"]`,
	definition.TypeCLI:        `"cli": "claude", "prompt": "p"`,
	definition.TypeExpression: `"set": {"k": "1"}`, definition.TypeHTTP: `"url": "http://localhost/"`, definition.TypeTemplate: `"text": "t"`, definition.TypeA2A: `"endpoint": "http://localhost/"`,
	definition.TypeHuman: `"question": "q"`, definition.TypeFunc: `"func": "f"`,
}

// The schema and the checker agree about every field of every type of agent, and
// values of every sort. The short form takes every 211th of the values.
func TestSchemaAgreesAboutEveryField(t *testing.T) {
	t.Parallel()
	s := compiledSchema(t)
	every, n := longtest.N(211, 1), 0
	checked, wrong := 0, 0
	for _, f := range definition.Fields() {
		types := f.Types
		if types == nil {
			types = slices.Sorted(maps.Keys(needed))
		}
		for _, typ := range types {
			if needed[typ] == "" {
				continue
			}
			for _, probe := range probes {
				if n++; n%every != 0 {
					continue
				}
				text := document(f, typ, probe)
				data, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				_, loadErr := definition.Parse("x.yaml", []byte(text), definition.Options{})
				problems, _ := errors.AsType[definition.Problems](loadErr)
				structure := slices.ContainsFunc(problems, func(p *definition.Problem) bool { return slices.Contains(structural, p.Code) || isConflict(f, p) })
				refused := s.Validate(data) != nil
				checked++
				if structure {
					wrong++
				}
				// What is refused by both may be so for different reasons.
				if structure && !refused || refused && loadErr == nil {
					t.Errorf("%s of %s agents: the schema refuses: %v, the checker: %v\n%s\n%v", f.Name, typ, refused, structure, text, loadErr)
				}
			}
		}
	}
	t.Logf("%d values, %d of them of a wrong structure", checked, wrong)
	if checked < 40_000/every || wrong < checked/2 || wrong > checked*9/10 {
		t.Errorf("%d values, %d of them wrong: the probes have lost their point", checked, wrong)
	}
}

// isConflict reports whether a map has names in it that do not go together, which
// the schema sees in the maps of tools and callbacks.
func isConflict(f definition.Field, p *definition.Problem) bool {
	return p.Code == definition.CodeConflict && (f.Name == "tools" || f.Name == "callbacks")
}

// document has a field with a value, in an agent of a type that is a step of a
// loop, or at the root.
func document(f definition.Field, typ definition.Type, probe string) string {
	fields := map[string]json.RawMessage{"name": json.RawMessage(`"a"`), "type": json.RawMessage(fmt.Sprintf("%q", typ))}
	var need map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+needed[typ]+"}"), &need); err != nil {
		panic(err)
	}
	maps.Copy(fields, need)
	fields[f.Name] = json.RawMessage(probe)
	agent, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	if f.Root {
		return string(agent)
	}
	return fmt.Sprintf(`{"name": "root", "type": "loop", "sub_agents": [%s]}`, agent)
}
