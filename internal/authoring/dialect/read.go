// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// value is a value of an imported file.
type value struct {
	*yaml.Node
	file  string
	reads *reads // nil if reads are not recorded
}

// pair is one entry of a map.
type pair struct {
	key   string
	at    place
	value value
}

// parse reads YAML or JSON, within limits. ok is false if it has reported an error.
func (i *importer) parse(file string, data []byte) (v value, ok bool) {
	if !i.fits(file, data) {
		return v, false
	}
	src := i.texts[file]
	n, faults := source.Read(bytes.NewReader(data), src, &i.nodes)
	return i.taken(src, n, faults)
}

// fits checks that the files together are small enough, and keeps the text of a file.
func (i *importer) fits(file string, data []byte) bool {
	if i.size += len(data); i.size > maxFiles {
		i.fail(place{File: file}, "", "", "the files together are larger than 8 MiB")
		return false
	}
	if i.texts == nil {
		i.texts = make(map[string]*source.Source) // Detect does not create the map
	}
	if i.texts[file] == nil {
		i.files = append(i.files, file)
	}
	i.texts[file] = source.New(file, "", 0, string(data))
	return true
}

// taken returns the value of a file. If the file has faults, taken reports them and returns no value.
func (i *importer) taken(src *source.Source, n *yaml.Node, faults []*source.Fault) (value, bool) {
	for _, f := range faults {
		i.fail(place{File: src.Name, Line: f.At.Line, Column: f.At.Column}, "", "", "%s", f.Message).Advice = f.Hint
	}
	if len(faults) > 0 {
		return value{}, false
	}
	i.secretTexts = append(i.secretTexts, src.Secrets...)
	v := value{n, src.Name, i.reads}.deref()
	if i.reads != nil {
		i.reads.files = append(i.reads.files, v)
	}
	return v, true
}

func (v value) deref() value {
	v.Node = source.Deref(v.Node)
	return v
}

func (v value) at() place {
	if v.Node == nil {
		return place{File: v.file}
	}
	return place{File: v.file, Line: v.Line, Column: v.Column}
}

func (v value) isMap() bool  { return v.Node != nil && v.Kind == yaml.MappingNode }
func (v value) isList() bool { return v.Node != nil && v.Kind == yaml.SequenceNode }
func (v value) isScalar() bool {
	return v.Node != nil && v.Kind == yaml.ScalarNode
}

// isText reports whether a value is a string, and not a number or a boolean.
func (v value) isText() bool { return v.isScalar() && v.ShortTag() == "!!str" }

// isNull reports whether a value is missing or null.
func (v value) isNull() bool {
	return v.Node == nil || source.IsNull(v.Node)
}

// empty reports whether a value is null, "", [] or {}.
func (v value) empty() bool {
	return v.isNull() || v.isScalar() && strings.TrimSpace(v.Value) == "" || !v.isScalar() && len(v.Content) == 0
}

// pairs returns the entries of a map with "<<" expanded, or nil for any other value. If a key is given twice, pairs
// returns the first entry.
func (v value) pairs() (all []pair) {
	if v.Node == nil {
		return nil
	}
	seen := make(map[string]bool)
	for _, p := range source.Pairs(v.Node) {
		if k := (value{p.Key, v.file, v.reads}); !seen[k.Value] {
			seen[k.Value] = true
			all = append(all, pair{k.Value, k.at(), value{p.Value, v.file, v.reads}.deref()})
		}
	}
	return all
}

// blank reports whether a value is empty or contains only empty values.
func (v value) blank() bool {
	full := func(inner value) bool { return !inner.blank() }
	return v.empty() || !v.isScalar() && !slices.ContainsFunc(v.items(), full) &&
		!slices.ContainsFunc(v.pairs(), func(p pair) bool { return full(p.value) })
}

// items returns the elements of a list, or nil for any other value.
func (v value) items() []value {
	if !v.isList() {
		return nil
	}
	out := make([]value, len(v.Content))
	for n, c := range v.Content {
		out[n] = value{c, v.file, v.reads}.deref()
	}
	return out
}

// get returns the value of a key. Its Node is nil if there is none.
func (v value) get(key string) value {
	v.ask(key)
	for _, p := range v.pairs() {
		if p.key == key {
			return p.value
		}
	}
	return value{file: v.file, reads: v.reads}
}

// text returns the value as a string, including numbers and booleans.
func (v value) text() string {
	if !v.isScalar() || v.isNull() {
		return ""
	}
	return v.Value
}

// texts returns the value as a list of strings.
func (v value) texts() []string {
	var out []string
	for _, item := range v.items() {
		out = append(out, item.text())
	}
	return out
}

// booleans has the spellings of YAML, Python and forms.
var booleans = map[string]bool{
	"true": true, "yes": true, "on": true, "enabled": true, "habilitado": true, "sim": true,
	"false": false, "no": false, "off": false, "disabled": false, "desabilitado": false, "não": false, "nao": false,
}

// boolean returns the value as a boolean.
func (v value) boolean() (b, ok bool) {
	b, ok = booleans[strings.ToLower(strings.TrimSpace(v.text()))]
	return b, ok
}

// whole returns the value as a whole number that is not negative.
func (v value) whole() (n int, ok bool) {
	f, ok := v.number()
	if !ok || f != float64(int(f)) || f < 0 || f > 1<<31-1 {
		return 0, false
	}
	return int(f), true
}

func (v value) number() (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v.text()), 64)
	return f, err == nil && f-f == 0
}

// what describes the kind of a value. It does not show the value, which may be a secret.
func (v value) what() string {
	switch {
	case v.isMap():
		return "a map"
	case v.isList():
		return "a list"
	case v.isNull():
		return "nothing"
	}
	text := v.Value
	if secretText(text) {
		return "a text that may be a secret"
	}
	return strconv.Quote(brief.Clip(text, 60))
}

// near returns the advice for a mistyped name of the file, which may have very many names.
func (i *importer) near(typed string, names []string) string {
	if i.failed > 50 {
		return ""
	}
	return meant(typed, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return len(n) > 100 }))
}

// meant returns the advice for a mistyped name.
func meant(typed string, names []string) string {
	if near := suggest.Nearest(typed, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

var withUnit = lazyregexp.New(`^\d+(?:\.\d+)?\s*(?:s|m|h)?$`)

// seconds writes a time in the form of a definition; 300 and 300s are the same.
func seconds(v value) (string, bool) {
	text := strings.ReplaceAll(strings.TrimSpace(v.text()), " ", "")
	if !withUnit().MatchString(text) || strings.Trim(text, "0.smh") == "" {
		return "", false
	}
	if last := text[len(text)-1]; last >= '0' && last <= '9' {
		text += "s"
	}
	return text, true
}

// reads records which keys of which maps were read, so that no key is ignored silently.
type reads struct {
	asked map[*yaml.Node]map[string]bool // by map
	whole map[*yaml.Node]bool            // maps that were read completely
	owner map[*yaml.Node]string          // names of agents by their maps
	files []value
}

// ask records that a key was read.
func (v value) ask(key string) {
	if v.reads == nil || !v.isMap() {
		return
	}
	if v.reads.asked[v.Node] == nil {
		v.reads.asked[v.Node] = make(map[string]bool)
	}
	v.reads.asked[v.Node][key] = true
}

// asked reports whether a key was read.
func (v value) asked(key string) bool { return v.reads != nil && v.reads.asked[v.Node][key] }

// all records that a value was read completely.
func (v value) all() {
	if v.reads != nil && v.Node != nil {
		v.reads.whole[v.Node] = true
	}
}

// of records the agent that a map describes.
func (v value) of(a *agent) {
	if v.reads != nil && v.Node != nil {
		v.reads.owner[v.Node] = a.was
	}
}

// peek returns a value whose reads are not recorded.
func (v value) peek() value {
	v.reads = nil
	return v
}

// unread reports each key that nothing has read as left out or mistyped. It skips values that the report already
// covers as a whole.
func (i *importer) unread() {
	u := &unread{importer: i, told: make(map[place]bool), seen: make(map[*yaml.Node]bool)}
	for _, it := range i.report.Items {
		if it.Line > 0 && (it.Kind == Dropped || it.Kind == Failed) {
			u.told[place{File: it.File, Line: it.Line, Column: it.Column}] = true
		}
	}
	for _, v := range i.reads.files { // an item about an agent does not cover all of its fields
		delete(u.told, v.at())
		for n := range i.reads.owner {
			delete(u.told, value{Node: n, file: v.file}.at())
		}
	}
	for _, v := range slices.Clone(i.reads.files) {
		u.walk(v, "", "")
	}
}

// unread finds keys that nothing has read.
type unread struct {
	*importer
	told map[place]bool
	seen map[*yaml.Node]bool
}

func (u *unread) walk(v value, agent, path string) {
	if v.Node == nil || u.reads.whole[v.Node] || u.seen[v.Node] {
		return
	}
	u.seen[v.Node] = true
	if name, ok := u.reads.owner[v.Node]; ok {
		agent, path = name, ""
	}
	for _, item := range v.items() {
		if !u.told[item.at()] || item.isMap() && item.Style&yaml.FlowStyle == 0 {
			u.walk(item, agent, path)
		}
	}
	u.twice(v, agent, path)
	asked := u.reads.asked[v.Node]
	for _, p := range v.pairs() {
		// In block style the first key of a map has the same place as the map.
		told := u.told[p.at] || u.told[p.value.at()] && (!p.value.isMap() || p.value.Style&yaml.FlowStyle != 0)
		switch full := dot(path, p.key); {
		case told, u.reads.whole[p.value.Node]:
		case asked[p.key]:
			u.walk(p.value, agent, full)
		case p.value.blank() || u.seen[p.value.Node]:
		default:
			u.seen[p.value.Node] = true
			u.left(p, agent, full, slices.Sorted(maps.Keys(asked)))
		}
	}
}

// twice reports a key that a map has twice, because only one of its values was read.
func (u *unread) twice(v value, agent, path string) {
	if !v.isMap() {
		return
	}
	before := make(map[string]bool)
	for n := 0; n < len(v.Content); n += 2 {
		k := value{Node: v.Content[n], file: v.file}.deref()
		if k.isScalar() && k.ShortTag() != "!!merge" && before[k.Value] {
			u.fail(k.at(), agent, dot(path, k.Value), "the field %q is given twice", dot(path, k.Value)).Advice = "take one of them away"
		}
		before[k.Value] = true
	}
}

func dot(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// left reports a key that nothing has read.
func (u *unread) left(p pair, agent, full string, asked []string) {
	if suggest.Nearest(p.key, asked) != "" {
		u.fail(p.at, agent, full, "unknown field %q", full).Advice = u.near(p.key, asked)
		return
	}
	u.dropped(p.at, agent, full, "", "nothing here reads it")
}
