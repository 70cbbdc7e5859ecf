// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/text/source"
)

const (
	maxCases  = 10_000
	maxRepeat = 1_000
	maxID     = 200      // characters
	maxTable  = 16 << 20 // bytes of a CSV or JSON Lines file
)

// Open reads a file of cases. Files that it names, and the test_config.json of ADK, are looked up in its folder, and
// links do not lead out of the folder. The errors are those of [Read] and of the folder.
func Open(name string) (*Set, error) {
	dir := filepath.Dir(name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return Read(root.FS(), filepath.Base(name), dir)
}

// Read reads a file of cases of a file system, which should not lead outside its root, such as that of [os.Root]. The
// ending of the name decides between CSV (.csv), JSON Lines (.jsonl) and YAML or JSON. The error is
// [definition.Problems], in the order of the file, and names files below the folder dir.
func Read(fsys fs.FS, name, dir string) (*Set, error) { return ReadWith(fsys, name, dir, nil) }

// ReadWith is [Read] with texts in place of what some files of the file system have, by the names of the files.
func ReadWith(fsys fs.FS, name, dir string, texts map[string][]byte) (*Set, error) {
	f := &file{fsys: fsys, texts: texts, dir: dir, at: make(map[string]place), references: make(map[*string]reference), rubrics: make(map[rubricsOf][]string),
		set: &Set{Repeat: DefaultRepeat, Parallel: DefaultParallel, Seed: DefaultSeed, Decide: check.Measures[0]}}
	f.set.Name = strings.TrimSuffix(path.Base(name), path.Ext(name))
	for _, ending := range []string{".test", ".evalset"} {
		f.set.Name = strings.TrimSuffix(f.set.Name, ending)
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".jsonl":
		f.table(name)
	default:
		f.document(name)
	}
	f.number()
	if len(f.problems) == 0 {
		f.checkReferences()
		if f.decide != nil {
			f.decide()
		}
	}
	if err := sortProblems(f.problems); err != nil {
		return nil, err
	}
	return f.set, nil
}

// file is the reading of a set.
type file struct {
	fsys       fs.FS
	texts      map[string][]byte // in place of files of fsys
	dir        string            // the folder of fsys, for people
	set        *Set
	problems   definition.Problems
	at         map[string]place // of the cases, by their IDs
	references map[*string]reference
	rubrics    map[rubricsOf][]string // of ADK's cases
	decide     func()                 // checks the field "decide" when all checks are known; nil if it is left out
}

// place is where a case stands.
type place struct {
	name string
	line int
}

// reader returns a reader of a text.
func (f *file) reader(name, text string) *reader {
	return &reader{src: source.New(filepath.Join(f.dir, name), name, 0, text), problems: &f.problems, references: f.references}
}

// data reads a file whole.
func (f *file) data(name string, most int64) ([]byte, bool) {
	if text, ok := f.texts[name]; ok {
		return text, true
	}
	r := f.reader(name, "")
	opened, err := source.Open(f.fsys, name)
	if err != nil {
		r.at(source.Span{}, definition.CodeFile, "the file cannot be read: %v", source.Cause(err))
		return nil, false
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, most+1))
	switch {
	case err != nil:
		r.at(source.Span{}, definition.CodeFile, "the file cannot be read: %v", source.Cause(err))
	case int64(len(data)) > most:
		p := r.at(source.Span{}, definition.CodeFile, "the file is larger than %d MiB", most>>20)
		p.Hint = "split the cases into several files, or keep them in a .jsonl file"
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), err == nil && int64(len(data)) <= most
}

// document reads a file in YAML or JSON.
func (f *file) document(name string) {
	data, ok := f.data(name, source.MaxFile)
	if !ok {
		return
	}
	r := f.reader(name, "")
	root, faults := source.Read(bytes.NewReader(data), r.src, new(int))
	r.faults(faults)
	switch {
	case root == nil:
	case isADK(root):
		f.adk(r, source.Deref(root))
	case source.Deref(root).Kind == source.List:
		r.report(root, definition.CodeValue, "a file of cases must be a map, got a list").Hint = "write cases: before the list"
	default:
		f.root(r, root)
	}
}

// root reads the map of a file in our form.
func (f *file) root(r *reader, n *source.Node) {
	s := f.set
	given := r.read(n, "the file", fields{
		{"name", func(n *source.Node) { s.Name = r.text(n, "name") }},
		{"cases", func(n *source.Node) { f.cases(r, n) }},
		{"checks", func(n *source.Node) { s.Checks = r.checks(n, "checks") }},
		{"pass", func(n *source.Node) { s.Pass = r.pass(n) }},
		{"decide", func(n *source.Node) { f.decide = func() { s.Decide = r.choice(n, "decide", f.measures()) } }},
		{"repeat", func(n *source.Node) { s.Repeat = int(r.whole(n, "repeat", 1, maxRepeat)) }},
		{"parallel", func(n *source.Node) { s.Parallel = int(r.whole(n, "parallel", 1, 256)) }},
		{"seed", func(n *source.Node) { s.Seed = uint64(r.whole(n, "seed", 0, math.MaxInt64)) }},
		{"margin", func(n *source.Node) { s.Margin = r.margin(n) }},
		{"budget", func(n *source.Node) {
			r.read(n, "budget", fields{
				{"calls", func(n *source.Node) { s.Budget.Calls = r.whole(n, "budget.calls", 1, math.MaxInt64) }},
				{"tokens", func(n *source.Node) { s.Budget.Tokens = r.whole(n, "budget.tokens", 1, math.MaxInt64) }},
				{"cost", func(n *source.Node) { s.Budget.Cost = new(r.number(n, "budget.cost", 0, false)) }},
			})
		}},
		{"judge", func(n *source.Node) {
			of := r.judgeFields(&s.Judge.Model, &s.Judge.Samples)
			if n.Kind == source.Scalar {
				of[0].read(n)
				return
			}
			r.read(n, "judge", of)
		}},
		{"timeout", func(n *source.Node) { s.Timeout = r.duration(n, "timeout") }},
		{"replace", func(n *source.Node) { s.Replace = r.object(n, "replace") }},
	})
	if c := given["cases"]; given != nil && (c == nil || source.IsNull(c)) {
		r.report(n, definition.CodeMissing, "the file has no cases").Hint = `write "cases:" and below it "- input: …"`
	}
}

// cases reads the list of cases, or the file that has them.
func (f *file) cases(r *reader, n *source.Node) {
	if source.PlainText(n) {
		name, ok := r.path(n, "cases")
		switch ext := strings.ToLower(path.Ext(name)); {
		case ok && ext != ".csv" && ext != ".jsonl":
			r.report(n, definition.CodeValue, "cases must be a list, or a .csv or .jsonl file").Hint = "or give this file to --cases"
		case ok:
			f.table(path.Join(path.Dir(r.src.Path), name))
		}
		return
	}
	items := r.list(n, "cases")
	if n.Kind == source.List && len(items) == 0 {
		r.report(n, definition.CodeMissing, "there are no cases")
	}
	for i, item := range items {
		if !f.room(r, item, i) {
			return
		}
		f.one(r, item, fmt.Sprintf("cases[%d]", i))
	}
}

// room reports whether there may be one more case.
func (f *file) room(r *reader, n *source.Node, i int) bool {
	if i < maxCases {
		return true
	}
	r.report(n, definition.CodeValue, "there are more than %d cases", maxCases)
	return false
}

// one reads a case.
func (f *file) one(r *reader, n *source.Node, what string) {
	var c Case
	var t Turn
	given := r.read(n, "a case", append(r.turnFields(&t, what), fields{
		{"id", func(n *source.Node) { c.ID = r.id(n) }},
		{"turns", func(n *source.Node) { c.Turns = r.turns(n, what) }},
		{"set", func(n *source.Node) { c.Values = r.object(n, what+".set") }},
		{"state", func(n *source.Node) { c.State = r.object(n, what+".state") }},
		{"answers", func(n *source.Node) { c.Answers = r.object(n, what+".answers") }},
		{"group", func(n *source.Node) { c.Group = r.text(n, "group") }},
		{"tags", func(n *source.Node) { c.Tags = r.texts(n, "tags") }},
		{"weight", func(n *source.Node) { c.Weight = r.weight(n) }},
		{"repeat", func(n *source.Node) { c.Repeat = int(r.whole(n, "repeat", 1, maxRepeat)) }},
	}...))
	if given == nil {
		return
	}
	has := func(name string) bool { return given[name] != nil && !source.IsNull(given[name]) }
	switch {
	case has("turns"):
		for _, name := range []string{"input", "expected", "calls"} {
			if has(name) {
				r.report(given[name], definition.CodeConflict, "a case with turns has %s in each turn", name)
			}
		}
	case !has("input") && !has("set"):
		r.report(n, definition.CodeMissing, "a case needs input or turns, or set for the inputs of a definition with a query")
	}
	// The checks of a case without a list of turns are those of the case.
	c.Checks, t.Checks = t.Checks, nil
	if !has("turns") {
		c.Turns = []Turn{t}
	}
	f.add(r, n, given["id"], c)
}

// add adds a case, whose ID no other case may have.
func (f *file) add(r *reader, n, id *source.Node, c Case) {
	if id == nil || c.ID == "" {
		f.set.Cases = append(f.set.Cases, c) // number gives it an ID
		return
	}
	if first, twice := f.at[c.ID]; twice {
		p := r.report(id, definition.CodeDuplicate, "two cases have the ID %q, the first in line %d", c.ID, first.line)
		if first.name != r.src.Name {
			p.Message += " of " + first.name
		}
	}
	f.at[c.ID] = place{r.src.Name, n.Line + r.row}
	f.set.Cases = append(f.set.Cases, c)
}

// number gives each case without an ID the number of its place, or else the next one that no other case has.
func (f *file) number() {
	taken := make(map[string]bool, len(f.set.Cases))
	for i := range f.set.Cases {
		taken[f.set.Cases[i].ID] = true
	}
	free := 1
	for i := range f.set.Cases {
		c := &f.set.Cases[i]
		if c.ID != "" {
			continue
		}
		for n := max(free, i+1); c.ID == ""; n++ {
			if id := fmt.Sprintf("case-%d", n); !taken[id] {
				c.ID, free = id, n+1
			}
		}
	}
}

// turnFields are the fields that a case has for its only turn, and each of several turns for itself.
func (r *reader) turnFields(t *Turn, what string) fields {
	return fields{
		{"input", func(n *source.Node) {
			if t.Input = r.text(n, what+".input"); t.Input == "" && n.Kind == source.Scalar {
				r.report(n, definition.CodeValue, "the input is empty")
			}
		}},
		{"expected", func(n *source.Node) { t.Expected = r.expected(n, r.text(n, what+".expected")) }},
		{"calls", func(n *source.Node) { t.Calls = r.calls(n, what+".calls") }},
		{"checks", func(n *source.Node) { t.Checks = r.checks(n, what+".checks") }},
	}
}

// turns reads the turns of a case.
func (r *reader) turns(n *source.Node, what string) []Turn {
	items := r.list(n, what+".turns")
	if n.Kind == source.List && len(items) == 0 {
		r.report(n, definition.CodeMissing, "there are no turns")
	}
	all := make([]Turn, len(items))
	for i, item := range items {
		given := r.read(item, "a turn", r.turnFields(&all[i], fmt.Sprintf("%s.turns[%d]", what, i)))
		if in := given["input"]; given != nil && (in == nil || source.IsNull(in)) {
			r.report(item, definition.CodeMissing, "a turn needs an input")
		}
	}
	return all
}

// reference is where the reference of a turn stands.
type reference struct {
	*reader
	node *source.Node
}

// expected returns a reference, and keeps its place.
func (r *reader) expected(n *source.Node, text string) *string {
	r.references[&text] = reference{r, n}
	return &text
}

// checkReferences reports references with which a check gives every answer the same value.
func (f *file) checkReferences() {
	for i := range f.set.Cases {
		c := &f.set.Cases[i]
		for at, t := range c.Turns {
			if t.Expected == nil {
				continue
			}
			specs := slices.DeleteFunc(slices.Clone(f.set.ChecksOf(c)), func(s check.Spec) bool {
				return s.Of != "" && at < len(c.Turns)-1 // the state after the last turn
			})
			for _, s := range append(specs, t.Checks...) {
				if message := s.Misreads(*t.Expected); message != "" {
					of := f.references[t.Expected]
					of.report(of.node, definition.CodeValue, "%s", message).Hint = "take the check equals, or another reference"
					break
				}
			}
		}
	}
}

// calls reads expected calls of tools. The result is never nil.
func (r *reader) calls(n *source.Node, what string) []Call {
	all := make([]Call, 0, len(n.Content))
	for _, item := range r.list(n, what) {
		var c Call
		if source.PlainText(item) {
			r.wrong(item, "a call", "a map").Hint = fmt.Sprintf("write {name: %s, args: {…}}", item.Value)
			continue
		}
		given := r.read(item, "a call", fields{
			{"name", func(n *source.Node) { c.Name = r.text(n, what+".name") }},
			{"args", func(n *source.Node) { c.Args = r.object(n, what+".args") }},
		})
		if given != nil && c.Name == "" {
			r.report(item, definition.CodeMissing, "a call needs the name of its tool")
		}
		all = append(all, c)
	}
	return all
}

// id reads the ID of a case, which reports and the IDs of runs show.
func (r *reader) id(at *source.Node) string {
	id := strings.TrimSpace(r.text(at, "id"))
	hidden := func(c rune) bool { return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	switch n := utf8.RuneCountInString(id); {
	case n > maxID:
		r.report(at, definition.CodeValue, "an ID has at most %d characters, got %d", maxID, n)
	case id == "" && at.Kind == source.Scalar:
		r.report(at, definition.CodeValue, "the ID is empty").Hint = "leave it out, or write a word"
	}
	if i := strings.IndexFunc(id, hidden); i >= 0 {
		c, _ := utf8.DecodeRuneInString(id[i:])
		p := r.report(at, definition.CodeValue, "an ID is one line of visible characters, and this one has %U in it", c)
		p.Hint = "write it anew, without that character"
	}
	return id
}

// margin reads the difference up to which two versions are the same.
func (r *reader) margin(n *source.Node) float64 {
	before := len(*r.problems)
	v := r.number(n, "margin", math.Inf(-1), false)
	if err := CheckMargin(v); err != nil && len(*r.problems) == before {
		r.report(n, definition.CodeValue, "%v", err)
	}
	return v
}

// weight reads the weight of a case or of a check.
func (r *reader) weight(n *source.Node) float64 {
	v := r.number(n, "weight", 0, true)
	if v > check.MaxWeight {
		r.report(n, definition.CodeValue, "weight must be at most %d, got %s", int64(check.MaxWeight), n.Value)
	}
	return v
}

// pass reads when a case-run passes.
func (r *reader) pass(n *source.Node) (p check.Pass) {
	if n.Kind != source.Map {
		r.choice(n, "pass", []string{"all"})
		return p
	}
	r.read(n, "pass", fields{{"score", func(n *source.Node) {
		if p.Score = r.number(n, "pass.score", 0, true); p.Score > 1 {
			r.report(n, definition.CodeValue, "pass.score must be at most 1, got %s", n.Value)
		}
	}}})
	return p
}

// measures lists what the field "decide" can be.
func (f *file) measures() []string {
	names := slices.Clone(check.Measures)
	g, err := f.set.Grader()
	if err != nil {
		return names
	}
	seen := make(map[string]bool)
	for i := range f.set.Cases {
		for _, c := range g.of[f.set.Cases[i].ID] {
			if !seen[c.name] {
				seen[c.name] = true
				names = append(names, c.name)
			}
		}
	}
	return names
}
