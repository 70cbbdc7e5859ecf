// SPDX-License-Identifier: Apache-2.0

// Package testcount counts the tests in the output of test programs.
//
//	got, err := testcount.Of(testcount.GoJSON, stdout)
//	got.Counts.Map() // {passed: 41, failed: 2, …}
package testcount

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The formats.
const (
	GoJSON  = "go_json" // the output of go test -json
	JUnit   = "junit"   // XML in JUnit's format
	Numbers = "counts"  // a JSON object with passed, failed and skipped
)

// Formats lists the formats.
func Formats() []string { return []string{GoJSON, JUnit, Numbers} }

// Counts has numbers of tests. A test that has subtests is not counted itself, unless it failed and none of them did.
type Counts struct {
	Passed, Failed, Skipped int64
	// Broken is the number of packages that did not build or did not run to the end, and of errors of suites that have no
	// test cases. If it is not zero, the number of tests is not known.
	Broken int64
	// Before has the numbers at the start of the run, which no agent can have changed; nil if they are not known.
	Before *Declared
}

// Declared has numbers of tests that a program reports without running them.
type Declared struct{ Total, Skipped int64 }

// Result has the counts of tests, and a text about them.
type Result struct {
	Counts
	Summary string // a line with the counts, and the output of the tests that failed; at most about 16 KiB
}

// Map returns the counts as a value of the state: passed, failed, skipped, total, broken if it is not zero, and, if there
// are any tests, score, the share of them that passed. total_before, skipped_before and said are there if they are known.
func (r *Result) Map() map[string]any {
	total := r.Passed + r.Failed + r.Skipped
	m := map[string]any{"passed": r.Passed, "failed": r.Failed, "skipped": r.Skipped, "total": total}
	if r.Broken > 0 {
		m["broken"] = r.Broken
	}
	if total > 0 {
		m["score"] = float64(r.Passed) / float64(total)
	}
	if r.Before != nil {
		m["total_before"], m["skipped_before"] = r.Before.Total, r.Before.Skipped
	}
	if r.Summary != "" {
		m["said"] = r.Summary
	}
	return m
}

// Of counts the tests in an output of the given format. It returns an error if there is nothing to count, or if an output
// of JUnit or Numbers was cut off. In an output of GoJSON that was cut off, the package without a result counts as broken.
func Of(format, text string) (*Result, error) {
	switch format {
	case GoJSON:
		return goJSON(text)
	case Numbers:
		return numbers(text)
	}
	return junit(text)
}

// most is the largest number of tests that a program may report.
const most = 1e9

// numbers reads counts that a program has printed as one JSON object.
func numbers(text string) (*Result, error) {
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err := d.Decode(&m)
	if _, end := d.Token(); err != nil || end != io.EOF {
		return nil, errors.New("it is not one JSON object, such as {\"passed\": 40, \"failed\": 1, \"skipped\": 0}")
	}
	r, before := new(Result), Declared{-1, -1}
	for _, f := range []struct {
		name   string
		to     *int64
		needed bool
	}{{"passed", &r.Passed, true}, {"failed", &r.Failed, true}, {"skipped", &r.Skipped, false}, {"broken", &r.Broken, false},
		{"total_before", &before.Total, false}, {"skipped_before", &before.Skipped, false}} {
		v, ok := m[f.name]
		if !ok && !f.needed {
			continue
		}
		n, isNumber := v.(json.Number)
		i, err := strconv.ParseFloat(n.String(), 64)
		switch {
		case !ok:
			return nil, fmt.Errorf("the JSON object has no %q", f.name)
		case !isNumber || err != nil || i != float64(int64(i)) || i < 0 || i > most:
			return nil, fmt.Errorf("%q is %.40v, and not a number of tests", f.name, v)
		}
		*f.to = int64(i)
	}
	if before.Total >= 0 && before.Skipped >= 0 {
		r.Before = &before
	}
	return r, nil
}

// maxSummary is the largest size of Result.Summary, in bytes.
const maxSummary = 16 << 10

// summarize sets r.Summary to a line with the counts, followed by the parts up to maxSummary bytes.
func (r *Result) summarize(parts []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped)
	if r.Broken > 0 {
		fmt.Fprintf(&b, " (%d did not build, or not run to the end)", r.Broken)
	}
	for _, part := range parts {
		part = strings.TrimRight(part, "\n")
		if part == "" {
			continue
		}
		if room := maxSummary - b.Len(); len(part) > room {
			part = strings.ToValidUTF8(part[:max(0, room)], "") + "\n[…]"
			b.WriteString("\n" + part)
			break
		}
		b.WriteString("\n" + part)
	}
	r.Summary = b.String()
}
