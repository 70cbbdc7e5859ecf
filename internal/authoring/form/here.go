// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model/provider"
)

// Models adds a warning for each model that a run in an environment lacks, because no model is given or its key is
// not set. getenv reads the environment, where REFRAIN_MODEL is the model of the agents without one.
func (o *Outline) Models(getenv func(string) string) {
	if o.worst == nil {
		return
	}
	var without []string
	seen := make(map[string]bool)
	for _, w := range o.worst.Agents {
		a := w.Agent
		name := cmp.Or(w.Model, getenv("REFRAIN_MODEL"))
		switch {
		case a.Type != definition.TypeLLM || a.TaskQueue != "" || seen[name]: // the workers of a task queue open its models
		case name == "":
			without = append(without, a.Name)
		default:
			seen[name] = true
			p, _, err := provider.Find(name)
			if missing := p.Missing(getenv); err == nil && missing != nil {
				o.lacks(o.naming(a.Name), "the model "+name+" needs "+strings.Join(missing, " or ")+", which is not set where this server runs",
					"set it and start the server again, or choose another model")
			}
		}
	}
	if without != nil {
		o.lacks("model", "no model is given for "+strings.Join(without, ", "),
			"choose one here, such as openai/gpt-5-mini, or start the server with REFRAIN_MODEL")
	}
}

// lacks adds a warning about a model to a field.
func (o *Outline) lacks(path, message, hint string) {
	o.Runs = false
	o.add(path, &definition.Problem{Severity: definition.SeverityWarning, Code: definition.CodeModel, Message: message, Hint: hint})
}

// naming returns the path of the field that gives an agent its model. If no field does, it returns the path for a
// model of the root.
func (o *Outline) naming(agent string) string {
	found, at := "model", ""
	for a := range o.all {
		if a.Name == agent {
			at = a.Path
		}
	}
	for a := range o.all { // the nearest agent comes last
		if a.Fields["model"] != nil && strings.HasPrefix(at, a.Path) {
			found = strings.TrimPrefix(a.Path+".model", ".")
		}
	}
	return found
}

// all visits the agents of the text, each before its steps.
func (o *Outline) all(yield func(*Agent) bool) {
	for _, a := range o.Agents {
		if !a.all(yield) {
			return
		}
	}
}

func (a *Agent) all(yield func(*Agent) bool) bool {
	return yield(a) && !slices.ContainsFunc(a.Steps, func(s *Agent) bool { return !s.all(yield) })
}

// Refuse adds an error for something that a server does not accept from clients, at an agent's field. If the text has
// no such agent, the error is at the first line.
func (o *Outline) Refuse(agent, field, message string) {
	path := ""
	for a := range o.all {
		if a.Name == agent && agent != "" {
			path = strings.TrimPrefix(a.Path+"."+field, ".")
		}
	}
	o.Valid, o.Runs = false, false
	o.add(path, &definition.Problem{Severity: definition.SeverityError, Code: definition.CodeCannot, Message: message})
	o.Problems[len(o.Problems)-1].Here = true
}

// add adds a problem at a field, or at its agent if the text does not have the field.
func (o *Outline) add(path string, p *definition.Problem) {
	p.Line, p.Column, p.Length = 1, 1, 1
	nearest := ""
	for _, at := range o.places {
		if strings.HasPrefix(path, at.path) && len(at.path) > len(nearest) {
			nearest, p.Line, p.Column = at.path, at.line, at.column
		}
	}
	o.Problems = append(o.Problems, Problem{Problem: p, Path: path})
}
