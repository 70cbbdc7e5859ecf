// SPDX-License-Identifier: Apache-2.0

package testcount

import (
	"encoding/json"
	"errors"
	"strings"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// goTest is a test, or a package.
type goTest struct {
	status string          // pass, fail or skip; "" if it has not ended
	said   strings.Builder // its output
	parent bool            // it has subtests
	fell   bool            // one of its subtests has failed
}

type goPackage struct {
	goTest
	begun, finished bool // go test has reported an event of the package; the test program has printed PASS or FAIL
	tests           map[string]*goTest
	names           []string // the names of the tests, in the order in which they began
}

// maxName is the number of bytes of a test's name that are read.
const maxName = 1000

// goJSON counts the tests of all packages. It ignores lines of other programs. A test that has subtests counts only if it
// failed and none of its subtests did. A test without a result counts as passed if its package passed, and as failed
// otherwise. A package that failed is broken if its test program did not print its result, because it did not build, has
// panicked or was killed, or if none of its tests failed. A failed package counts as a failed test only if none of its tests
// failed.
func goJSON(text string) (*Result, error) {
	packages, names := make(map[string]*goPackage), []string(nil)
	of := func(name string) *goPackage {
		p := packages[name]
		if p == nil {
			p = &goPackage{tests: make(map[string]*goTest)}
			packages[name], names = p, append(names, name)
		}
		return p
	}
	for line := range strings.Lines(text) {
		var ev event
		start := strings.Index(line, `{"`)
		if start < 0 || json.Unmarshal([]byte(line[start:]), &ev) != nil || ev.Action == "" {
			continue
		}
		if ev.Package == "" { // an event of the build
			name, _, _ := strings.Cut(ev.ImportPath, " ")
			if ev.Action == "build-output" && name != "" {
				of(name).said.WriteString(ev.Output)
			}
			continue
		}
		of(ev.Package).add(&ev)
	}
	r, parts, begun := new(Result), []string(nil), false
	for _, name := range names {
		p := packages[name]
		if p.begun {
			begun = true
			parts = append(parts, p.count(&r.Counts)...)
		}
	}
	if !begun {
		return nil, errors.New("it has no result of a package, as go test -json prints it; add -json to the command")
	}
	r.summarize(parts)
	return r, nil
}

// add adds an event of a test, or of the package itself, to the package.
func (p *goPackage) add(ev *event) {
	t := &p.goTest
	p.begun = true
	if name := ev.Test[:min(len(ev.Test), maxName)]; name != "" {
		if t = p.tests[name]; t == nil {
			t = new(goTest)
			p.tests[name], p.names = t, append(p.names, name)
		}
	}
	switch ev.Action {
	case "pass", "skip", "fail":
		if t.status != "fail" { // if a test runs several times, a failure counts
			t.status = ev.Action
		}
		if t.status == "pass" {
			t.said.Reset()
		}
	case "output":
		if ev.Test == "" && (ev.Output == "FAIL\n" || ev.Output == "PASS\n") {
			p.finished = true
			return
		}
		if !strings.HasPrefix(ev.Output, "=== ") {
			t.said.WriteString(ev.Output)
		}
	}
}

// under marks the tests that have the given test as a subtest; fell reports that it has failed. Each slash in a name may
// separate a test from its subtest.
func (p *goPackage) under(name string, fell bool) {
	for i, b := range []byte(name) {
		if b != '/' {
			continue
		}
		if t := p.tests[name[:i]]; t != nil {
			t.parent, t.fell = true, t.fell || fell
		}
	}
}

// count adds the tests of the package to c, and returns the output of the tests that failed.
func (p *goPackage) count(c *Counts) (parts []string) {
	passed := p.status == "pass" || p.status == "skip"
	failed := false
	for name, t := range p.tests {
		if t.status == "" && !passed {
			t.status = "fail"
		}
		failed = failed || t.status == "fail"
		p.under(name, t.status == "fail")
	}
	for _, name := range p.names {
		t := p.tests[name]
		switch {
		case t.status == "fail":
			parts = append(parts, t.said.String())
			if !t.fell {
				c.Failed++
			}
		case t.parent:
		case t.status == "skip":
			c.Skipped++
		default:
			c.Passed++
		}
	}
	if passed {
		return parts
	}
	if !failed {
		c.Failed++
	}
	if !p.finished || !failed {
		c.Broken++
	}
	return append(parts, p.said.String())
}
