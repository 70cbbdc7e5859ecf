// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files of the page import one another in one direction only.
func TestFilesOfThePageDoNotImportInCircles(t *testing.T) {
	if found := circle(imports(ours(t))); found != nil {
		t.Errorf("%s: move what both need to a file of its own", strings.Join(found, " imports "))
	}
}

func TestCircleIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"none": {map[string]string{"a.js": "import { b } from './b.js'\nimport './c.js'", "b.js": "import c from './c.js'", "c.js": ""}, nil},
		"of two, by another folder": {
			map[string]string{"app.js": "import { run } from './pages/run.js'", "pages/run.js": "import { link } from '../app.js'"},
			[]string{"app.js", "pages/run.js", "app.js"},
		},
		"by an export and a dynamic import": {
			map[string]string{"a.js": "b()", "b.js": "export { c } from './c.js'", "c.js": "const d = await import('./b.js')"},
			[]string{"b.js", "c.js", "b.js"},
		},
		"over several lines": {
			map[string]string{"a.js": "import {\n  b,\n} from \"./b.js\"", "b.js": "import './a.js'"},
			[]string{"a.js", "b.js", "a.js"},
		},
	} {
		if diff := cmp.Diff(tt.want, circle(imports(tt.files))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// importing finds the path in "from './x.js'", "import './x.js'" and "import('./x.js')".
var importing = regexp.MustCompile(`\b(?:from|import)\s*\(?\s*['"](\.[^'"]*)['"]`)

// imports returns which files each script imports.
func imports(files map[string]string) map[string][]string {
	all := make(map[string][]string)
	for name, text := range files {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, found := range importing.FindAllStringSubmatch(text, -1) {
			all[name] = append(all[name], path.Join(path.Dir(name), found[1]))
		}
	}
	return all
}

// circle returns the files of a circle of imports, the first one again at the end, or nil without one.
func circle(imports map[string][]string) []string {
	done := make(map[string]bool)
	var visit func(name string, above []string) []string
	visit = func(name string, above []string) []string {
		if i := slices.Index(above, name); i >= 0 {
			return append(slices.Clone(above[i:]), name)
		}
		if done[name] {
			return nil
		}
		above = append(above, name)
		for _, to := range imports[name] {
			if found := visit(to, above); found != nil {
				return found
			}
		}
		done[name] = true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		if found := visit(name, nil); found != nil {
			return found
		}
	}
	return nil
}
