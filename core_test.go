// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// core is what a program with a loop of agents imports at least.
var core = []string{".", "./agent", "./agent/llmagent", "./agent/workflowagents/loopagent", "./loop", "./runner", "./session", "./tool"}

// coreModules are the modules behind them. Those besides jsonschema-go come with genai, whose types are
// those of the API.
var coreModules = strings.Fields(`
cloud.google.com/go
cloud.google.com/go/auth
cloud.google.com/go/compute/metadata
github.com/golang/groupcache
github.com/google/go-cmp
github.com/google/jsonschema-go
github.com/google/s2a-go
github.com/googleapis/enterprise-certificate-proxy
github.com/gorilla/websocket
go.opencensus.io
golang.org/x/crypto
golang.org/x/net
golang.org/x/sys
golang.org/x/text
google.golang.org/genai
google.golang.org/genproto/googleapis/rpc
google.golang.org/grpc
google.golang.org/protobuf
`)

// listed runs go list over the core and everything that it imports, on the platform of the releases.
func listed(t *testing.T, format string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", format}, core...)...)
	cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	slices.Sort(all)
	return slices.Compact(all)
}

// Who imports the core gets few modules: another one is a decision, not an accident.
func TestModulesOfTheCore(t *testing.T) {
	got := listed(t, "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}")
	if diff := cmp.Diff(coreModules, got); diff != "" {
		t.Errorf("modules of the core (-want +got):\n%s", diff)
	}
}

// The core has no engine of expressions, no definitions and nothing of the command.
func TestPackagesOfTheCore(t *testing.T) {
	for _, pkg := range listed(t, "{{.ImportPath}}") {
		path, ours := strings.CutPrefix(pkg, "github.com/refrain-dev/refrain/")
		for _, no := range []string{"expr/cel", "definition", "command", "supervisor", "server"} {
			if ours && (path == no || strings.HasPrefix(path, no+"/")) {
				t.Errorf("the core imports %s", pkg)
			}
		}
	}
}
