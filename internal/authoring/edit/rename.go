// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/internal/vocabulary"
)

// Use is a place where a definition uses a name.
type Use struct {
	// Path is the path of the field, such as sub_agents[1].text.
	Path string
	// Line and Column are the position of the name in the text, from 1, in characters, and Text is its line, without
	// surrounding spaces.
	Line, Column int
	Text         string
	// Note says why the place was not changed; it is empty for a changed place.
	Note string
}

// Renaming is the result of a rename: the places that it has changed, with their new text, and the places that it has
// not changed although they may use the name.
type Renaming struct{ Changed, Left []Use }

// RenameKey renames a key of the state: where it is given or written (inputs, state, shapes, output_key, result_key,
// set, the keys of an edit), and wherever it is read, in texts, expressions, the score and the like, also as
// prev.KEY, best.KEY and rejected.KEY. In the body of a section it treats a name as the key, although the name may be
// a field of an item. It changes neither the files to which the definition refers, nor expressions that may read any
// key, and lists both.
//
// It fails if there is no such key, if the new name is already a key or cannot be one, and if a text or an expression
// cannot be parsed.
func (e *Editor) RenameKey(from, to string) (Renaming, error) {
	var out Renaming
	before, text := e.sheet, e.Bytes()
	err := e.do("rename key", from, func(bool) (a attempt, err error) {
		a, out, err = e.sheet.renameKey(from, to)
		return a, err
	})
	if err != nil {
		return Renaming{}, err
	}
	if now := unwritten(e.Bytes()); len(now) > 0 && len(now) > len(unwritten(text)) {
		e.sheet = before
		return Renaming{}, &Error{Op: "rename key", Path: from, Line: now[0].Line, Column: now[0].Column,
			Err: errors.New("the key is read here in an unknown way; rename it by hand")}
	}
	out.Changed, _ = e.sheet.uses(to, naming.keys)
	return out, nil
}

// unwritten are the places where a definition reads keys that nobody writes.
func unwritten(data []byte) (found definition.Problems) {
	d, err := definition.Parse("definition", data, definition.Options{})
	all, _ := errors.AsType[definition.Problems](err)
	if err == nil {
		all = d.Warnings()
	}
	for _, p := range all {
		if p.Code == definition.CodeUnknownKey {
			found = append(found, p)
		}
	}
	return found
}

// RenameAgent renames an agent, where it is described and wherever the definition names it: in order, as the judge of
// a score, in stop_when. It does not change texts for models.
//
// It fails if the text describes no such agent, or two, and if the new name is taken or invalid.
func (e *Editor) RenameAgent(from, to string) (Renaming, error) {
	err := e.do("rename agent", from, func(bool) (attempt, error) { return e.sheet.renameAgent(from, to) })
	if err != nil {
		return Renaming{}, err
	}
	changed, _ := e.sheet.uses(to, naming.agents)
	return Renaming{Changed: changed}, nil
}

// agents are the agents that a scalar names.
func (n naming) agents() (found []mention, any bool, err error) {
	if n.role == roleAgent || n.role == roleNamed {
		found = []mention{{name: n.node.Value, to: len(n.node.Value)}}
	}
	return found, false, nil
}

// uses lists where a name is used.
func (s *sheet) uses(name string, names func(naming) ([]mention, bool, error)) (all []Use, err error) {
	seen := make(map[*yaml.Node]bool)
	for _, n := range s.namings() {
		found, _, err := names(n)
		if err != nil {
			return nil, s.fail(n.node, "%s cannot be read: %w", n.path, err)
		}
		for _, m := range found {
			if m.name == name && !seen[n.node] {
				all = append(all, s.use(n, s.Inside(n.node), m.from))
			}
		}
		seen[n.node] = true
	}
	return all, nil
}

// use is a place in a scalar, whose bytes stand at the places.
func (s *sheet) use(n naming, places []source.Piece, from int) Use {
	u := Use{Path: n.path, Line: n.node.Line, Column: n.node.Column}
	if from < len(places) && places[from].To > 0 {
		u.Line, u.Column = s.Place(places[from].From)
	}
	u.Text = strings.TrimSpace(s.Row(u.Line - 1))
	return u
}

func (s *sheet) renameKey(from, to string) (a attempt, out Renaming, err error) {
	switch {
	case from == definition.LoopOutput:
		return a, out, errors.New("loop_output is not a key; it marks the finalizer of a loop")
	}
	if wrong := vocabulary.Key(to, "the new name"); wrong != nil {
		return a, out, errors.New(wrong.Message)
	}
	var keys []string
	r := rewriting{sheet: s, values: make(map[*yaml.Node]string)}
	for _, n := range s.namings() {
		if n.role == roleFile {
			u := s.use(n, nil, 0)
			u.Note = "the file " + n.node.Value + " may use it; look there"
			out.Left = append(out.Left, u)
			continue
		}
		found, any, err := n.keys()
		if err != nil {
			return a, out, s.fail(n.node, "%s cannot be read: %w", n.path, err)
		}
		if any {
			u := s.use(n, nil, 0)
			u.Note = "the expression may read any key"
			out.Left = append(out.Left, u)
		}
		for _, m := range found {
			if keys = append(keys, m.name); m.name == to {
				return a, out, s.fail(n.node, "another key is called %q; choose another name", to)
			}
		}
		if err := r.rename(n, found, from, to); err != nil {
			return a, out, err
		}
		if err := r.sameKeys(n, found, from, to); err != nil {
			return a, out, err
		}
	}
	if len(r.values) == 0 {
		slices.Sort(keys)
		return a, out, unknownName("key", from, slices.Compact(keys))
	}
	a, err = r.attempt()
	return a, out, err
}

func unknownName(what, name string, names []string) error {
	hint := ""
	if near := suggest.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Errorf("there is no %s %q%s", what, name, hint)
}

func (s *sheet) renameAgent(from, to string) (attempt, error) {
	if problem := vocabulary.AgentName(to); problem != "" {
		return attempt{}, errors.New(problem)
	}
	var names []string
	described := 0
	r := rewriting{sheet: s, values: make(map[*yaml.Node]string)}
	for _, n := range s.namings() {
		found, _, _ := n.agents()
		for _, m := range found {
			switch {
			case m.name == to:
				return attempt{}, s.fail(n.node, "another agent is called %q; choose another name", to)
			case n.role == roleAgent && m.name == from:
				described++
			}
			if n.role == roleAgent {
				names = append(names, m.name)
			}
		}
		if described > 1 {
			return attempt{}, s.fail(n.node, "two agents are called %q; give one of them another name with set", from)
		}
		if err := r.rename(n, found, from, to); err != nil {
			return attempt{}, err
		}
	}
	if described == 0 {
		return attempt{}, unknownName("agent", from, names)
	}
	return r.attempt()
}
