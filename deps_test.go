// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/refrain-dev/refrain"

// floors is the layering of the house, from the ground to the roof. A package imports packages of lower
// floors and, on its own floor, its kin: packages whose paths begin with the same name. Two rooms side by
// side on one floor never import each other. Below internal each
// room is a family, but for seal, which is session's, and web, which is server's. "x/..." is x and all below it; where
// several patterns fit a package, the longest one counts. Test files are exempt.
//
// Agents and tools are one kin, as in ADK: a tool names agents, and an agent names tools.
const floors = `
values:     internal/values/... internal/eval/stats
process:    platform internal/process/... internal/files/workspace internal/testkit/...
words:      expr/... internal/text/... budget artifact/... tool/toolconfirmation
models:     model/... internal/text/requesttemplate internal/testkit/artifacttest
rules:      loop telemetry/observe
log:        session/... internal/seal/...
around:     memory internal/process/hook
agents:     agent/... tool/...
plugins:    plugin/... util/...
apart:      runner telemetry internal/runs/stephost internal/history/progress/... internal/history/questions internal/history/stops
shapes:     internal/vocabulary internal/files/runfiles
definition: definition/...
whole:      . supervisor internal/history/runlog internal/authoring/...
runs:       telemetry/metrics internal/runs/...
evals:      internal/eval/...
doors:      server/... internal/web/... evaltest replaytest
command:    command/...
mains:      cmd/... examples/...
starts:     cmd/launcher/...
`

// readers are the packages that may import a YAML library.
var readers = []string{
	"model/scripted", "tool/skilltoolset/skill", "internal/text/source", "internal/authoring/edit", "internal/authoring/dialect/...", "internal/runs/replay", "command/internal/backtest", "command/internal/codingloop",
	"command/internal/running", // the files with flags of refrain loop
}

// Arrows between packages point down.
func TestImportsFollowTheFloors(t *testing.T) {
	house := parseFloors(t, floors)
	all := imports(t)
	if len(all) < 2 {
		t.Fatalf("found only the packages %q", slices.Collect(maps.Keys(all)))
	}
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		for _, wrong := range house.check(pkg, all[pkg]) {
			t.Error(wrong)
		}
	}
	for _, r := range house {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(pkg string) bool { return fits(r.pattern, pkg) }) {
			t.Errorf("no package fits %q of the floor %q: remove it", r.pattern, r.floor)
		}
	}
}

// The floors themselves: what they refuse and what they let pass.
func TestFloors(t *testing.T) {
	house := parseFloors(t, floors)
	for _, tt := range []struct {
		pkg     string
		imports []string
		want    []string
	}{
		{"loop", []string{"expr"}, nil},
		{"command", []string{"agent/taskagent", "runner"}, nil},
		{"examples/poll", []string{"runner"}, nil},
		{"definition", []string{"agent", "agent/workflowagents/loopagent", "tool"}, nil},
		{"agent/llmagent", []string{"agent/drive", "tool/functiontool"}, nil},
		{"tool/agenttool", []string{"agent"}, nil},
		{"session/sqlite", []string{"session/internal/sqlstore"}, nil},
		{"loop", []string{"session"}, []string{"loop (floor rules) imports session (floor log): arrows point down"}},
		{"loop", []string{"telemetry/observe"}, []string{"loop imports telemetry/observe: they stand side by side on the floor rules"}},
		{"agent", []string{"runner"}, []string{"agent (floor agents) imports runner (floor apart): arrows point down"}},
		{"agent/llmagent", []string{"agent/taskagent"}, []string{
			"agent/llmagent imports agent/taskagent: two kinds of agent never import each other"}},
		{"definition", []string{"yaml"}, []string{"definition imports yaml, which is for " + strings.Join(readers, ", ")}},
		{"novel", nil, []string{"novel has no floor in deps_test.go"}},
	} {
		if diff := cmp.Diff(tt.want, house.check(tt.pkg, tt.imports)); diff != "" {
			t.Errorf("%s: %s", tt.pkg, diff)
		}
	}
}

// Every file says under which licence it is.
func TestEveryGoFileStartsWithTheSPDXLine(t *testing.T) {
	walk(t, func(name string) {
		if path.Ext(name) != ".go" {
			return
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(string(text), "// SPDX-License-Identifier: Apache-2.0\n") {
			t.Errorf("%s does not start with // SPDX-License-Identifier: Apache-2.0", name)
		}
	})
}

// room is where the packages of a pattern stand.
type room struct {
	pattern, floor string
	height         int
}

type house []room

func parseFloors(t *testing.T, text string) (h house) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(text)) {
		floor, patterns, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("floors: bad line %q", line)
		}
		for pattern := range strings.FieldsSeq(patterns) {
			h = append(h, room{pattern, floor, len(h)})
		}
	}
	return h
}

// of returns where a package stands.
func (h house) of(pkg string) (best room, ok bool) {
	for _, r := range h {
		if fits(r.pattern, pkg) && (!ok || len(r.pattern) > len(best.pattern)) {
			best, ok = r, true
		}
	}
	return best, ok
}

// check lists what is wrong with a package's imports.
func (h house) check(pkg string, imports []string) (wrong []string) {
	from, ok := h.of(pkg)
	if !ok {
		return []string{pkg + " has no floor in deps_test.go"}
	}
	for _, to := range imports {
		at, ok := h.of(to)
		switch {
		case to == "yaml":
			if !slices.ContainsFunc(readers, func(pattern string) bool { return fits(pattern, pkg) }) {
				wrong = append(wrong, fmt.Sprintf("%s imports yaml, which is for %s", pkg, strings.Join(readers, ", ")))
			}
		case !ok: // reported for that package
		case kindOfAgent(pkg) && kindOfAgent(to) && !strings.HasPrefix(pkg, to+"/"): // but a room below it may
			wrong = append(wrong, fmt.Sprintf("%s imports %s: two kinds of agent never import each other", pkg, to))
		case at.floor == from.floor && kin(pkg) != kin(to):
			wrong = append(wrong, fmt.Sprintf("%s imports %s: they stand side by side on the floor %s", pkg, to, at.floor))
		case at.floor != from.floor && at.height > from.height:
			wrong = append(wrong, fmt.Sprintf("%s (floor %s) imports %s (floor %s): arrows point down", pkg, from.floor, to, at.floor))
		}
	}
	return wrong
}

// kin is what packages of one family have in common.
func kin(pkg string) string {
	family, below, _ := strings.Cut(pkg, "/")
	switch family {
	case "tool":
		return "agent"
	case "internal":
		family, _, _ = strings.Cut(below, "/")
		switch family {
		case "seal":
			return "session"
		case "web":
			return "server"
		}
	}
	return family
}

func fits(pattern, pkg string) bool {
	root, below := strings.CutSuffix(pattern, "...")
	root = strings.TrimSuffix(root, "/")
	return pkg == root || below && (root == "" || strings.HasPrefix(pkg, root+"/"))
}

func kindOfAgent(pkg string) bool {
	return strings.HasPrefix(pkg, "agent/") && pkg != "agent/agenttest" && pkg != "agent/drive" &&
		pkg != "agent/elsewhere" && !strings.Contains(pkg, "/internal")
}

// imports lists, for every package of this module, which others of ours its
// files import, on every platform, and whether they import yaml.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	walk(t, func(name string) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || slices.Contains(strings.Split(name, "/"), "testdata") || foreign(name) {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return
		}
		pkg := path.Dir(name)
		found := all[pkg]
		for _, spec := range file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Errorf("%s: import %s: %v", name, spec.Path.Value, err)
			}
			if to == module {
				found = append(found, ".")
			} else if to == "go.yaml.in/yaml/v4" {
				found = append(found, "yaml")
			} else if ours, ok := strings.CutPrefix(to, module+"/"); ok {
				found = append(found, ours)
			}
		}
		slices.Sort(found)
		all[pkg] = slices.Compact(found)
	})
	return all
}

// foreign reports whether a file belongs to a module in a folder below.
func foreign(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// walk visits every file that is not in a hidden folder.
func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir():
			visit(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
