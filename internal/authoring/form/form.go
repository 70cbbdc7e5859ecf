// SPDX-License-Identifier: Apache-2.0

// Package form computes what a form and an editor show of a definition that a person is writing: its agents with
// their fields, the problems with their fields and fixes, how the run can end, and the possible texts at a place.
//
//	o := form.Read("refine.yaml", text, definition.Options{})
//	for _, a := range o.Agents {
//		fmt.Println(a.Name, a.Type, a.Fields["output_key"])
//	}
//
// Unlike package definition, package form reads as much as it can of texts that are not valid yet. Package edit makes changes.
package form

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/text/source"
)

// Outline is the content of a text as a form shows it.
type Outline struct {
	// Valid is true if the text has no error and can run.
	Valid bool `json:"valid"`
	// Runs is true if the text is valid and no model is missing in this environment.
	Runs bool `json:"runs"`
	// Title, Description and Query are those of the definition. Inputs lists the inputs of a run.
	Title       string             `json:"title,omitzero"`
	Description string             `json:"description,omitzero"`
	Query       string             `json:"query,omitzero"`
	Inputs      []definition.Input `json:"inputs,omitzero"`
	// Agents has the root agent; empty if the text is not the YAML of an agent.
	Agents   []*Agent  `json:"agents"`
	Problems []Problem `json:"problems"`
	// Ends has the loops with the ways in which they can end. Worst has the largest possible usage of each agent.
	// Both are empty if the text is not valid.
	Ends  []Ends  `json:"ends,omitzero"`
	Worst []Worst `json:"worst,omitzero"`
	// Expected is the expected cost of the iterations; nil if the text is not valid, or if its agents call no model.
	Expected *definition.Expected `json:"expected,omitzero"`

	worst  *definition.WorstCase
	places places
}

// Agent is an agent as the text describes it.
type Agent struct {
	// Path is the place of the agent in the notation of package edit; "" is the root.
	Path string `json:"path"`
	Name string `json:"name"`
	// Type is empty if the text does not determine it yet. Ref is the file that describes the agent. The name, the
	// type and the permission of an agent with a Ref are known only if the text is valid.
	Type definition.Type `json:"type"`
	Ref  string          `json:"ref,omitzero"`
	// Final is true if the agent writes the loop's result after the loop.
	Final bool `json:"final,omitzero"`
	// CanExit is true if the agent may end the loop around it, by can_exit_loop, or else by exit_when or the tool exit_loop.
	CanExit bool `json:"can_exit,omitzero"`
	// Line is the line where the agent begins, from 1.
	Line int `json:"line"`
	// Fields has the values in the text, in their JSON form.
	Fields map[string]any `json:"fields"`
	// Steps has the steps of a workflow agent; nil for other agents.
	Steps []*Agent `json:"steps,omitzero"`
}

// Problem is a problem of the definition with the path of its field and possible fixes.
type Problem struct {
	*definition.Problem
	// Path is the path of the innermost field at the problem's place; empty if there is none.
	Path  string `json:"path,omitzero"`
	Fixes []Fix  `json:"fixes,omitzero"`
	// Here is true if the text is valid but this server does not run it; see [Outline.Refuse].
	Here bool `json:"here,omitzero"`
}

// Fix is a change that solves a problem. Text replaces Length characters of a line, starting at Column.
type Fix struct {
	Title  string `json:"title"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Length int    `json:"length"`
	Text   string `json:"text"`
}

// Ends describes the ways in which a loop can end.
type Ends struct {
	Loop string   `json:"loop"`
	Ways []string `json:"ways"`
}

// Worst is the largest possible usage of an agent in a run.
type Worst struct {
	Name     string           `json:"name"`
	Path     string           `json:"path"`
	Level    int              `json:"level"`
	Runs     definition.Bound `json:"runs"`
	Requests definition.Bound `json:"requests"`
	Tokens   definition.Bound `json:"tokens"`
	Cost     definition.Bound `json:"cost"`
	Seconds  definition.Bound `json:"seconds"`
}

// Read returns the outline of a text. It does not fail; errors of the text are in the outline's problems.
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

// of adds to the outline what only a valid definition determines.
func (o *Outline) of(def *definition.Definition, worst *definition.WorstCase) {
	o.worst = worst
	o.Agents[0].fromFiles(def.Root)
	o.Title, o.Description, o.Query, o.Inputs = def.Name, def.Description, def.Query, def.Inputs
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
			Name: a.Agent.Name, Path: a.Agent.Name, Level: a.Depth, Runs: a.Runs, Requests: a.Calls,
			Tokens: a.Tokens, Cost: a.Cost, Seconds: a.Seconds,
		})
	}
}

// agentOf reads an agent, which may be incomplete.
func agentOf(n *source.Node, path string) *Agent {
	a := &Agent{Path: path, Line: n.Line, Fields: make(map[string]any)}
	var names []string
	var steps *source.Node
	fields := source.Pairs(n)
	for i := 0; i < len(fields); i++ {
		key, val := fields[i].Key.Value, source.Deref(fields[i].Value)
		names = append(names, key)
		var v any
		switch {
		case key == "sub_agents":
			steps = val
		case key == "config":
			fields = append(fields, source.Pairs(val)...)
		case val.Decode(&v) == nil:
			a.Fields[key] = v
		}
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

// fromFiles adds what only the files of the steps determine, from the loaded agent.
func (a *Agent) fromFiles(read *definition.Agent) {
	for i := range min(len(a.Steps), len(read.SubAgents)) {
		step, as := a.Steps[i], read.SubAgents[i]
		if step.Ref != "" {
			step.Name, step.Type, step.CanExit = as.Name, as.Type, as.Permitted()
		}
		step.fromFiles(as)
	}
}

// canExit reports whether an agent with these fields may end the loop around it.
func canExit(fields map[string]any) bool {
	if given, ok := fields["can_exit_loop"].(bool); ok {
		return given
	}
	tools, _ := fields["tools"].([]any)
	return fields["exit_when"] != nil || slices.Contains(tools, any("exit_loop")) || slices.Contains(tools, any("exitLoop"))
}

// FixesOf returns the changes that a problem suggests.
func FixesOf(p *definition.Problem) []Fix {
	if p.Suggestion == "" || p.Line == 0 || p.Length == 0 {
		return nil
	}
	text := p.Suggestion
	if line := []rune(p.Excerpt); p.Column <= len(line) && line[p.Column-1] != '{' { // the text keeps its braces
		text = strings.TrimSuffix(strings.TrimPrefix(text, "{{"), "}}")
	}
	return []Fix{{Title: "Use " + text, Line: p.Line, Column: p.Column, Length: p.Length, Text: text}}
}

// places has the fields of a text in the order of their positions.
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

// at returns the path of the last field that begins at or before a position.
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
