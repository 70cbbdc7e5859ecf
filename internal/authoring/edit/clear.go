// SPDX-License-Identifier: Apache-2.0

package edit

import "go.yaml.in/yaml/v4"

// Clear removes a field as an empty input of a form does. It does nothing if the text does not have the field.
// A map that holds only this field is removed with it, and so is the short form: score: review for score.key.
func (e *Editor) Clear(path string) error {
	all, err := hops(path)
	at, gone, n := "", "", e.sheet.root
	for i := 0; i < len(all) && err == nil; i++ {
		if err = e.sheet.shared(n); err != nil {
			break
		}
		var child *yaml.Node
		if child, _, err = e.sheet.child(n, all[i]); err != nil {
			break
		}
		if child == nil {
			if i > 0 && n.Kind == yaml.ScalarNode && shorthand[all[i-1].key] == all[i].key {
				break
			}
			return nil
		}
		at += all[i].in(at)
		if only := n.Kind == yaml.MappingNode && len(n.Content) == 2; i == 0 || !only || !all[i-1].keyed {
			gone = at
		}
		n = child
	}
	if err != nil {
		return e.do("clear", path, func(bool) (attempt, error) { return attempt{}, err })
	}
	return e.Remove(gone)
}
