// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/history/questions"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// CaseOf returns a case that asks what the runs of a session were asked, and expects what they answered. It has the inputs and the
// state with which the session began, and what people have answered; of a step that asked several times, the last answer. It fails
// for a session whose runs have not all completed.
func CaseOf(view *session.View, code *program.Code) (*check.Case, error) {
	c := &check.Case{ID: view.ID()}
	subject, err := subjectOf(c, view)
	if err != nil {
		return nil, err
	}
	asked := make(map[string]questions.Question)
	for ev := range effectiveEvents(view) {
		if err := addAnswer(c, asked, ev); err != nil {
			return nil, err
		}
		if ev.Mark == nil || ev.Mark.Kind != mark.KindRunStarted {
			continue
		}
		if len(c.Turns) == 0 {
			p, err := program.Of(view)
			if err != nil {
				return nil, err
			}
			def, err := p.DefinitionFor(code)
			if err != nil {
				return nil, err
			}
			c.Values = make(map[string]any)
			for _, in := range def.Inputs {
				v, ok := ev.Actions.StateDelta[in.Name]
				if !ok { // a client of ADK has given it to the session
					v, ok = subject.State[in.Name]
				}
				if ok && !canonical.Same(v, in.Default) {
					c.Values[in.Name] = v
				}
			}
			c.State = stateOf(def, ev.Actions.StateDelta)
		}
		c.Turns = append(c.Turns, check.Turn{Input: ev.Text()})
	}
	if len(c.Turns) == 0 || len(subject.Turns) < len(c.Turns) {
		return nil, fmt.Errorf("run %s has not completed, so there is no answer to expect", view.ID())
	}
	for i := range c.Turns {
		c.Turns[i].Expected, c.Turns[i].Calls = &subject.Turns[i].Answer, subject.Turns[i].Calls
	}
	return c, nil
}

// stateOf returns the state with which a session began, without inputs and what the definition gives itself.
func stateOf(def *definition.Definition, began map[string]any) map[string]any {
	state := maps.Clone(began)
	maps.DeleteFunc(state, func(key string, _ any) bool { return !statekey.Own(key) || !statekey.Durable(key) })
	for _, in := range def.Inputs {
		delete(state, in.Name)
	}
	maps.DeleteFunc(state, func(key string, v any) bool {
		own, ok := def.State[key]
		return ok && canonical.Same(v, own)
	})
	return state
}

// addAnswer adds what a person has answered to a case. asked are the questions of the session by their IDs.
func addAnswer(c *check.Case, asked map[string]questions.Question, ev *session.Event) error {
	if ev.Mark == nil {
		return nil
	}
	switch ev.Mark.Kind {
	case mark.KindAsked:
		q := questions.Question{At: ev.Address}
		if err := ev.Mark.Decode(&q.Question); err != nil {
			return err
		}
		asked[q.ID] = q
	case mark.KindAnswered:
		var a mark.Answer
		if err := ev.Mark.Decode(&a); err != nil {
			return err
		}
		q, ok := asked[a.ID]
		var v any
		if !ok || json.Unmarshal(a.Value, &v) != nil {
			return nil
		}
		if m, ok := v.(map[string]any); ok && q.Kind == mark.AskConfirmation && len(m) == 1 {
			if yes, ok := m["confirmed"]; ok {
				v = yes
			}
		}
		if c.Answers == nil {
			c.Answers = make(map[string]any)
		}
		c.Answers[q.At.Agent()] = v
	}
	return nil
}

// Extend returns the text of a file of cases in YAML with one more case; the file need not exist. dir is the folder of fsys, for people.
// It fails if the file has a case with the ID, or has the cases in a form that cannot be appended to.
func Extend(fsys fs.FS, name, dir string, c *check.Case) ([]byte, error) {
	file := filepath.Join(dir, name)
	if ext := filepath.Ext(file); ext != ".yaml" && ext != ".yml" {
		return nil, fmt.Errorf("%s: a case can be added to a YAML file only, such as cases.yaml", file)
	}
	text, err := fs.ReadFile(fsys, name)
	before := 0
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = []byte("cases:\n")
	case err != nil:
		return nil, err
	default:
		set, err := cases.Read(fsys, name, dir)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(set.Cases, func(o check.Case) bool { return o.ID == c.ID }) {
			return nil, fmt.Errorf("%s has a case with the ID %s", file, c.ID)
		}
		before = len(set.Cases)
	}
	more, ok := insertCase(string(text), c)
	if !ok {
		return nil, fmt.Errorf("%s: the cases are not a list below \"cases:\", so that none can be added", file)
	}
	set, err := cases.ReadWith(fsys, name, dir, map[string][]byte{name: []byte(more)})
	if err != nil || len(set.Cases) != before+1 {
		return nil, fmt.Errorf("%s: the case cannot be added to the cases in this form; write it by hand", file)
	}
	return []byte(more), nil
}

// Append appends a case to a file of cases in YAML, which it creates if it does not exist. If it fails, as [Extend] does, the file is
// unchanged.
func Append(file string, c *check.Case) error {
	dir := filepath.Dir(file)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := Extend(root.FS(), filepath.Base(file), dir, c)
	if err != nil {
		return err
	}
	made, err := os.CreateTemp(dir, ".cases-*") // so that the file is never half written
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	_, err = made.Write(text)
	if err = errors.Join(err, made.Close()); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	return errors.Join(os.Chmod(made.Name(), mode), os.Rename(made.Name(), file))
}

// insertCase returns a text with a case at the end of the list below "cases:".
func insertCase(text string, c *check.Case) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.TrimRight(l, " \t\r\n") == "cases:" })
	if at < 0 {
		return "", false
	}
	indent, end := "  ", at+1
	for i := at + 1; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], "\r\n")
		short := strings.TrimLeft(line, " ")
		if end == at+1 && strings.HasPrefix(short, "- ") {
			indent = line[:len(line)-len(short)]
		}
		switch {
		case short == "" || strings.HasPrefix(short, "#"):
			continue
		case line == short && !strings.HasPrefix(short, "- "):
			i = len(lines)
			continue
		}
		end = i + 1
	}
	head := strings.Join(lines[:end], "")
	if !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + caseText(c, indent) + strings.Join(lines[end:], ""), true
}

// caseText returns a case as an item of a list in YAML.
func caseText(c *check.Case, indent string) string {
	var b strings.Builder
	put := func(before, in, key string, v any) {
		b.WriteString(before + key + ": " + scalar(v, in) + "\n")
	}
	in := indent + "  "
	put(indent+"- ", in, "id", c.ID)
	turn := func(before, in string, t *check.Turn) {
		if t.Input != "" {
			put(before, in, "input", t.Input)
			before = in
		}
		put(before, in, "expected", *t.Expected)
		if len(t.Calls) > 0 {
			put(in, in, "calls", t.Calls)
		}
	}
	if len(c.Turns) == 1 {
		turn(in, in, &c.Turns[0])
	} else {
		b.WriteString(in + "turns:\n")
		for i := range c.Turns {
			turn(in+"  - ", in+"    ", &c.Turns[i])
		}
	}
	for _, part := range []struct {
		name   string
		values map[string]any
	}{{"set", c.Values}, {"state", c.State}, {"answers", c.Answers}} {
		switch {
		case len(part.values) > 0:
			b.WriteString(in + part.name + ":\n")
		case part.name == "set" && len(c.Turns) == 1 && c.Turns[0].Input == "":
			b.WriteString(in + "set: {}\n") // in place of the input
		}
		for _, key := range slices.Sorted(maps.Keys(part.values)) {
			put(in+"  ", in+"  ", scalar(key, ""), part.values[key])
		}
	}
	return b.String()
}

// scalar returns a value as YAML: a text of several lines as a block, any other value as JSON.
func scalar(v any, indent string) string {
	text, ok := v.(string)
	if ok && strings.Contains(text, "\n") && isBlock(text) {
		return "|-\n" + indent + "  " + strings.ReplaceAll(text, "\n", "\n"+indent+"  ")
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// isBlock reports whether a text can be a block of YAML as it is.
func isBlock(text string) bool {
	odd := func(r rune) bool { return r != '\n' && (!unicode.IsPrint(r) || r == '\ufeff') }
	if strings.ContainsFunc(text, odd) || strings.HasSuffix(text, "\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") {
		return false
	}
	for line := range strings.Lines(text) {
		if l := strings.TrimRight(line, "\n"); l != strings.TrimRight(l, " ") {
			return false
		}
	}
	return true
}
