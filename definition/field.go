// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// Field is a field that an agent of a definition can have.
type Field struct {
	Name string
	// Types are the types of agents that have the field; nil means all types.
	Types []Type
	// Root says that only the root agent has it.
	Root bool
	// Doc explains the field, on one line.
	Doc string
}

// Fields lists every field, in the order in which people write them.
func Fields() []Field { return slices.Clone(fields) }

var (
	workflows = []Type{TypeLoop, TypeSequential, TypeParallel}
	tasks     = []Type{TypeCommand, TypeCLI, TypeExpression, TypeHTTP, TypeTemplate}
)

// fields is made of the rows of the groups.
var fields []Field

// fieldNamed returns the field of that name; its name is empty if there is none.
func fieldNamed(name string) Field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return Field{}
}

func (f Field) has(t Type) bool {
	return f.Types == nil || slices.Contains(f.Types, t)
}

// Part is one key of a field whose value can be a map.
type Part struct {
	Name string
	// Value says in words which values are possible; Doc explains the part.
	Value, Doc string
	// Choices lists the words if the value is one of several words.
	Choices []string
	// Needed reports whether the map must have it.
	Needed bool
}

// Value says in words which values the field can have, such as "duration" or "whole number or none".
func (f Field) Value() string { return schema.Words(shapes()[f.Name]) }

// Choices returns the words of a field whose value is one of several words, such as stop, skip_step and
// next_iteration; nil for other fields.
func (f Field) Choices() []string { return schema.Choices(shapes()[f.Name]) }

// Parts returns the keys of the field's value if it can be a map; nil if it cannot, or if the author chooses the
// keys.
func (f Field) Parts() []Part {
	s := schema.Form(shapes()[f.Name])
	if s == nil {
		return nil
	}
	var parts []Part
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		parts = append(parts, Part{name, schema.Words(p), p.Description, schema.Choices(p), slices.Contains(s.Required, name)})
	}
	return parts
}

// Parts returns the keys that can stand in a field that is a map, in the order in which people write them:
// Parts("score"), or Parts("score", "judge") for a map inside it. A name in the path that the field does not define
// is one that people choose, such as that of an input. The result is nil if the field is no such map.
func Parts(path ...string) []string {
	if len(path) == 0 {
		return nil
	}
	s := schema.Form(shapes()[path[0]])
	for _, name := range path[1:] {
		if s == nil {
			return nil
		}
		if next := s.Properties[name]; next != nil {
			s = schema.Form(next)
		}
	}
	if s == nil {
		return nil
	}
	return slices.Clone(s.PropertyOrder)
}

// kind describes the agents of one type. A nil function, or a zero field, stands for the usual case that its comment
// names.
type kind struct {
	is    Type
	tells []string // the fields that tell the type alone, the clearest first
	an    bool     // its article is an
	check func(*checker, *Agent)
	// resolve finds, before the build, the parts of the program that the agent needs; nil if it needs none.
	resolve func(context.Context, *builder, *loader, *Agent) error
	build   func(*builder, *Agent, around) (agent.Agent, error)
	most    func(*worst, *Agent) AtMost                      // what one run uses at most; nil is nothing
	notes   func(*WorstCase, *loader, *AgentWorst)           // of what is not limited; nil is none
	expect  func(*expecter, *Agent)                          // what one run is expected to ask; nil asks nothing
	texts   func(*Agent, map[string]string) template.Dialect // adds the templates of a task, by field; nil has none
	calls   func(*Agent) float64                             // how often one run asks a model, at least; nil is as often as its sub-agents
	exits   func(*Agent) string                              // how it ends the loop, other than by exit_when; empty, and nil, if it does not
	silent  func(*Agent) bool                                // it only writes keys; nil is no
	data    func(*Agent) bool                                // its result is no text; nil is no
	result  []string                                         // the fields of its result, for exit_when; nil is unknown
	waits   bool                                             // who fails may ask to wait, as servers do
	inner   bool                                             // it only computes
	yields  string                                           // how its answer ends a loop: the hint of an unused can_exit_loop
}

// kinds lists all kinds, in the order in which the documentation shows them.
var kinds []*kind

// kind returns the description of the agent's type; for an agent without a type, an empty one.
func (t Type) kind() *kind {
	if i := slices.IndexFunc(kinds, func(k *kind) bool { return k.is == t }); i >= 0 {
		return kinds[i]
	}
	return &kind{is: t}
}

// known reports whether the type exists.
func (t Type) known() bool { return slices.Contains(Types(), t) }

// Types lists the types of agents, in the order in which the documentation shows them.
func Types() (all []Type) {
	for _, k := range kinds {
		all = append(all, k.is)
	}
	return all
}

// wordsOf converts words to strings.
func wordsOf[T ~string](words []T) (all []string) {
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}

// group is a set of fields that agents of some types have.
type group struct {
	types  []Type // nil for all
	root   bool   // only the root has the fields
	isStep bool   // only steps of loops have them
	rows   []row[Agent]
	begin  func(*Agent) // makes what the fields are kept in, with its defaults; nil if the agent itself keeps them
}

// groupOf returns the group whose fields are stored in a T, to which the slot of an agent points.
func groupOf[T any](slot func(*Agent) **T, rows []row[T], types ...Type) group {
	begin := func(a *Agent) *T {
		at := slot(a)
		if *at == nil {
			*at = new(T)
			for _, w := range rows {
				if w.preset != nil {
					w.preset(*at)
				}
			}
		}
		return *at
	}
	k := group{types: types, begin: func(a *Agent) { begin(a) }}
	for _, w := range rows {
		of := special(w.Name, w.Doc, w.shape, func(p place, n *source.Node, a *Agent) bool {
			return w.into(p, n, begin(a))
		})
		of.needed, of.single, of.hint = w.needed, w.single, w.hint
		k.rows = append(k.rows, of)
	}
	return k
}

// groupOfRoot returns the group of the fields that the root sets and the definition stores.
func groupOfRoot(rows []row[Definition]) group {
	k := groupOf(func(*Agent) **Definition { return nil }, rows)
	k.root, k.begin = true, nil
	for i, w := range rows {
		k.rows[i].into = func(p place, n *source.Node, _ *Agent) bool { return w.into(p, n, p.def) }
	}
	return k
}

// groupOfStep returns a group of fields of all steps of loops. Their struct is allocated when one of them is set.
func groupOfStep(rows []row[Step], types ...Type) group {
	k := groupOf(func(a *Agent) **Step { return &a.Step }, rows, types...)
	k.isStep, k.begin = true, nil
	return k
}

// groupOfWork returns the group of fields of agents that work in a workspace, stored as those of steps are.
func groupOfWork(rows []row[runfiles.Work], types ...Type) group {
	k := groupOf(func(a *Agent) **runfiles.Work { return &a.Work }, rows, types...)
	k.begin = nil
	return k
}

// groups lists all groups, in the order in which people write the fields.
var groups []group

func init() { // and not where they are declared, as what reads a value may read an agent
	kinds = []*kind{&loopKind, &sequentialKind, &parallelKind, &llmKind, &commandKind, &cliKind, &httpKind, &expressionKind, &templateKind,
		&a2aKind, &humanKind, &funcKind}
	groups = []group{
		{rows: headRows},
		groupOfRoot(rootRows),
		groupOf(func(a *Agent) **Loop { return &a.Loop }, loopRows, TypeLoop),
		groupOfStep(stepTimeRows, TypeSequential, TypeParallel, TypeLLM),
		{rows: taskTimeRows, types: []Type{TypeCommand, TypeCLI, TypeHTTP}},
		groupOfStep(stepTimeRows, TypeA2A, TypeFunc),
		groupOf(func(a *Agent) **Parallel { return &a.Parallel }, parallelRows, TypeParallel),
		{rows: errorRows},
		groupOfStep(stepRows),
		{rows: goOnRows},
		{rows: subRows, types: workflows},
		{rows: modelRows, types: []Type{TypeLLM, TypeLoop, TypeSequential, TypeParallel}},
		groupOf(func(a *Agent) **LLM { return &a.LLM }, llmRows, TypeLLM),
		groupOf(func(a *Agent) **Command { return &a.Command }, commandRows, TypeCommand),
		groupOf(func(a *Agent) **Command { return &a.Command }, cliRows, TypeCLI),
		groupOfWork(workRows, TypeCommand, TypeCLI),
		groupOf(func(a *Agent) **HTTP { return &a.HTTP }, httpRows, TypeHTTP),
		groupOf(func(a *Agent) **Expression { return &a.Expression }, expressionRows, TypeExpression),
		{rows: templateRows, types: []Type{TypeTemplate}},
		groupOf(func(a *Agent) **A2A { return &a.A2A }, remoteRows, TypeA2A),
		groupOf(func(a *Agent) **Human { return &a.Human }, humanRows, TypeHuman),
		{rows: funcRows, types: []Type{TypeFunc}},
		{rows: queueRows, types: []Type{TypeCommand, TypeCLI, TypeHTTP, TypeLLM, TypeA2A}},
		{rows: effectRows, types: []Type{TypeCommand, TypeCLI, TypeHTTP}},
		{rows: innerEffectRows, types: []Type{TypeExpression, TypeTemplate}},
		{rows: tailRows},
		{rows: taskRows, types: tasks},
		{rows: exitRows},
	}
	tell()
}

// tell computes the fields, and the required fields of agents, from the groups.
func tell() {
	types := make(map[string][]Type)
	for _, k := range groups {
		for _, w := range k.rows {
			types[w.Name] = append(types[w.Name], k.types...)
			if w.Doc != "" {
				w.Root = k.root
				fields = append(fields, w.Field)
			}
			if w.needed {
				needs[k.types[0]] = w.Name
			}
		}
	}
	for i := range fields {
		fields[i].Types = types[fields[i].Name]
	}
}

// shapes has the shapes of the fields' values, by the field's name, or by type and name where a type has another
// shape. They are computed when first used, because reading a file needs none.
var shapes = sync.OnceValue(func() map[string]shape {
	all := make(map[string]shape)
	for _, k := range groups {
		for _, w := range k.rows {
			switch {
			case w.single:
				for _, t := range k.types {
					all[string(t)+" "+w.Name] = w.shape()
				}
			case all[w.Name] == nil:
				all[w.Name] = w.shape()
			}
		}
	}
	return all
})

func (k group) of(t Type) bool { return k.types == nil || slices.Contains(k.types, t) }

// rowFor returns the row of a field for agents of a type; if the type is unknown, that of any type with the field.
func rowFor(t Type, name string) (k group, w row[Agent], ok bool) {
	for _, k := range groups {
		if t != "" && !k.of(t) {
			continue
		}
		for _, w := range k.rows {
			if w.Name == name {
				return k, w, true
			}
		}
	}
	return group{}, row[Agent]{}, false
}

// begin allocates the structs for the fields of the agent's type, with the defaults.
func begin(a *Agent) {
	for _, k := range groups {
		if k.begin != nil && k.of(a.Type) {
			k.begin(a)
		}
	}
}

// field reads a field. If the agent's type is unknown, it checks a field that only some types have, and drops the
// value.
func (r *reader) field(a *Agent, p pair) {
	k, w, ok := rowFor(a.Type, p.key)
	if !ok {
		return
	}
	of := a
	if a.Type == "" && k.begin != nil {
		of = &Agent{Type: k.types[0], nodes: a.nodes}
	}
	if !w.reads(place{r, a, p.key}, p.value, of) {
		a.unread = append(a.unread, p.key)
	}
}

// stepFields returns the fields that an agent can have only as a step of a loop.
func stepFields(t Type) (names []string) {
	for _, k := range groups {
		if k.isStep && k.of(t) {
			names = append(names, rowNames(k.rows)...)
		}
	}
	return names
}

// holds calls a function of a kind with the agent; a nil function means false.
func holds(a *Agent, of func(*Agent) bool) bool { return of != nil && of(a) }

// names returns the fields that an agent can have.
func (r *reader) names(a *Agent) []string {
	var names []string
	for _, f := range fields {
		if (a.Type == "" || f.has(a.Type)) && (!f.Root || a.parent == nil) {
			names = append(names, f.Name)
		}
	}
	if a.parent != nil {
		names = append(names, "ref")
	}
	return names
}

func (r *reader) unknown(a *Agent, p pair) {
	problem := r.report(p.at, CodeField, "unknown field %q", p.key)
	if hint, near, _ := otherWord(a, p); hint != "" {
		problem.suggest(hint, near)
		return
	}
	if p.key == "stop" && a.Type == TypeLoop {
		problem.suggest(`did you mean "stop_when"? not_worth, no_progress and the limits are fields of their own`, "stop_when")
		return
	}
	if near := nearField(p, r.names(a)); near != "" {
		problem.suggest(meant.Name(near))
		return
	}
	var others []string
	for _, f := range fields {
		others = append(others, f.Name)
	}
	if near := fieldNamed(suggest.Nearest(p.key, others)); near.Name != "" && a.Type != "" {
		problem.Hint = fieldOf(near, a)
	}
}

// nearField returns the most similar field; of timeout and timeouts, the one that the value fits.
func nearField(p pair, names []string) string {
	found := meant.Near(p.key, names)
	if found != "timeout" && found != "timeouts" || p.value.Kind != source.Scalar ||
		!slices.Contains(names, "timeouts") {
		return found
	}
	if _, ok := spanOf(p.value); ok {
		return "timeout"
	}
	return "timeouts"
}

// misplaced reports a field of another type of agent.
func (r *reader) misplaced(a *Agent, p pair, f Field) {
	problem := r.report(p.at, CodeField, "%s", fieldOf(f, a))
	if _, given := a.nodes["type"]; !given && a.Type == TypeLoop && f.Types[0].Workflow() {
		problem.Hint = fmt.Sprintf("sub_agents without a type make a loop; give type: %s", schema.Join(f.Types, "or"))
	}
	if p.key == "timeout" && a.Type == TypeHuman {
		problem.Hint = "deadline says how long the person may take"
	}
	if p.key == "budget" && a.Type == TypeCLI {
		problem.Hint = "max_cost limits what one call of the program may cost; budget is for the loop around it"
	}
	if alsoMeant(p.key) {
		problem.Hint, problem.Suggestion, _ = otherWord(a, p)
	}
}

// alsoMeant reports whether people write the name of a field for a field of other agents too, so that the name does
// not identify the type of its agent.
func alsoMeant(field string) bool { return meant.Fields[field] != nil }

// configured merges the fields of an agent's config, where other products write them, with the other fields.
// stop_when comes last, because it may name sub-agents.
func (r *reader) configured(ps []pair) []pair {
	var all []pair
	beside := make(map[string]int)
	for _, p := range ps {
		beside[p.key] = p.at.Line
	}
	for _, p := range ps {
		if p.key != "config" {
			all = append(all, p)
			continue
		}
		inner, _ := r.pairs(p.value, "config")
		for _, q := range inner {
			line, both := beside[q.key]
			switch {
			case q.key == "ref" || q.key == "config":
				r.report(q.at, CodeField, "unknown field %q of config", q.key).Hint = "config has fields of the agent that it is in"
			case both:
				r.report(q.at, CodeConflict, "%q is given twice, in config and in line %d", q.key, line).Hint = "give it once"
			default:
				all = append(all, q)
			}
		}
	}
	sort.SliceStable(all, func(i, k int) bool { return last(all[i]) < last(all[k]) }) // smaller than slices
	return all
}

func last(p pair) int {
	if p.key == "stop_when" {
		return 1
	}
	return 0
}

// typeHint suggests a known type for an unknown one.
func typeHint(typed string) (hint, suggestion string) {
	switch typed {
	case "task":
		return "leave the type out: instructions asks a model, command runs a program, url sends a request, set or value " +
			"computes, text writes", ""
	case "workflow":
		return "the types of workflow agents are loop, sequential and parallel", ""
	}
	if known := meant.Types[typed]; known != "" {
		return meant.Name(known)
	}
	return meant.Hint(typed, wordsOf(Types()), "the types are "+strings.Join(wordsOf(Types()), ", "))
}

// otherWord returns the hint for an unknown field that is a known mistake: another name of a field, a type in place
// of a field, or a field that belongs into another one. tells reports whether the word identifies the type of the
// agent. The hint is empty for any other field.
func otherWord(a *Agent, p pair) (hint, suggestion string, tells bool) {
	if hint := meant.Advice[p.key]; hint != "" {
		return hint, "", hint == meant.TaskField
	}
	names := meant.Fields[p.key]
	for _, name := range names {
		if f := fieldNamed(name); a.Type == "" || f.has(a.Type) {
			hint, suggestion = meant.Name(f.Name)
			return hint, suggestion, f.Types != nil
		}
	}
	if names != nil {
		return fieldOf(fieldNamed(names[0]), a), "", false
	}
	t := Type(p.key)
	if !Type(p.key).known() {
		t = Type(meant.Types[p.key])
	}
	switch {
	case t == TypeCommand:
		return "write the step as {name: …, " + meant.CommandLine(p.value.Value) + "}", "", true
	case t != "" && a.parent == nil:
		return fmt.Sprintf("write type: %s, and its fields at the top of the file", t), "", true
	case t.Workflow():
		return fmt.Sprintf("write such a step as {name: …, type: %s, sub_agents: […]}", t), "", true
	case t != "":
		return fmt.Sprintf("write such a step as {name: …, type: %s, …}, with its fields beside the type", t), "", true
	}
	return insideOf(a, p.key), "", false
}

// fieldOf names the agents that have a field which this agent cannot have.
func fieldOf(f Field, a *Agent) string {
	return fmt.Sprintf("%q is a field of %s agents; this is %s agent", f.Name, schema.Join(f.Types, "and"), article(a.Type))
}

// insideOf returns the hint for a name that belongs into one other field of the agent, as target into score.
func insideOf(a *Agent, name string) string {
	found := ""
	for _, f := range fields {
		if a.Type == "" || !f.has(a.Type) || !slices.ContainsFunc(f.Parts(), func(p Part) bool { return p.Name == name }) {
			continue
		}
		if found != "" {
			return ""
		}
		found = f.Name
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf("write it in %s: {%s: …}", found, name)
}
