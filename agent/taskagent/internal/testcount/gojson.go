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
	status string // pass, fail or skip; "" if it has not ended
	said   strings.Builder
	parent bool // it has subtests
	fell   bool // one of them did
}

type goPackage struct {
	goTest
	begun, finished bool // its program has told the result itself
	tests           map[string]*goTest
	names           []string // in order
}

// maxName is how many bytes of a test's name count.
const maxName = 1000

// goJSON counts the tests of all packages. Lines of other programs are left out. A test that has subtests is counted only if
// it failed and none of them did. One without a result has the result of a package that passed, and failed otherwise. A
// package that failed without a result of its program, because it did not build, has panicked or was ended, is broken; it
// counts as a failed test unless one of its tests failed.
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
		if ev.Package == "" { // of the compiler
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
	r.said(parts)
	return r, nil
}

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
		if t.status != "fail" { // of several runs
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

// under notes a test in those that it is a subtest of. A name may consist of slashes.
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

// count adds the tests of the package, and returns what those have said that failed.
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
