// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// builtIn lists the built-in names that texts can use besides keys, and their parts before the first dot. No key can
// have these names.
var builtIn = slices.Concat(drive.BuiltIn, drive.BuiltInHeads)

// keys has the keys that agents write, and the new names of keys that are renamed.
type keys struct {
	written map[string]bool
	renamed map[string]string
}

var plainName = lazyregexp.New(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

var plainKey = lazyregexp.New(`^(?:(?:app|user|temp|iteration):)?[\p{L}_][\p{L}\p{N}_-]*$`)

// outputKeys renames the output keys that a definition cannot have.
func (i *importer) outputKeys(root *agent) *keys {
	k := &keys{written: make(map[string]bool), renamed: make(map[string]string)}
	root.walk(func(a *agent) {
		was := a.outputKey
		switch {
		case was == "":
			return
		case was == definition.LoopOutput && i.opts.Dialect != ADK && !a.plainKey:
			i.finalizer(a)
			if a.outputKey != "" && a.around != nil && a.around.loop() == nil {
				k.written[was] = true
			}
			return
		case was == definition.LoopOutput:
			a.outputKey = "output_of_" + a.name
		case slices.Contains(builtIn, was):
			a.outputKey = "my_" + was
		case !plainKey().MatchString(was):
			a.outputKey = strings.ReplaceAll(cleanName(was), "-", "_")
		}
		if a.outputKey != was {
			k.renamed[was] = a.outputKey
			why := fmt.Sprintf("no placeholder can name the key %q", was)
			if slices.Contains(builtIn, was) || was == definition.LoopOutput {
				why = fmt.Sprintf("%q has a meaning of its own here", was)
			}
			i.changed(a.place("output_key"), a.was, "output_key "+was, a.outputKey,
				"%s; texts that read it say the same", why)
		}
		k.written[a.outputKey] = true
	})
	if last := definition.LoopOutput; !k.written[last] && k.renamed[last] == "" {
		k.renamed[last] = "my_" + last // a session may have it and texts may read it, but no key and no input can have this name
	}
	return k
}

// finalizer checks whether an agent with loop_output is the finalizer of a loop.
func (i *importer) finalizer(a *agent) {
	if a.around != nil && !a.isTool && a.around.typ == definition.TypeLoop {
		i.add(Mapped, a.place("output_key"), a.was, "output_key loop_output", "",
			"runs once, after the loop, and its answer is the loop's")
		return
	}
	i.dropped(a.place("output_key"), a.was, "output_key loop_output", "",
		"it marks the last word of a loop, and this agent is not a step of one")
	a.outputKey = ""
}

// placeholders rewrites {key} as {{key}}, with the new name of a renamed key. It returns inputs for the keys that
// texts read and no agent writes.
func (i *importer) placeholders(root *agent, k *keys) object {
	need := make(map[string]*readKey)
	root.walk(func(a *agent) {
		if a.typ == definition.TypeLLM {
			a.instructions = i.fill(a, a.instructions, k, need)
		}
		for n := range a.extra {
			if a.extra[n].filled {
				a.extra[n].value = i.fillAny(a, a.extra[n].value, k, need)
			}
		}
	})
	if len(need) > maxReads {
		i.fail(place{File: i.report.File}, "", "", "the texts read %d keys that no agent writes; at most %d are allowed", len(need), maxReads)
		return nil
	}
	var inputs object
	for _, name := range slices.Sorted(maps.Keys(need)) {
		inputs = append(inputs, i.input(name, need[name], k))
	}
	return inputs
}

// readKey is a key that a text reads.
type readKey struct {
	by       *agent
	required bool // the product fails without a value
	text     bool // the braces are plain text in the product
}

func (i *importer) fillAny(a *agent, v any, k *keys, need map[string]*readKey) any {
	switch v := v.(type) {
	case string:
		return i.fill(a, v, k, need)
	case []any:
		for n := range v {
			v[n] = i.fillAny(a, v[n], k, need)
		}
	case object:
		for n := range v {
			v[n].value = i.fillAny(a, v[n].value, k, need)
		}
	}
	return v
}

// fill rewrites the placeholders of a text. A text that cannot be parsed stays as it is, and the check of the
// definition reports it.
func (i *importer) fill(a *agent, text string, k *keys, need map[string]*readKey) string {
	t, err := template.Parse(text, template.Options{})
	if err != nil {
		return text
	}
	var edits []replacement
	for _, ref := range t.Keys() {
		tag, name := text[ref.From:ref.To], ref.Name
		head, rest := splitKey(ref.Name)
		if to := k.renamed[head]; to != "" {
			head, name = to, to+rest
		}
		i.read(a, ref, head, k, need)
		tag = strings.Replace(tag, ref.Name, name, 1)
		if r := need[head]; ref.Single && (r == nil || !r.text) {
			tag = "{" + strings.Replace(tag, "?}", "}", 1) + "}"
		}
		edits = append(edits, replacement{ref.From, ref.To, tag})
		if ref.Section {
			at := ref.NameIn(text, ref.Close)
			edits = append(edits, replacement{at, at + len(ref.Name), name})
		}
	}
	return replace(text, edits)
}

// replacement is a range of bytes of a text and its replacement.
type replacement struct {
	from, to int
	by       string
}

// replace applies replacements that do not overlap to a text.
func replace(text string, edits []replacement) string {
	slices.SortFunc(edits, func(a, b replacement) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.from] + e.by)
		at = e.to
	}
	return b.String() + text[at:]
}

// splitKey splits a name into the key of the state and the path within its value.
func splitKey(name string) (key, rest string) {
	if n := strings.IndexByte(name, '.'); n > 0 {
		return name[:n], name[n:]
	}
	return name, ""
}

// read records a key that may need an input.
func (i *importer) read(a *agent, ref template.Ref, key string, k *keys, need map[string]*readKey) {
	switch {
	case k.written[key] || ref.Inner || !plainKey().MatchString(key):
		return
	case strings.HasPrefix(key, "app:") || strings.HasPrefix(key, "user:"):
		return
	case slices.Contains(builtIn, key):
		return
	}
	r := need[key]
	if r == nil {
		r = &readKey{by: a, text: ref.Single && i.opts.Dialect == Robomotion}
		need[key] = r
	}
	if i.opts.Dialect == ADK && !ref.Optional && !ref.Section {
		r.required = true
	}
	r.text = r.text && ref.Single
}

// input returns the input for a key that no agent writes.
func (i *importer) input(name string, r *readKey, k *keys) field {
	at, from := i.readAt(name, r.by)
	about := object{{key: "type", value: "string"}, {key: "default", value: ""}, {key: "description", value: "read by " + r.by.name}}
	if r.text {
		i.changed(at, r.by.was, "{"+name+"}", "inputs."+name,
			"single braces are text in Robomotion and a placeholder here; the input puts back what stood there")
		about[1].value = "{" + name + "}"
		return field{key: name, value: about, from: from}
	}
	it := i.changed(at, r.by.was, "{{"+name+"}}", "inputs."+name,
		"no agent writes it: give it to the run, or it is empty")
	it.Advice = "refrain run FILE --set " + name + "=…"
	if r.required {
		it.Message = "no agent writes it: give it to the run, as ADK's session needs it in its state"
		about = slices.Delete(about, 1, 2)
	} else if near := before(name, k); near != "" {
		it.Advice += fmt.Sprintf("; or is {{prev.%s}} meant, what an iteration before wrote?", near)
	} else if hint := meant(name, slices.Sorted(maps.Keys(k.written))); hint != "" {
		it.Advice += "; or " + hint
	}
	return field{key: name, value: about, from: from}
}

// readAt returns the first place where an agent reads a key, and the text that contains it.
func (i *importer) readAt(name string, by *agent) (place, []value) {
	for _, key := range slices.Sorted(maps.Keys(by.from)) {
		if key != "instructions" && !slices.ContainsFunc(by.extra,
			func(f field) bool { return f.key == key && f.filled }) {
			continue
		}
		for _, v := range by.from[key] {
			if at, ok := i.search([]value{v}, name, 0, inBraces); ok {
				return at, []value{v}
			}
		}
	}
	return by.place("instructions"), by.from["instructions"]
}

func inBraces(before string) bool { return strings.HasSuffix(strings.TrimRight(before, " #^"), "{") }

// before returns the key whose earlier value a name may mean, such as feedback_melhoria for feedback_anterior.
func before(name string, k *keys) string {
	head, tail, _ := strings.Cut(name, "_")
	if !slices.Contains([]string{"anterior", "previous", "prev", "before", "last"}, tail) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(k.written)) {
		if strings.HasPrefix(key, head+"_") || key == head {
			return key
		}
	}
	return ""
}
