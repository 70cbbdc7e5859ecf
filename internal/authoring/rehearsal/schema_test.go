// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
)

// A stand-in answers as the schema asks, whatever that is: the
// real agent checks it.
func TestStandInsFitTheSchema(t *testing.T) {
	for _, tt := range []struct{ name, schema string }{
		{"a text and a number", `{type: object, properties: {says: {type: string}, price: {type: number}}, required: [says, price]}`},
		{"bounds", `{type: object, properties: {a: {type: integer, minimum: 6.5, maximum: 7.5}, b: {type: number, maximum: -3}, c: {type: string, minLength: 400}, d: {type: string, maxLength: 3}}, required: [a, b, c, d]}`},
		{"words", `{type: object, properties: {a: {type: string, enum: [yes please, no]}, b: {type: integer, enum: [3, 7]}, c: {type: boolean}}, required: [a, b, c]}`},
		{"formats", `{type: object, properties: {when: {type: string, format: date-time}, day: {type: string, format: date}, mail: {type: string, format: email}, at: {type: string, format: uri}, id: {type: string, format: uuid}, ip: {type: string, format: ipv4}}, required: [when, day, mail, at, id, ip]}`},
		{"patterns", `{type: object, properties: {a: {type: string, pattern: '^[A-Z]{2,4}-\d{3}$'}, b: {type: string, pattern: '^(low|high)$'}, c: {type: string, pattern: '^v\d+(\.\d+){2}$', minLength: 6}, d: {type: string, pattern: 'Words of'}}, required: [a, b, c, d]}`},
		{"lists", `{type: array, minItems: 3, maxItems: 4, items: {type: object, properties: {tags: {type: array, maxItems: 0, items: {type: string}}, at: {type: array, items: {type: array, minItems: 2, items: {type: integer}}}}, required: [tags, at]}}`},
		{"nested", `{type: object, properties: {a: {type: object, properties: {b: {type: object, properties: {c: {type: string, enum: [x]}}, required: [c]}}, required: [b]}}, required: [a]}`},
		{"nothing or something", `{type: object, properties: {a: {type: [string, "null"]}, b: {anyOf: [{type: "null"}, {type: integer}]}}, required: [a, b]}`},
		{"how many", `{type: object, minProperties: 3, properties: {a: {type: string}}, required: [a]}`},
		{"few", `{type: object, maxProperties: 1, properties: {a: {type: string}, b: {type: string}, c: {type: string}}, required: [b]}`},
		{"a text", `{type: string}`},
		{"a number", `{type: integer, minimum: 3}`},
	} {
		t.Run(tt.name, func(t *testing.T) { fitting(t, tt.schema) })
	}
	for seed := range uint64(60) {
		g := schemas{rand.New(rand.NewPCG(seed, 6))}
		text, err := json.Marshal(g.object(3))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { fitting(t, string(text)) })
	}
}

// fitting rehearses an agent with a schema, once with tools and once without.
func fitting(t *testing.T, schema string) {
	t.Helper()
	for _, tools := range []string{"", "tools: [{func: look}], "} {
		def := parse(t, fmt.Sprintf("name: l\nmax_iterations: 2\nsub_agents: [{name: a, instructions: a, output_key: k, can_exit_loop: false, %soutput_schema: %s}]\n", tools, schema))
		r := rehearse(t, def, rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.Oscillation}})
		for _, f := range r.Findings {
			if f.Status == rehearsal.Unknown {
				t.Errorf("%s%s\n%s", tools, schema, f.Detail)
			}
		}
	}
}

// schemas makes up some.
type schemas struct{ rnd *rand.Rand }

func (g schemas) object(depth int) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range 1 + g.rnd.IntN(4) {
		name := fmt.Sprintf("p%d", i)
		properties[name] = g.any(depth - 1)
		if g.rnd.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func (g schemas) any(depth int) map[string]any {
	kind := g.rnd.IntN(7)
	if depth == 0 {
		kind = g.rnd.IntN(5)
	}
	switch kind {
	case 0:
		return map[string]any{"type": "boolean"}
	case 1:
		least := g.rnd.IntN(200) - 100
		return map[string]any{"type": "integer", "minimum": least, "maximum": least + g.rnd.IntN(3)}
	case 2:
		least := float64(g.rnd.IntN(2000)-1000) / 7
		return map[string]any{"type": "number", "minimum": least, "maximum": least + g.rnd.Float64()}
	case 3:
		least := g.rnd.IntN(50)
		return map[string]any{"type": "string", "minLength": least, "maxLength": least + g.rnd.IntN(50)}
	case 4:
		return map[string]any{"type": "string", "enum": []string{"one", "two", "three"}[:1+g.rnd.IntN(3)]}
	case 5:
		least := g.rnd.IntN(4)
		return map[string]any{"type": "array", "minItems": least, "maxItems": least + g.rnd.IntN(3), "items": g.any(depth - 1)}
	}
	return g.object(depth)
}
