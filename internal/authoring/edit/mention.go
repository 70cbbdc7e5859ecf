// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/vocabulary"
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
	keys, hides := vocabulary.CelKeys(text)
	seen := make(map[string]bool)
	for _, k := range keys {
		seen[k.Name] = true
		found = append(found, mention{name: k.Name, from: k.From, to: k.To, word: k.Dot, odd: hides})
	}
	for _, root := range vocabulary.CelRoots {
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
	keys, err := vocabulary.TextKeys(text, d)
	var found []mention
	for _, k := range keys {
		found = append(found, mention{name: k.Name, from: k.From, to: k.To})
	}
	return found, err
}
