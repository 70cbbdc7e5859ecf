// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
)

// readsKnown checks whether an agent, an input or the initial state provides each key that is read.
func (c *checker) readsKnown() {
	for i := range c.reads {
		if c.full() {
			return
		}
		rd := &c.reads[i]
		if statekey.OfIteration(rd.name) || rd.any {
			rd.agent.judgesOnce()
		}
		if rd.any || rd.inner && !rd.known(c.keys) {
			continue
		}
		kind, key := rd.split()
		if kind == "built in" || kind == "loop" {
			c.neverSet(rd)
		}
		if kind == "outside" || kind == "built in" {
			continue
		}
		if _, known := c.keys[key]; !known {
			c.unknownKey(rd, key)
		} else {
			c.late(rd, key)
			c.fieldsRead(rd, key)
		}
	}
}

// judgesOnce notes that an agent reads what only the iteration has, so that a judge which contains it cannot judge the
// best again after a rollback.
func (a *Agent) judgesOnce() {
	for ; a.parent != nil; a = a.parent {
		if l := a.parent.Loop; l != nil && l.Score != nil && l.Score.Judge != nil && l.Score.Judge.Step == a.Name {
			l.Score.Judge.Bound = true
		}
	}
}

// keeps notes the loops whose earlier states are read.
func (c *checker) keeps() {
	c.def.kept = make(map[*Agent]bool)
	for i := range c.reads {
		rd := &c.reads[i]
		if kind, _ := rd.split(); kind != "loop" && (!rd.any || rd.name != "prev") {
			continue
		}
		if around := rd.loop(); around != nil {
			c.def.kept[around] = true
		}
	}
}

// split returns the kind of the name that is read, and the key that it needs.
func (rd *read) split() (kind, key string) {
	name := rd.name
	head, rest, dotted := strings.Cut(name, ".")
	switch {
	case strings.HasPrefix(name, "app:"), strings.HasPrefix(name, "user:"), head == "artifact" && dotted && !rd.code:
		return "outside", ""
	case rd.code && head == "prev" && dotted:
		return "loop", rest
	case rd.code || rd.bare:
		return "key", name
	case slices.Contains(vocabulary.BuiltIn, name):
		return "built in", ""
	case (head == "prev" || head == "best" || head == "rejected") && dotted:
		key, _, _ := strings.Cut(rest, ".")
		return "loop", key
	}
	return "key", head
}

func (rd *read) known(keys map[string]string) bool {
	_, key := rd.split()
	_, ok := keys[key]
	return ok || key == ""
}

// loop returns the loop whose counters the read sees; nil outside loops. A loop itself sees its own.
func (rd *read) loop() *Agent {
	if rd.agent.Type == TypeLoop {
		return rd.agent
	}
	return rd.agent.loopAround()
}

// neverSet warns of a built-in value, or a value of another iteration, that never exists at this place.
func (c *checker) neverSet(rd *read) {
	around, name := rd.loop(), rd.name
	why, hint := "", ""
	switch {
	case rd.soft, name == "user_input", name == "budget.remaining":
	case around == nil:
		why = fmt.Sprintf("%q is not in a loop", rd.agent.Name)
	case (name == "score" || strings.HasPrefix(name, "best.")) && around.Loop.Score == nil:
		why = fmt.Sprintf("the loop %q has no score", around.Name)
	case (name == "max_iterations" || name == "remaining_iterations") && around.Loop.MaxIterations == 0:
		why = fmt.Sprintf("the loop %q has no max_iterations", around.Name)
	case strings.HasPrefix(name, "rejected.") && !around.Loop.rejects():
		why, hint = fmt.Sprintf("the loop %q rejects no iteration", around.Name), rejectsHint
	}
	if why != "" {
		c.warn(rd.place(), CodeNeverSet, "%s is always empty here: %s", rd, why).Hint = hint
	}
}

// late warns of a key that only finalizers write and a step of their loop reads, because finalizers run after all
// steps.
func (c *checker) late(rd *read, key string) {
	writers, around := c.writers[key], rd.loop()
	if len(writers) == 0 || around == nil || rd.soft {
		return
	}
	if _, given := c.def.State[key]; given || c.input(key) {
		return
	}
	for _, w := range writers {
		fin := w
		for fin != nil && fin.OutputKey != LoopOutput {
			fin = inLoop(fin)
		}
		if fin == nil || fin.parent == nil || rd.agent.in(fin) || !rd.agent.in(fin.parent) || fin.parent.Loop == nil ||
			fin.parent.Loop.FinalizeEach || fin.parent.loopAround() != nil {
			return
		}
	}
	c.warn(rd.place(), CodeNeverSet, "%s is always empty here: %q writes it after the loop", rd, writers[0].Name)
}

const rejectsHint = "quality_gate or on_regression: rollback makes a loop reject iterations"

// rejects reports whether the loop may refuse to accept an iteration.
func (l *Loop) rejects() bool { return l.QualityGate != nil || l.OnRegression == loop.RollbackOnWorse }

func (c *checker) unknownKey(rd *read, key string) {
	if key == runfiles.Key && c.mistaken() {
		return
	}
	report := c.report
	if rd.soft || c.def.hasCode() {
		report = c.warn
	}
	p := report(rd.place(), CodeUnknownKey, "%s is read here but no agent writes it", rd)
	if rd.bare {
		p.Message = fmt.Sprintf("%s names the key %q, which no agent writes", rd.field, key)
	}
	p.hint = func() (hint, suggestion string) { return c.keyHint(rd, key) }
}

// keyHint suggests another key.
func (c *checker) keyHint(rd *read, key string) (hint, suggestion string) {
	form := func(name string) string {
		other := *rd
		if kind, _ := rd.split(); kind == "loop" {
			prefix, _, _ := strings.Cut(rd.name, ".")
			name = prefix + "." + name
		}
		other.name = name
		return other.String()
	}
	known := func(name string) (hint, suggestion string) {
		if suggestion = form(name); !strings.HasPrefix(suggestion, "{{") { // an expression may have other forms
			suggestion = ""
		}
		return fmt.Sprintf("did you mean %s (%s)?", form(name), c.keys[name]), suggestion
	}
	if rd.code && slices.Contains(vocabulary.BuiltIn, key) {
		return fmt.Sprintf("%s is no key of the state: write %s alone", key, key), ""
	}
	if rd.agent.parameter(key) {
		return fmt.Sprintf("%s is a parameter: the texts of the command name it as {{%s}}", key, key), ""
	}
	if whole, field, dotted := strings.Cut(key, "."); dotted && rd.field == "score.key" && c.keys[whole] != "" {
		return fmt.Sprintf("a field of a key is written score: {key: %s, field: %s}", whole, field), ""
	}
	if a := c.names[key]; a != nil && a.OutputKey != "" && a.OutputKey != LoopOutput {
		return fmt.Sprintf("%s is an agent: read what it writes, %s", key, form(a.OutputKey)), ""
	} else if a != nil && a.OutputKey == "" {
		return fmt.Sprintf("%s is an agent: give it an output_key, and read that key", key), ""
	}
	if key == LoopOutput {
		return "loop_output marks the finalizer; give the loop an output_key and read that", ""
	}
	if len(c.keys) > meant.MaxNames {
		return "", ""
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.keys)), func(name string) bool { return len(name) > maxHinted })
	if near := suggest.Nearest(key, names); near != "" {
		return known(near)
	}
	if near := suggest.Nearest(rd.name, vocabulary.BuiltIn); near != "" && !rd.code && !rd.bare {
		return fmt.Sprintf("did you mean {{%s}} (built in)?", near), "{{" + near + "}}"
	}
	if c.def.hasCode() {
		return "if Go code writes it, declare it under state, with its first value", ""
	}
	if len(names) == 0 {
		return "declare it under inputs or state, or have an agent write it with output_key", ""
	}
	if kin := relative(key, names); kin != "" && !rd.bare {
		if earlier(key) && !rd.code && rd.loop() != nil {
			return fmt.Sprintf("did you mean {{prev.%s}}, what %q was after the iteration before (%s)?", kin, kin, c.keys[kin]),
				"{{prev." + kin + "}}"
		}
		return known(kin)
	}
	if len(names) > 8 {
		names = append(names[:8], "…")
	}
	all := "the keys are " + strings.Join(names, ", ")
	if kind, _ := rd.split(); kind == "loop" || rd.bare {
		return all, ""
	}
	return all + "; declare a value from outside under inputs", ""
}

// inputsRead warns of inputs that no agent reads.
func (c *checker) inputsRead() {
	seen, all := c.keysRead()
	if all || c.problems.count(SeverityError) > 0 { // then who reads what is not known
		return
	}
	for _, in := range c.def.Inputs {
		if !seen[in.Name] {
			c.warn(c.def.Root.src.Of(in.node), CodeUnread, "no agent reads the input %q", in.Name)
		}
	}
}

// keysRead returns the keys that agents read; all reports that an agent may read any key.
func (c *checker) keysRead() (seen map[string]bool, all bool) {
	seen = make(map[string]bool)
	for i := range c.reads {
		_, key := c.reads[i].split()
		seen[key] = true
		all = all || c.reads[i].any
	}
	return seen, all
}

// beforeWords are the words with which people refer to the previous value, in several languages.
var beforeWords = []string{
	"previous", "prev", "before", "last", "old", "earlier", "prior", "former",
	"anterior", "anteriores", "ultimo", "ultima", "antigo", "passado", "precedente", "vorherige", "letzte",
}

// earlier reports whether a key's name refers to the previous value.
func earlier(key string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToLower(key), "_"),
		func(w string) bool { return slices.Contains(beforeWords, w) })
}

// relative returns the one key that an unknown name may mean. If the name refers to a previous value, as
// feedback_before does, the key shares a word with it, as feedback_given does. Otherwise one of the two has all the
// words of the other. The result is empty if there is no such key, or more than one.
func relative(name string, keys []string) string {
	found := ""
	words := strings.Split(strings.ToLower(name), "_")
	for _, key := range keys {
		shared, all := 0, strings.Split(strings.ToLower(key), "_")
		for _, w := range all {
			if utf8.RuneCountInString(w) > 3 && !slices.Contains(beforeWords, w) && slices.Contains(words, w) {
				shared++
			}
		}
		if shared == 0 || !earlier(name) && shared < min(len(words), len(all)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = key
	}
	return found
}

// severalWords matches text that looks like a placeholder but has spaces in its name. It is compiled when a text is
// read, not when the program starts.
var severalWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{\s*([\pL_][\pL\pN_]*(?:[ \t]+[\pL\pN_]+)+)\s*\}\}`)
})

// spaces notes placeholders with spaces in their names, which are plain text.
func (c *checker) spaces(a *Agent, field, text string) {
	if !strings.Contains(text, "{{") {
		return
	}
	line, column, seen := 1, 1, 0
	for _, at := range severalWords().FindAllStringSubmatchIndex(text, -1) {
		between := text[seen:at[0]]
		if end := strings.LastIndexByte(between, '\n'); end >= 0 {
			line, column, between = line+strings.Count(between, "\n"), 1, between[end+1:]
		}
		column, seen = column+utf8.RuneCountInString(between), at[0]
		c.spaced = append(c.spaced, read{
			agent: a, field: field, name: text[at[2]:at[3]], line: line, column: column, form: "{{%s}}",
		})
	}
}

// noSpaces reports placeholders with spaces: as an error if the words joined by _ are a key.
func (c *checker) noSpaces() {
	for i := range c.spaced {
		if c.full() {
			return
		}
		rd := &c.spaced[i]
		key := strings.Join(strings.Fields(rd.name), "_")
		if _, known := c.keys[key]; known || slices.Contains(vocabulary.BuiltIn, key) {
			c.report(rd.place(), CodeTemplate, "%s is not a placeholder: the name of a key has no spaces", rd).
				suggest(fmt.Sprintf("did you mean {{%s}}?", key), "{{"+key+"}}")
			continue
		}
		c.warn(rd.place(), CodeTemplate, "%s is not a placeholder and is not replaced: the name of a key has no spaces",
			rd).
			Hint = "if you mean a key, join the words with _"
	}
}

// read is one place at which an agent reads a key.
type read struct {
	agent        *Agent
	field        string
	name         string // as a template writes it: draft, prev.draft, best.score
	line, column int    // in the field's value
	code         bool   // in an expression
	bare         bool   // the field's value is the key
	inner        bool   // it may be a field of a section's item
	soft         bool   // it need not be a key, or need not be there
	section      bool   // a template asks whether it is there
	form         string // how a template writes it: {{%s}}, {{%s?}}, {%s}
	source       string // the expression; empty for other reads
	any          bool   // it may be every key, of state or of prev
}

// declared notes the keys of inputs and state.
func (c *checker) declared() {
	root := c.def.Root
	for _, in := range c.def.Inputs {
		c.key(root.src.Of(in.node), in.Name, "an input")
		c.keys[in.Name] = "an input"
	}
	for _, key := range slices.Sorted(maps.Keys(c.def.State)) {
		at := root.src.Of(root.nodes["key of state."+key])
		c.key(at, key, "state")
		if _, input := c.keys[key]; input {
			c.report(at, CodeConflict, "%q is both an input and in state; remove one", key)
		}
		c.keys[key] = "state"
	}
}

// written notes and checks the keys that an agent writes.
func (c *checker) written(a *Agent) {
	by := "written by " + a.Name
	for _, k := range []struct{ field, key string }{{"output_key", a.OutputKey}, {"result_key", a.ResultKey}} {
		if k.key == "" {
			if n, given := a.nodes[k.field]; given && source.PlainText(n) && n.Value == "" {
				c.report(a.at(k.field), CodeKeyName, "%s is empty", k.field)
			}
			continue
		}
		if k.field == "output_key" && k.key == LoopOutput {
			if a.parent != nil && a.parent.loopAround() == nil {
				c.wrote(LoopOutput, by, a)
			}
			continue
		}
		if c.key(a.at(k.field), k.key, k.field) {
			c.wrote(k.key, by, a)
			c.silent(a)
		}
	}
	if a.Parallel != nil && a.Parallel.copies != nil {
		for _, key := range a.Parallel.copies.keys {
			c.wrote(key, by, a)
		}
	}
	if a.copied() && a.Type == TypeLoop {
		c.wrote(a.winnerKey(), by, a)
	}
	if a.races() {
		for _, key := range append(a.Parallel.Race.keys, a.winnerKey()) {
			c.wrote(key, by, a)
		}
	}
	if a.Expression == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(a.Expression.Set)) {
		if c.key(a.at("key of set."+key), key, "set") {
			c.wrote(key, by, a)
		}
	}
}

// wrote notes that an agent writes a key.
func (c *checker) wrote(key, by string, a *Agent) {
	c.keys[key] = by
	c.writers[key] = append(c.writers[key], a)
}

// silent warns of a workflow agent that never has a result.
func (c *checker) silent(a *Agent) {
	speaks := func(sub *Agent) bool { return !sub.Type.Workflow() && sub.Type != TypeExpression }
	if !a.Type.Workflow() || a.OutputKey == "" || len(a.SubAgents) == 0 || a.Type == TypeParallel || a.contains(speaks) {
		return
	}
	c.warn(a.at("output_key"), CodeNeverSet, "output_key of %q is never written: no agent in it returns text", a.Name).
		Hint = `let a finalizer say the result, as text: "{{key}}"`
}

// key checks that a name can be a key of the state.
func (c *checker) key(at source.Span, key, what string) bool {
	if runfiles.IsKey(key) && slices.Contains(c.def.fileKeys(), key) {
		c.report(at, CodeKeyTaken, "%q cannot be a key: the workspace has it", key).Hint = `call it "my_workspace", say`
		return false
	}
	wrong := vocabulary.Key(key, what)
	if wrong == nil {
		c.spelled(at, key)
		return true
	}
	code := CodeKeyName
	if wrong.Taken {
		code = CodeKeyTaken
	}
	c.report(at, code, "%s", wrong.Message).Hint = wrong.Hint
	return false
}

// spelled notes a key that is not in snake_case.
func (c *checker) spelled(at source.Span, key string) {
	usual := vocabulary.SnakeCase(key)
	if usual == key {
		return
	}
	p := c.note(at, CodeKeyName, "the key %q is not in snake_case", key)
	p.Hint = "write " + usual + ", so that all keys are spelled alike"
	if strings.Contains(key, "-") {
		p.Hint = fmt.Sprintf("write %s: in an expression, state.%s subtracts", usual, key)
	}
}

// keyRead notes the key that a field has as its value.
func (c *checker) keyRead(a *Agent, field, key string) {
	c.reads = append(c.reads, read{agent: a, field: field, name: key, bare: true, line: 1, column: 1})
}

// exprReads notes the keys of the state that an expression reads, and those of prev.
func (c *checker) exprReads(a *Agent, field, src string) {
	for _, root := range []string{"state", "prev"} {
		prefix := strings.TrimPrefix(root+".", "state.")
		keys, all := cel.Reads(src, root)
		for _, key := range keys {
			rd := read{agent: a, field: field, name: prefix + key, code: true, source: src}
			rd.line, rd.column = keyIn(src, rd.name)
			c.reads = append(c.reads, rd)
		}
		if all {
			c.reads = append(c.reads, read{agent: a, field: field, name: strings.TrimSuffix(prefix, "."), code: true, any: true})
		}
	}
}

// keyIn finds the place where an expression names a key. The place may be inexact.
func keyIn(text, name string) (line, column int) {
	root, key := "state", name
	if k, ok := strings.CutPrefix(name, "prev."); ok {
		root, key = "prev", k
	}
	at := 0
	for _, form := range []string{root + "." + key, root + ".?" + key, root + `["` + key, root + `['` + key, key} {
		if i := strings.Index(text, form); i >= 0 {
			at = i
			break
		}
	}
	line = 1 + strings.Count(text[:at], "\n")
	column = 1 + len([]rune(text[strings.LastIndexByte(text[:at], '\n')+1:at]))
	return line, column
}

// place returns the position of the read in the file.
func (rd *read) place() source.Span {
	at := rd.agent.inField(rd.field, rd.line, rd.column)
	if n := rd.agent.nodes[rd.field]; n != nil && n.Kind == source.Scalar && at.Length == 1 {
		at.Length = len([]rune(rd.String()))
	}
	return at
}

// String returns the read as the file writes it.
func (rd *read) String() string {
	switch {
	case rd.bare:
		return rd.name
	case rd.code && strings.HasPrefix(rd.name, "prev."):
		return rd.name
	case rd.code:
		return "state." + rd.name
	}
	return fmt.Sprintf(rd.form, rd.name)
}

// formOf returns the form in which a template writes a name.
func formOf(ref template.Ref) string {
	form := "%s"
	if ref.Optional {
		form = "%s?"
	}
	if ref.Single {
		return "{" + form + "}"
	}
	return "{{" + form + "}}"
}

// sharedKeys notes output keys that two agents write, or that the run is also given, because one value overwrites the
// other. It leaves out intended cases: an agent inside another one that writes the same key, and an agent in a loop
// that continues the value of an agent before the loop.
func (c *checker) sharedKeys() {
	first := make(map[string]*Agent)
	for a := range c.def.Root.All {
		key := a.OutputKey
		if key == "" || key == LoopOutput {
			continue
		}
		if c.input(key) {
			c.note(a.at("output_key"), CodeSharedKey, "%q overwrites %q, which %s gives", a.Name, key, "an input").
				Hint = "give the result a key of its own, unless you want to overwrite the input"
		}
		before := first[key]
		switch {
		case before == nil:
			first[key] = a
		case !a.in(before) && a.loopAround() == before.loopAround():
			c.note(a.at("output_key"), CodeSharedKey, "%q and %q both write %q: the later result overwrites the "+
				"earlier one",
				before.Name, a.Name, key).Hint = "give each result a key of its own, unless you want to overwrite one"
		}
	}
}

// input reports whether a key is an input, which is set before any agent runs.
func (c *checker) input(key string) bool {
	return slices.ContainsFunc(c.def.Inputs, func(in Input) bool { return in.Name == key })
}
