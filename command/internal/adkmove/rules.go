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

// difference is what the table says of a name.
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

// packages returns ADK's packages that are here too.
func packages() (paths []string) {
	for line := range strings.Lines(table) {
		if list, is := strings.CutPrefix(line, "= "); is {
			paths = append(paths, strings.Fields(list)...)
		}
	}
	return paths
}

// lookup reports whether the table knows a package of ADK. The key is that of the difference which says why it is not
// here; empty if it is.
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
