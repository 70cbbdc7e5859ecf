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

// policy says which of our packages a package may import: the arrows of the
// design. "x/..." is x and all below it, "..." is everything. Where several
// lines fit a package, the longest name counts. "yaml" is go.yaml.in/yaml/v4, the one
// package of others that is in the policy. Test files are exempt, and every package
// may import internal/lazyregexp. Besides, whatever is written here, two kinds of
// agent never import each other, and no agent imports runner.
const policy = `
.:
expr:
template:
loop: expr
model:
model/internal/...: model model/internal/... internal/credential
model/gemini: model model/internal/...
model/openai: model model/internal/... internal/genaischema
model/anthropic: model model/internal/... internal/genaischema
model/scripted: model model/internal/... yaml
model/modeltest: model model/internal/... model/scripted
model/provider: model model/... expr
tool: agent session model tool/toolconfirmation
tool/mcptoolset: tool tool/functiontool agent session model tool/toolconfirmation internal/child internal/credential internal/interpreter internal/propagate
tool/functiontool: tool agent agent/drive internal/genaischema session model tool/toolconfirmation
tool/...: tool tool/functiontool agent agent/drive session model tool/toolconfirmation
tool/toolconfirmation:
observe: model
artifact:
artifact/...: artifact
budget:
internal/child: internal/credential
internal/committest:
internal/credential:
internal/genaischema:
internal/requesttemplate: template
internal/heaptest:
internal/interpreter:
internal/gzipped:
internal/lazyregexp:
internal/leaktest:
internal/longtest:
internal/propagate:
internal/pipe:
internal/procgroup:
session/mark: session/internal/jsonscan
session/lease:
session: session/internal/canonical session/lease session/mark model tool/toolconfirmation
session/internal/canonical:
session/seal: session session/internal/canonical session/mark
session/statekey: session session/mark
session/store: session session/lease session/mark
session/sessiontest: session session/store session/seal session/lease session/mark model tool/toolconfirmation
session/internal/jsonscan:
session/internal/eventjson: session session/internal/jsonscan session/mark
session/internal/sqlstore: session session/internal/canonical session/internal/eventjson session/store session/statekey session/lease session/mark
session/sqlite: session session/internal/sqlstore
session/postgres: session session/internal/sqlstore
memory: session
agent: agent/internal/... session session/mark artifact budget memory tool/toolconfirmation observe
agent/internal/...:
agent/drive: agent agent/internal/... session session/mark artifact budget memory model tool/toolconfirmation observe
agent/agenttest: agent agent/drive session
agent/llmagent: agent agent/drive agent/elsewhere budget expr session session/mark model template tool tool/... observe
agent/elsewhere: agent agent/drive model session session/lease
agent/humanagent: agent agent/drive session session/mark template
agent/remoteagent: agent agent/drive agent/elsewhere internal/credential internal/requesttemplate session session/lease session/mark template tool/toolconfirmation internal/propagate
agent/taskagent: agent agent/drive agent/elsewhere internal/child internal/credential internal/interpreter internal/procgroup internal/requesttemplate session session/mark model expr template internal/propagate
agent/workflowagents/loopagent: agent agent/drive budget loop session session/statekey session/seal session/mark model observe
agent/workflowagents/sequentialagent: agent agent/drive session
agent/workflowagents/parallelagent: agent agent/drive session
runner: agent agent/drive session session/store session/statekey session/lease session/mark artifact memory model tool/toolconfirmation observe
progress: session session/statekey session/seal session/mark model loop
runlog: loop progress session session/lease session/mark session/seal session/statekey session/store
prompt: agent agent/drive agent/llmagent agent/workflowagents/loopagent definition program model runlog runner session session/lease session/mark session/store supervisor tool
hook: internal/child internal/credential internal/interpreter internal/procgroup
definition: definition/internal/... agent agent/... budget hook internal/credential internal/pipe loop expr template session session/mark model model/provider model/scripted tool tool/...
rehearsal/internal/study: definition expr loop model/scripted session session/mark
rehearsal/internal/stage: rehearsal/internal/study agent agent/... budget definition expr loop model model/scripted progress runner session session/mark tool tool/...
rehearsal: rehearsal/internal/... agent definition loop model/scripted progress session session/statekey session/mark
stephost: agent/elsewhere agent/remoteagent agent/taskagent model model/provider
telemetry: agent internal/credential internal/propagate model observe
supervisor: agent artifact loop memory progress runner session session/store session/statekey session/seal session/lease session/mark observe
metrics: budget internal/gzipped loop model session session/lease session/mark supervisor
server: agent artifact budget definition definition/edit definition/form program expr internal/child internal/credential loop memory progress rehearsal runlog prompt server/internal/runpage session session/lease session/mark session/store supervisor
definition/internal/source: internal/credential yaml
definition/internal/vocabulary: agent/taskagent loop template
definition/edit: definition definition/internal/... expr template yaml
program: agent agent/elsewhere budget definition dialect internal/pipe loop model model/provider session session/mark supervisor
definition/form: definition definition/internal/... definition/edit model/provider
dialect: agent/llmagent definition expr internal/credential model/provider template yaml
webui: internal/gzipped
server/internal/runpage: loop progress session session/mark
cmd/refrain: command
command: ...
command/internal/firstgc:
command/internal/tui: progress loop session
command/internal/otlp: supervisor telemetry
command/internal/term: definition expr progress command/internal/otlp
command/internal/deffile: command/internal/term agent budget definition dialect program session/mark supervisor
command/internal/graph: command/internal/term definition loop
command/internal/check: definition progress
command/internal/backtest: command/internal/term expr loop progress session session/... yaml
command/internal/doctor: command/internal/term command/internal/deffile command/internal/runstore agent definition model model/provider progress session session/... tool/mcptoolset
command/internal/show: command/internal/term command/internal/runstore expr loop progress runlog prompt session session/...
command/internal/events: command/internal/term command/internal/runstore program expr loop progress runlog session session/...
command/internal/live: command/internal/tui command/internal/term command/internal/deffile command/internal/runstore command/internal/events agent budget definition loop progress runlog session session/... supervisor
command/internal/runstore: command/internal/term command/internal/deffile artifact artifact/disk program expr memory progress runlog server session session/... supervisor
examples/...: ...
`

// Arrows between packages point one way.
func TestImportsFollowThePolicy(t *testing.T) {
	rules := parsePolicy(t, policy)
	all := imports(t)
	if len(all) < 2 {
		t.Fatalf("found only the packages %q", slices.Collect(maps.Keys(all)))
	}
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		for _, wrong := range rules.check(pkg, all[pkg]) {
			t.Error(wrong)
		}
	}
}

// The policy itself: what it refuses and what it lets pass.
func TestPolicy(t *testing.T) {
	rules := parsePolicy(t, policy+"agent/bad: ...\n")
	for _, tt := range []struct {
		pkg     string
		imports []string
		want    []string
	}{
		{"loop", []string{"expr"}, nil},
		{"command", []string{"agent/taskagent", "runner"}, nil},
		{"examples/poll", []string{"runner"}, nil},
		{"definition", []string{"agent", "agent/workflowagents/loopagent", "tool"}, nil},
		{"loop", []string{"session"}, []string{"loop imports session, which the policy in deps_test.go does not allow"}},
		{"agent/bad", []string{"runner", "agent/taskagent", "agent/agenttest"}, []string{
			"agent/bad imports runner: no agent imports runner",
			"agent/bad imports agent/taskagent: two kinds of agent never import each other",
		}},
		{"agent", []string{"runner"}, []string{"agent imports runner: no agent imports runner"}},
		{"definition", []string{"yaml"}, []string{"definition imports yaml, which the policy in deps_test.go does not allow"}},
		{"novel", nil, []string{"novel is not in the policy of deps_test.go: add a line that says what it may import"}},
	} {
		if diff := cmp.Diff(tt.want, rules.check(tt.pkg, tt.imports)); diff != "" {
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

// rules maps a package, or a pattern of packages, to what it may import.
type rules map[string][]string

func parsePolicy(t *testing.T, text string) rules {
	t.Helper()
	r := make(rules)
	for line := range strings.Lines(strings.TrimSpace(text)) {
		pkg, may, ok := strings.Cut(line, ":")
		if _, twice := r[pkg]; !ok || twice {
			t.Fatalf("policy: bad or second line %q", line)
		}
		r[pkg] = strings.Fields(may)
	}
	return r
}

// check lists what is wrong with a package's imports.
func (r rules) check(pkg string, imports []string) []string {
	best, known := "", false
	for pattern := range r {
		if fits(pattern, pkg) && (!known || len(pattern) > len(best)) {
			best, known = pattern, true
		}
	}
	if !known {
		return []string{fmt.Sprintf("%s is not in the policy of deps_test.go: add a line that says what it may import", pkg)}
	}
	var wrong []string
	for _, to := range imports {
		switch {
		case to == "runner" && fits("agent/...", pkg):
			wrong = append(wrong, fmt.Sprintf("%s imports %s: no agent imports runner", pkg, to))
		case kindOfAgent(pkg) && kindOfAgent(to):
			wrong = append(wrong, fmt.Sprintf("%s imports %s: two kinds of agent never import each other", pkg, to))
		case to != "internal/lazyregexp" && !slices.ContainsFunc(r[best], func(pattern string) bool { return fits(pattern, to) }):
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which the policy in deps_test.go does not allow", pkg, to))
		}
	}
	return wrong
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
