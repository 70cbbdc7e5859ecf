// SPDX-License-Identifier: Apache-2.0

// Package testcount counts the tests in what test programs print.
//
//	got, err := testcount.Of(testcount.GoJSON, stdout)
//	got.Counts.Map() // {passed: 41, failed: 2, …}
package testcount

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The formats.
const (
	GoJSON  = "go_json" // of go test -json
	JUnit   = "junit"   // XML
	Numbers = "counts"  // a JSON object with passed, failed and skipped
)

// Formats lists the formats.
func Formats() []string { return []string{GoJSON, JUnit, Numbers} }

// Counts are numbers of tests. A test that has subtests is counted by these.
type Counts struct {
	Passed, Failed, Skipped int64
	// Broken are the packages or suites, each also one that failed, that did not build, or ended before they had run all
	// of their tests. With any, the total says nothing about how many tests there are.
	Broken int64
	// Before are the counts of the start of the run, which no agent can have changed; nil if they are not known.
	Before *Declared
}

// Declared are numbers of tests that were not run.
type Declared struct{ Total, Skipped int64 }

// Result is what a program has said about its tests.
type Result struct {
	Counts
	Said string // the sum, and what the tests that failed have printed
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
	if r.Said != "" {
		m["said"] = r.Said
	}
	return m
}

// Of counts the tests in an output of a format. An output in which nothing can be counted, and one that was cut off, is an
// error.
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

func numbers(text string) (*Result, error) {
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&m); err != nil || d.More() {
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

// maxSaid is how many bytes of a program's words are kept.
const maxSaid = 16 << 10

// said begins with the sum, and has as much of the parts as there is room for.
func (r *Result) said(parts []string) {
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
		if room := maxSaid - b.Len(); len(part) > room {
			part = strings.ToValidUTF8(part[:max(0, room)], "") + "\n[…]"
			b.WriteString("\n" + part)
			break
		}
		b.WriteString("\n" + part)
	}
	r.Said = b.String()
}
