// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
)

// author writes random definitions.
type author struct {
	*rand.Rand
	names int
	keys  []string
	// beyond are fields that ADK has not: what is given of them has to be in the
	// report.
	beyond bool
	given  []string // agent and field
	b      strings.Builder
}

func (r *author) chance(percent int) bool { return r.IntN(100) < percent }

func (r *author) pick(list ...string) string { return list[r.IntN(len(list))] }

// field writes one line.
func (r *author) field(indent int, key, format string, args ...any) {
	fmt.Fprintf(&r.b, "%s%s: %s\n", strings.Repeat("  ", indent), key, fmt.Sprintf(format, args...))
}

// extra writes a field that ADK has not, and notes it.
func (r *author) extra(indent int, agent, key, value string) {
	if r.beyond && r.chance(25) {
		r.field(indent, key, "%s", value)
		r.given = append(r.given, agent+" "+key)
	}
}

// write is a definition, with the report that is expected of it.
func (r *author) write() string {
	r.agent(0, 3, "loop", false)
	return r.b.String()
}

// agent writes an agent as an item of a list, or as the root.
func (r *author) agent(indent, depth int, typ string, inLoop bool) {
	name := r.pick("writer", "critic", "Prüfer", "step", "x") + fmt.Sprint(r.names)
	r.names++
	if indent > 0 {
		fmt.Fprintf(&r.b, "%s- name: %s\n", strings.Repeat("  ", indent-1), name)
	} else {
		r.field(0, "name", "%s", name)
	}
	r.field(indent, "type", "%s", typ)
	if r.chance(30) {
		r.field(indent, "description", "%q", r.pick("Does it.", "a: b", "- x", "# no", "'q' \"d\"", "é 🚀"))
	}
	r.extra(indent, name, "color", "red")
	r.extra(indent, name, "display_name", "Somebody")
	if inLoop {
		r.extra(indent, name, "retry", "2")
		r.extra(indent, name, "delay_before", "1s")
		r.extra(indent, name, "on_error", "skip_step")
	}
	switch typ {
	case "llm":
		r.llm(indent, name, inLoop)
		return
	case "loop":
		r.field(indent, "max_iterations", "%d", 1+r.IntN(9))
		r.field(indent, "timeouts", "none")
		r.given = append(r.given, name+" timeouts")
		r.extra(indent, name, "budget", "{calls: 9}")
		r.extra(indent, name, "iteration_delay", "1s")
		r.extra(indent, name, "stop_when", "iteration >= 2")
	case "parallel":
		r.extra(indent, name, "max_concurrency", "2")
	}
	r.field(indent, "sub_agents", "")
	for range 1 + r.IntN(3) {
		next := "llm"
		if depth > 0 && r.chance(40) {
			next = r.pick("loop", "sequential", "parallel")
		}
		r.agent(indent+2, depth-1, next, typ == "loop")
	}
}

func (r *author) llm(indent int, name string, inLoop bool) {
	text := r.pick("Write.", "Write it\n\n  in two lines.", "{\"json\": 1}", "a {b: 1} c", "# x", "  spaces", "tab\tx", "é 🚀 \u0085")
	if len(r.keys) > 0 && r.chance(60) {
		text += " {{" + r.keys[r.IntN(len(r.keys))] + "}} and {{" + r.keys[0] + "}}."
	}
	r.field(indent, "instructions", "%s", quoteYAML(text))
	if r.chance(50) {
		key := "key" + fmt.Sprint(r.names)
		r.keys = append(r.keys, key)
		r.field(indent, "output_key", "%s", key)
	}
	r.field(indent, "context", "%s", r.pick("full", "none"))
	if r.chance(40) {
		r.field(indent, "model", "%s", r.pick("gemini/gemini-2.5-flash", "gemini/gemini-2.0-pro"))
	}
	if r.chance(30) {
		r.field(indent, "temperature", "%s", r.pick("0.5", "1", "0"))
	}
	if r.chance(30) {
		r.field(indent, "max_tokens", "%d", 1+r.IntN(999))
	}
	if inLoop {
		r.field(indent, "can_exit_loop", "%v", r.chance(40))
	}
	r.extra(indent, name, "output_schema", "{type: object, properties: {a: {type: string}}}")
	r.extra(indent, name, "request_retry", "2")
}

func quoteYAML(s string) string { return fmt.Sprintf("%q", s) }

// A12, A13, T10: what ADK can say of a definition comes back from it the same, to
// the letter, and is written the same again; every field that it cannot say is in
// the report.
func TestRandomDefinitionsGoThereAndBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	dir, beyond := t.TempDir(), 0
	for n := range 100 {
		r := &author{Rand: rnd, beyond: n%2 == 1}
		text := r.write()
		def, err := definition.Parse("random.yaml", []byte(text), definition.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		files, report := dialect.Export("random.yaml", def)
		if report.Count(dialect.Failed) > 0 {
			t.Fatalf("%v\n%s", report.Items, text)
		}
		for _, given := range r.given {
			beyond++
			agent, field, _ := strings.Cut(given, " ")
			if !slices.ContainsFunc(report.Items, func(it dialect.Item) bool {
				return it.Kind == dialect.Dropped && it.Agent == agent && it.Field == field && it.Line > 0
			}) {
				t.Fatalf("%s is not in the report\n%s\n%s", given, report.Summary(), text)
			}
		}
		folder := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(folder, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		back, err := dialect.Load(filepath.Join(folder, "root_agent.yaml"), dialect.Options{})
		if err != nil || back.Err() != nil {
			t.Fatalf("%v, %v\n%s\n%s", err, back.Err(), text, exported(files))
		}
		if diff := cmp.Diff(outlined(def.Root, ""), outlined(back.Definition.Root, "")); diff != "" {
			t.Fatalf("(-before +after)\n%s\n%s\n%s", diff, text, exported(files))
		}
		again, _ := dialect.Export("random.yaml", back.Definition)
		if diff := cmp.Diff(exported(files), exported(again)); diff != "" {
			t.Fatalf("exported again (-first +second)\n%s\n%s", diff, text)
		}
	}
	if beyond < 120 {
		t.Errorf("only %d fields that ADK has not", beyond)
	}
}
