// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed differences.txt
var table string

// difference describes how a name differs in Refrain.
type difference struct {
	breaks bool
	text   string
}

// differences returns the table. Its keys are "path", "path Name", "path Type.Field" and "path .Method".
var differences = sync.OnceValue(func() map[string]difference {
	all := map[string]difference{}
	var d difference
	for line := range strings.Lines(table) {
		kind, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch kind {
		case "!", "~":
			d = difference{kind == "!", text}
		case "":
			path, names, inside := strings.Cut(strings.TrimSpace(text), ": ")
			for word := range strings.FieldsSeq(names) {
				all[path+" "+word] = d
			}
			for word := range strings.FieldsSeq(path) {
				if !inside {
					all[word] = d
				}
			}
		}
	}
	return all
})

// packages returns the paths of ADK's packages that Refrain has.
func packages() (paths []string) {
	for line := range strings.Lines(table) {
		if list, is := strings.CutPrefix(line, "= "); is {
			paths = append(paths, strings.Fields(list)...)
		}
	}
	return paths
}

// lookup reports whether the table has a package of ADK. key is the key of the difference that says why Refrain lacks the
// package; empty if Refrain has the package.
func lookup(path string) (key string, known bool) {
	if slices.Contains(packages(), path) {
		return "", true
	}
	for {
		if _, is := differences()[path]; is {
			return path, true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return "", false
		}
		path = path[:i]
	}
}
