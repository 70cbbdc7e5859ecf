// SPDX-License-Identifier: Apache-2.0

// Package form says what a form and an editor show of a definition while it is being written:
// its agents with the fields that the text gives them, the problems with their fields and fixes,
// how it can end, and what can be written at a place.
//
//	o := form.Read("refine.yaml", text, definition.Options{})
//	for _, a := range o.Agents {
//		fmt.Println(a.Name, a.Type, a.Fields["output_key"])
//	}
//
// Unlike package definition, it reads texts that are not valid yet as far as they go. Package
// edit makes the changes.
package form

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/definition/edit"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
	"github.com/refrain-dev/refrain/internal/source"
)

// Outline is the content of a text as a form shows it.
type Outline struct {
	// Valid says that the text can be run: it has no error.
	Valid bool `json:"valid"`
	// Runs says that it can be run here: it is valid, and no model is missing.
	Runs bool `json:"runs"`
	// Title, Description and Query are those of the definition, Inputs what a run can give.
	Title       string  `json:"title,omitzero"`
	Description string  `json:"description,omitzero"`
	Query       string  `json:"query,omitzero"`
	Inputs      []Input `json:"inputs,omitzero"`
	// Agents is the root; empty if the text is not YAML of an agent.
	Agents   []*Agent  `json:"agents"`
	Problems []Problem `json:"problems"`
	// Ends are the loops with the ways in which they can end, Worst is what the agents can use at
	// most. They are empty if the text is not valid.
	Ends  []Ends  `json:"ends,omitzero"`
	Worst []Worst `json:"worst,omitzero"`
	// Expected is what the iterations are expected to cost; nil if the text is not valid, or if it asks no
	// model.
	Expected *definition.Expected `json:"expected,omitzero"`

	worst  *definition.WorstCase
	places places
}

// Input is an input of a run.
type Input struct {
	Name        string               `json:"name"`
	Type        definition.InputType `json:"type"`
	Description string               `json:"description,omitzero"`
	Required    bool                 `json:"required,omitzero"`
	Default     any                  `json:"default,omitzero"`
}

// Agent is an agent as it is written.
type Agent struct {
	// Path is where it is, as package edit names places; "" is the root.
	Path string `json:"path"`
	Name string `json:"name"`
	// Type is empty if the text does not tell it yet. Ref is the file that describes the agent: only a valid text
	// tells the name, the type and the permission that stand there.
	Type definition.Type `json:"type"`
	Ref  string          `json:"ref,omitzero"`
	// Final says that it writes the loop's result, after the loop.
	Final bool `json:"final,omitzero"`
	// CanExit says that it may end the loop around it: can_exit_loop, or else exit_when or the tool exit_loop.
	CanExit bool `json:"can_exit,omitzero"`
	// Line is where it begins, from 1.
	Line int `json:"line"`
	// Fields are the values that the text gives, as JSON has them.
	Fields map[string]any `json:"fields"`
	// Steps are those of a workflow agent; nil for others.
	Steps []*Agent `json:"steps,omitzero"`
}

// Problem is one of the definition's, with the path of its field and what may mend it.
type Problem struct {
	*definition.Problem
	// Path is that of the innermost field at the problem's place; empty if there is none.
	Path  string `json:"path,omitzero"`
	Fixes []Fix  `json:"fixes,omitzero"`
	// Here says that the text is right, and that this server does not run it: see [Outline.Refuse].
	Here bool `json:"here,omitzero"`
}

// Fix is a change that solves a problem: Text replaces Length characters of a line, from Column on.
type Fix struct {
	Title  string `json:"title"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Length int    `json:"length"`
	Text   string `json:"text"`
}

// Ends are the ways in which a loop can end, in words.
type Ends struct {
	Loop string   `json:"loop"`
	Ways []string `json:"ways"`
}

// Worst is the most that an agent can use in a run. A nil value is unknown, or has no limit.
type Worst struct {
	Name     string   `json:"name"`
	Path     string   `json:"path"`
	Level    int      `json:"level"`
	Runs     *float64 `json:"runs"`
	Requests *float64 `json:"requests"`
	Tokens   *float64 `json:"tokens"`
	Cost     *float64 `json:"cost"`
	Seconds  *float64 `json:"seconds"`
}

// Read reads a text. It does not fail: what is wrong is in the outline's problems.
func Read(name string, text []byte, opts definition.Options) *Outline {
	o := &Outline{Agents: []*Agent{}, Problems: []Problem{}}
	root, _ := source.Read(bytes.NewReader(text), source.New(name, name, 0, ""), new(int))
	if root != nil && root.Kind == source.Map {
		o.Agents = append(o.Agents, agentOf(root, ""))
	}
	def, err := definition.Parse(name, text, opts)
	var problems definition.Problems
	switch {
	case errors.As(err, &problems):
	case err != nil:
		problems = definition.Problems{{Severity: definition.SeverityError, Code: definition.CodeFile, Message: err.Error()}}
	default:
		o.Valid, o.Runs = true, true
		worst := def.Worst(definition.Assumed{})
		problems = worst.Problems()
		o.of(def, worst)
	}
	o.places = placesOf(root)
	for _, p := range problems {
		o.Problems = append(o.Problems, Problem{Problem: p, Path: o.places.at(p.Line, p.Column), Fixes: FixesOf(p)})
	}
	return o
}

// of takes what only a valid definition tells.
func (o *Outline) of(def *definition.Definition, worst *definition.WorstCase) {
	o.worst = worst
	o.Agents[0].fromFiles(def.Root)
	o.Title, o.Description, o.Query = def.Name, def.Description, def.Query
	for _, in := range def.Inputs {
		o.Inputs = append(o.Inputs, Input{in.Name, in.Type, in.Description, in.Required, in.Default})
	}
	for a := range def.Root.All {
		if a.Type != definition.TypeLoop {
			continue
		}
		e := Ends{Loop: a.Name}
		for _, way := range worst.Stops(a) {
			e.Ways = append(e.Ways, way.Text)
		}
		o.Ends = append(o.Ends, e)
	}
	if e := def.Expected(definition.Assumed{}); len(e.Loops) > 0 {
		o.Expected = e
	}
	for _, a := range worst.Agents {
		o.Worst = append(o.Worst, Worst{
			Name: a.Agent.Name, Path: a.Agent.Name, Level: a.Depth, Runs: bound(a.Runs), Requests: bound(a.Calls),
			Tokens: bound(a.Tokens), Cost: bound(a.Cost), Seconds: bound(a.Seconds),
		})
	}
}

func bound(b definition.Bound) *float64 {
	if b.Unbounded() {
		return nil
	}
	return new(float64(b))
}

// agentOf reads an agent as far as it is written.
func agentOf(n *source.Node, path string) *Agent {
	a := &Agent{Path: path, Line: n.Line, Fields: make(map[string]any)}
	var names []string
	var steps *source.Node
	take := func(m *source.Node) {
		for i := 0; i+1 < len(m.Content); i += 2 {
			key, val := m.Content[i].Value, source.Deref(m.Content[i+1])
			names = append(names, key)
			if key == "sub_agents" {
				steps = val
				continue
			}
			if key == "config" {
				continue
			}
			var v any
			if val.Decode(&v) == nil {
				a.Fields[key] = v
			}
		}
	}
	take(n)
	if config := field(n, "config"); config != nil && config.Kind == source.Map {
		take(config)
	}
	a.Name, _ = a.Fields["name"].(string)
	a.Ref, _ = a.Fields["ref"].(string)
	given, _ := a.Fields["type"].(string)
	if a.Ref == "" {
		a.Type = definition.TypeOf(given, names...)
	}
	a.Final = a.Fields["output_key"] == definition.LoopOutput
	a.CanExit = canExit(a.Fields)
	if steps == nil || steps.Kind != source.List {
		if a.Type.Workflow() {
			a.Steps = []*Agent{}
		}
		return a
	}
	a.Steps = []*Agent{}
	list := "sub_agents"
	if path != "" {
		list = path + ".sub_agents"
	}
	for i, c := range steps.Content {
		if c = source.Deref(c); c.Kind == source.Map {
			a.Steps = append(a.Steps, agentOf(c, list+edit.FieldPath(i)))
		}
	}
	return a
}

// fromFiles takes what only the files of the steps tell, from the same agent as it was read.
func (a *Agent) fromFiles(read *definition.Agent) {
	for i := range min(len(a.Steps), len(read.SubAgents)) {
		step, as := a.Steps[i], read.SubAgents[i]
		if step.Ref != "" {
			step.Name, step.Type, step.CanExit = as.Name, as.Type, as.Permitted()
		}
		step.fromFiles(as)
	}
}

// canExit reports whether an agent with some fields may end the loop around it.
func canExit(fields map[string]any) bool {
	if given, ok := fields["can_exit_loop"].(bool); ok {
		return given
	}
	tools, _ := fields["tools"].([]any)
	return fields["exit_when"] != nil || slices.Contains(tools, any("exit_loop")) || slices.Contains(tools, any("exitLoop"))
}

func field(n *source.Node, name string) *source.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return source.Deref(n.Content[i+1])
		}
	}
	return nil
}

// meant finds what a hint proposes: a word in quotes, or a placeholder.
var meant = lazyregexp.New(`did you mean (?:"([^"]+)"|(\{\{[^}]+\}\}))`)

// FixesOf are the changes that the hint of a problem proposes in its place.
func FixesOf(p *definition.Problem) []Fix {
	m := meant().FindStringSubmatch(p.Hint)
	if m == nil || p.Line == 0 || p.Length == 0 {
		return nil
	}
	text := m[1] + m[2]
	if line := []rune(p.Excerpt); p.Column <= len(line) && line[p.Column-1] != '{' { // the braces stay
		text = strings.TrimSuffix(strings.TrimPrefix(text, "{{"), "}}")
	}
	return []Fix{{Title: "Use " + text, Line: p.Line, Column: p.Column, Length: p.Length, Text: text}}
}

// places are the fields of a text by where they begin.
type places []place

type place struct {
	line, column int
	path         string
}

func placesOf(root *source.Node) places {
	var all places
	var visit func(n *source.Node, path []any)
	visit = func(n *source.Node, path []any) {
		switch n.Kind {
		case source.Map:
			for i := 0; i+1 < len(n.Content); i += 2 {
				at := append(slices.Clone(path), n.Content[i].Value)
				all = append(all, place{n.Content[i].Line, n.Content[i].Column, edit.FieldPath(at...)})
				visit(n.Content[i+1], at)
			}
		case source.List:
			for i, c := range n.Content {
				at := append(slices.Clone(path), i)
				all = append(all, place{c.Line, c.Column, edit.FieldPath(at...)})
				visit(c, at)
			}
		}
	}
	if root != nil {
		visit(root, nil)
	}
	return all
}

// at is the path of the last field of an agent that begins at or before a place: of
// sub_agents[1].score.key it is sub_agents[1].score.
func (ps places) at(line, column int) string {
	if line == 0 {
		return ""
	}
	best := ""
	for _, p := range ps {
		if p.line < line || p.line == line && p.column <= column {
			best = p.path
		}
	}
	return best
}
