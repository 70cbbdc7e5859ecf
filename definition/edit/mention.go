// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"sort"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/template"
)

// mention is one name in a scalar: which bytes of its value.
type mention struct {
	name     string
	from, to int
	word     bool // it has to be a word there
	odd      bool // it is there, but where and how is not clear
}

// keys are the keys of the state that a scalar names. Any reports that it may read
// other ones too.
func (n naming) keys() (found []mention, any bool, err error) {
	text := n.node.Value
	switch n.role {
	case roleKey:
		key, _, _ := strings.Cut(text, ".") // in shapes, a field of its value may follow
		return []mention{{name: key, to: len(key)}}, false, nil
	case roleText:
		found, err = textKeys(text, template.Canonical)
	case roleMustache:
		found, err = textKeys(text, template.Mustache)
	case roleTask, roleCondition:
		return exprKeys(text, n.role)
	}
	return found, false, err
}

// exprKeys are the keys that an expression names.
func exprKeys(text string, r role) (found []mention, any bool, err error) {
	vars := vocabulary.ConditionVariables
	if r == roleTask {
		vars = vocabulary.TaskVariables
	}
	p, err := expr.Compile(text, vars...)
	if err != nil {
		return nil, false, err
	}
	keys, hides := celKeys(text)
	seen := make(map[string]bool)
	for _, k := range keys {
		seen[k.name] = true
		found = append(found, mention{name: k.name, from: k.from, to: k.to, word: k.dot, odd: hides})
	}
	for _, root := range celRoots {
		read, all := p.Reads(root)
		any = any || all
		for _, key := range read {
			if !seen[key] {
				found = append(found, mention{name: key, odd: true})
			}
		}
	}
	return found, any, nil
}

// textKeys are the keys that a text names.
func textKeys(text string, d template.Dialect) ([]mention, error) {
	t, err := template.Parse(text, template.Options{Dialect: d})
	if err != nil {
		return nil, err
	}
	var found []mention
	add := func(name string, at int) {
		if key, from, ok := keyPart(name); ok {
			found = append(found, mention{name: key, from: at + from, to: at + from + len(key)})
		}
	}
	for _, ref := range t.Keys() {
		add(ref.Name, ref.NameIn(text, ref.From))
		if ref.Section {
			add(ref.Name, ref.NameIn(text, ref.Close))
		}
	}
	sort.Slice(found, func(i, k int) bool { return found[i].from < found[k].from }) // 20 KB smaller than slices.SortFunc
	return found, nil
}

// keyPart is the key in a name that a text gives: draft in draft.title and in
// prev.draft. What is built in is no key.
func keyPart(name string) (key string, from int, ok bool) {
	head, rest, dotted := strings.Cut(name, ".")
	switch {
	case slices.Contains(vocabulary.BuiltIn, name), head == "artifact" && dotted, head == "":
		return "", 0, false
	case dotted && (head == "prev" || head == "best" || head == "rejected"):
		key, _, _ = strings.Cut(rest, ".")
		return key, len(head) + 1, true
	}
	return head, 0, true
}
