// SPDX-License-Identifier: Apache-2.0

package refrain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reaches names, by import path and name, what takes a program out of its own memory, with the word that doc/security.md
// has for it.
var reaches = map[string]map[string]string{
	"os/exec": {"Command": "starts", "CommandContext": "starts", "Cmd": "starts"},
	"plugin":  {"Open": "starts"},
	"syscall": {"Exec": "starts", "ForkExec": "starts", "StartProcess": "starts", "Connect": "connects"},
	"net": {
		"Dial": "connects", "DialTimeout": "connects", "DialTCP": "connects", "DialUDP": "connects", "DialUnix": "connects", "Dialer": "connects",
		"Listen": "listens", "ListenTCP": "listens", "ListenUnix": "listens", "ListenPacket": "listens", "ListenConfig": "listens",
		"Resolver": "connects", "DefaultResolver": "connects", "LookupHost": "connects", "LookupIP": "connects", "LookupAddr": "connects",
	},
	"crypto/tls": {"Dial": "connects", "Dialer": "connects", "Listen": "listens"},
	"net/http": {
		"Client": "connects", "DefaultClient": "connects", "DefaultTransport": "connects", "Transport": "connects",
		"Get": "connects", "Post": "connects", "Head": "connects", "PostForm": "connects",
		"ListenAndServe": "listens", "ListenAndServeTLS": "listens",
	},
	"net/http/httputil": {"ReverseProxy": "connects", "NewSingleHostReverseProxy": "connects"},
	"net/smtp":          {"Dial": "connects", "SendMail": "connects"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp":   {"New": "connects"},
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp": {"New": "connects"},
	"github.com/jackc/pgx/v5/pgconn":                                    {"Connect": "connects", "ConnectConfig": "connects"},
	"google.golang.org/genai":                                           {"NewClient": "connects"},
	"go.temporal.io/sdk/client":                                         {"Dial": "connects", "DialContext": "connects", "NewLazyClient": "connects"},
	"os": {
		"StartProcess": "starts",
		"WriteFile":    "writes", "Create": "writes", "CreateTemp": "writes", "OpenFile": "writes", "Rename": "writes", "Link": "writes", "Symlink": "writes",
		"Mkdir": "writes", "MkdirAll": "writes", "MkdirTemp": "writes", "Remove": "writes", "RemoveAll": "writes", "Truncate": "writes", "Chmod": "writes",
		"Chown": "writes", "Lchown": "writes", "Chtimes": "writes", "CopyFS": "writes",
	},
}

// methods are words of methods, whatever their type: those that take up a run that exists, and those of os.Root that write.
var methods = map[string]string{
	"Recover": "continues", "Resume": "continues", "TakeOver": "continues", "HandTo": "continues",
	"WriteFile": "writes", "OpenFile": "writes", "Mkdir": "writes", "MkdirAll": "writes", "RemoveAll": "writes", "Symlink": "writes",
	"Rename": "writes", "Link": "writes", "Chmod": "writes", "Chown": "writes", "Chtimes": "writes", "Lchown": "writes",
}

// A package that starts programs, opens connections, listens, writes files or continues runs stands in the table of
// doc/security.md with these words, which says who may cause it and what asks first. So a new caller is seen.
func TestSecurityTableNamesWhatReachesOut(t *testing.T) {
	got := make(map[string][]string)
	walk(t, func(name string) {
		dir := path.Dir(name)
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || onlyForTests(dir) {
			return
		}
		for _, what := range reachesOf(t, name) {
			if !slices.Contains(got[dir], what) {
				got[dir] = append(got[dir], what)
			}
		}
	})
	for _, words := range got {
		slices.Sort(words)
	}
	if len(got) < 10 {
		t.Fatalf("found only %v", slices.Collect(maps.Keys(got)))
	}
	if diff := cmp.Diff(securityTable(t), got); diff != "" {
		t.Errorf("the table \"What reaches out\" of doc/security.md does not say what the code does (-table +code):\n%s", diff)
	}
}

// onlyForTests reports whether a folder has code that no user runs: suites, benchmarks, examples and test data.
func onlyForTests(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	return slices.Contains([]string{"bench", "deploy", "examples"}, first) || strings.HasPrefix(dir, "internal/testkit/") ||
		strings.HasSuffix(path.Base(dir), "test") || strings.HasSuffix(path.Base(dir), "testsuite") || strings.Contains(dir, "testdata") || strings.HasPrefix(dir, "temporal/server")
}

// reachesOf returns the words of what a file calls.
func reachesOf(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := make(map[string]string) // by the name that the file uses
	for _, spec := range file.Imports {
		of, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		local := path.Base(of)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imported[local] = of
	}
	var words []string
	use := func(e ast.Expr, called bool) {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return
		}
		pkg, ok := sel.X.(*ast.Ident)
		of := ""
		if ok {
			of = imported[pkg.Name]
		}
		if what, ok := reaches[of][sel.Sel.Name]; ok {
			words = append(words, what)
		} else if what, ok := methods[sel.Sel.Name]; ok && of == "" && called {
			words = append(words, what)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) != 3 || !opensToRead(n.Args[1]) {
				use(n.Fun, true)
			}
		case *ast.CompositeLit: // &http.Client{}, net.Dialer{}
			use(n.Type, false)
		case *ast.SelectorExpr:
			if strings.HasPrefix(n.Sel.Name, "Default") {
				use(n, false)
			}
		}
		return true
	})
	return words
}

// opensToRead reports whether the flags of an OpenFile only read.
func opensToRead(flags ast.Expr) bool {
	found := false
	ast.Inspect(flags, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		found = found || ok && sel.Sel.Name == "O_RDONLY"
		return true
	})
	return found
}

var tableRow = regexp.MustCompile(`^\| ([^|]+) \| ([^|]+) \| [^|]+ \| [^|]+ \|$`)

// securityTable returns the table of doc/security.md: the words of each package.
func securityTable(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("doc/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## What reaches out\n")
	if !ok {
		t.Fatal(`doc/security.md has no section "What reaches out"`)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	table := make(map[string][]string)
	for line := range strings.Lines(section) {
		m := tableRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || m[1] == "package" || strings.HasPrefix(m[1], "---") {
			continue
		}
		for of := range strings.SplitSeq(m[1], ", ") {
			words := strings.Split(m[2], ", ")
			slices.Sort(words)
			table[strings.Trim(of, "`")] = words
		}
	}
	return table
}
