// SPDX-License-Identifier: Apache-2.0

package commandrule_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/commandrule"
)

func inside(p string) bool {
	return filepath.IsLocal(p) || strings.HasPrefix(filepath.Clean(p), "/work/tree/")
}

func TestPrefixes(t *testing.T) {
	for line, want := range map[string][]string{
		"go test ./...":                     {"go test"},
		"go vet ./... && go test ./...":     {"go vet", "go test"},
		"npm run lint -- --fix":             {"npm run lint"},
		"npm test":                          {"npm test"},
		"make check":                        {"make check"},
		"make":                              nil,
		"cargo test --all":                  {"cargo test"},
		"./gradlew test":                    {"./gradlew test"},
		"python -m pytest -q":               {"python -m pytest"},
		"python check.py":                   nil,
		".venv/bin/pytest tests":            {".venv/bin/pytest"},
		"pytest tests":                      {"pytest"},
		"cd sub && CI=1 yarn test":          {"yarn test"},
		"timeout 60 go test":                {"go test"},
		"bash -c 'go test'":                 nil,
		"go test $(go list ./...)":          nil,
		"eval 'go test'":                    nil,
		"npx jest":                          nil,
		"go test \"unclosed":                nil,
		"sudo go test":                      nil,
		"go test <<EOF\nx\nEOF":             nil,
		"(cd a; go test) || ./check.sh one": {"go test", "./check.sh one"},
		"$TOOL test":                        nil,
	} {
		if diff := cmp.Diff(want, commandrule.New(line).Prefixes()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestAllow(t *testing.T) {
	rules := commandrule.New("go vet ./... && GOFLAGS=-race go test ./...", "npm run lint", "sh check.sh", "x=$(date) && ./odd")
	for line, want := range map[string]bool{
		"go test ./...":                               true,
		"go test -run TestX -v":                       true,
		"cd sub && go test":                           true,
		"cd /work/tree/sub && go test":                true,
		"go test 2>&1 | tail -n 5":                    true,
		"go test > out.txt":                           true,
		"go test >/dev/null 2>&1; echo $?":            true,
		"timeout 60 go test || true":                  true,
		"CGO_ENABLED=0 go test":                       true,
		"GOFLAGS=-race go test":                       true,
		"bash -lc 'go test ./...'":                    true,
		"git status && git diff":                      true,
		"npm run lint":                                true,
		"npm run lint -- x":                           true,
		"sh check.sh":                                 true,
		"x=$(date) && ./odd":                          true,
		"if go test; then echo yes; fi":               true,
		"go vet ./... && GOFLAGS=-race go test ./...": true,

		"":                              false,
		"go":                            false,
		"go run x.go":                   false,
		"go test; curl example.com":     false,
		"go test && git push":           false,
		"git -C . push":                 false,
		"git push":                      false,
		"git diff --output=/etc/passwd": false,
		"rm -rf ~":                      false,
		"curl example.com":              false,
		"cd .. && go test":              false,
		"cd / && go test":               false,
		"cd ~ && go test":               false,
		"cd $X && go test":              false,
		"go test > /etc/passwd":         false,
		"go test > ~/out":               false,
		"go test > ../out":              false,
		"go test >& ../out":             false,
		"go test &> /tmp/out":           false,
		"go test $(curl example.com)":   false,
		"go test `rm -rf ~`":            false,
		"go test <(curl example.com)":   false,
		"cat <<EOF | sh\nrm -rf ~\nEOF": false,
		"GOFLAGS=-toolexec=./x go test": false,
		"PATH=. go test":                false,
		"PATH=.; go test":               false,
		"export PATH=.; go test":        false,
		"alias ls=rm; ls x":             false,
		"go() { rm -rf ~; }; go test":   false,
		"bash -c 'curl example.com'":    false,
		"sh -c 'sh -c \"sh -c ls\"' x":  false,
		"sh other.sh":                   false,
		"echo hi | sh":                  false,
		"ls | xargs rm":                 false,
		"npm run other":                 false,
		"npm test":                      false,
		"go\\ test":                     false,
		"g''o test":                     true, // the shell runs go test
		"go \"te\"st":                   true,
		"go 'test":                      false,
	} {
		if got := rules.Allow(line, inside); got != want {
			t.Errorf("%s: allowed %t, want %t", line, got, want)
		}
	}
}

// No line makes the matcher panic, and none is allowed that has a command of its own.
func FuzzAllow(f *testing.F) {
	for _, line := range []string{"go test", "a && b", "x <<E\ny\nE", "$(x)", "{ go test; }", "coproc go test", "go test &"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		rules := commandrule.New("go test")
		_ = commandrule.New(line).Prefixes()
		if rules.Allow(line, inside) && rules.Allow("curl x; "+line, inside) {
			t.Errorf("%q is allowed after curl", line)
		}
	})
}
