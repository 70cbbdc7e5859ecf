// SPDX-License-Identifier: Apache-2.0

// Package findings reads what reviewers have found in a change, and puts their lists together.
//
//	r := findings.Read(map[string]string{"security": `[{"file": "a.go", "line": 3, "severity": "high", "problem": "…"}]`}, false, nil)
//	fmt.Println(r.Verdict) // 1 finding is above low.
package findings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Finding is a fault that a reviewer points at. Its JSON is what a reviewer says.
type Finding struct {
	File     string `json:"file"`           // relative to the folder of the reviewer, with slashes
	Line     int    `json:"line,omitempty"` // from 1; 0 if the fault is in no line
	Severity string `json:"severity"`       // of Severities
	Problem  string `json:"problem"`
}

// Severities lists the values of [Finding].Severity, the worst first.
var Severities = []string{"critical", "high", "medium", "low"}

// Report is what all reviewers have found.
type Report struct {
	// Findings has one for each place, the worst first.
	Findings []Finding `json:"findings"`
	// Unread names the reviewers whose answer is no list of findings, or has one that cannot be read; its other findings count.
	Unread []string `json:"unread,omitempty"`
	// Open reports whether a finding is above low, or an answer is unread. Fix reports whether the findings are to be corrected now.
	Open bool `json:"open"`
	Fix  bool `json:"fix"`
	// Text has a line for each finding; Verdict says how the review stands.
	Text    string `json:"text,omitempty"`
	Verdict string `json:"verdict"`
}

// Read reads the answers of reviewers, by their names. Findings at the same line of a file become one, with the worst severity and all
// problems. last says that no review follows, so that nothing is to be corrected. exists reports whether there is a file of a relative
// name; it turns an absolute name, which may be that of another copy of the files, into the longest relative one that exists. Nil leaves
// names as they are.
func Read(answers map[string]string, last bool, exists func(name string) bool) *Report {
	r := &Report{Findings: []Finding{}}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		all, err := parse(answers[name])
		if err != nil {
			r.Unread = append(r.Unread, fmt.Sprintf("%s (%v)", name, err))
		}
		for _, f := range all {
			f.File = relative(f.File, exists)
			r.add(f)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	above := 0
	var text strings.Builder
	for _, f := range r.Findings {
		if f.Severity != "low" {
			above++
		}
		text.WriteString(f.String() + "\n")
	}
	r.Text = text.String()
	r.Open = above > 0 || len(r.Unread) > 0
	r.Fix = above > 0 && !last
	switch above {
	case 0:
		r.Verdict = "No finding is above low."
	case 1:
		r.Verdict = "1 finding is above low."
	default:
		r.Verdict = fmt.Sprintf("%d findings are above low.", above)
	}
	if len(r.Unread) > 0 {
		r.Verdict += " No list of findings from: " + strings.Join(r.Unread, "; ") + "."
	}
	return r
}

// relative returns the longest end of an absolute name that exists; any other name stays as it is.
func relative(name string, exists func(string) bool) string {
	if exists == nil || !path.IsAbs(name) {
		return name
	}
	for rest := strings.TrimPrefix(name, "/"); rest != ""; {
		if exists(rest) {
			return rest
		}
		_, rest, _ = strings.Cut(rest, "/")
	}
	return name
}

func (r *Report) add(f Finding) {
	i := slices.IndexFunc(r.Findings, func(g Finding) bool { return g.File == f.File && g.Line == f.Line })
	if i < 0 {
		r.Findings = append(r.Findings, f)
		return
	}
	g := &r.Findings[i]
	if f.rank() < g.rank() {
		g.Severity = f.Severity
	}
	if !strings.Contains(g.Problem, f.Problem) {
		g.Problem += " / " + f.Problem
	}
}

func (f *Finding) rank() int { return slices.Index(Severities, f.Severity) }

func (f *Finding) String() string {
	place := f.File
	if f.Line > 0 {
		place += fmt.Sprintf(":%d", f.Line)
	}
	return fmt.Sprintf("- %s, %s: %s", f.Severity, place, f.Problem)
}

// mostProblem is how many characters of a problem are kept, and mostLists in how many places of an answer a list is looked for.
const (
	mostProblem = 1000
	mostLists   = 100
)

// listBegins matches where a list of findings can begin: text such as [x] is none.
var listBegins = lazyregexp.New(`\[\s*[{\]]`)

// parse reads the list of findings in an answer, which may have other text around it. The last list counts. An empty list counts only
// in an answer without any object, because a list that is cut off may contain the text [].
func parse(answer string) (all []Finding, err error) {
	if strings.TrimSpace(answer) == "" {
		return nil, errors.New("no answer")
	}
	err = errors.New("no list in JSON")
	rest := answer
	for range mostLists {
		at := listBegins().FindStringIndex(rest)
		if at == nil {
			break
		}
		rest = rest[at[0]:]
		d := json.NewDecoder(strings.NewReader(rest))
		var list []json.RawMessage
		switch {
		case d.Decode(&list) != nil, len(list) == 0 && strings.Contains(answer, "{"):
			rest = rest[1:]
			continue
		}
		rest = rest[d.InputOffset():]
		all, err = read(list)
	}
	return all, err
}

func read(list []json.RawMessage) ([]Finding, error) {
	var all []Finding
	var first error
	for i, item := range list {
		f, err := one(item)
		switch {
		case err == nil:
			all = append(all, f)
		case first == nil:
			first = fmt.Errorf("finding %d: %w", i+1, err)
		}
	}
	return all, first
}

// one reads a finding. Reviewers also write the line as text or a range, such as "3-5", whose first number counts.
func one(item json.RawMessage) (f Finding, err error) {
	var said struct {
		File, Severity, Problem string
		Line                    json.RawMessage
	}
	if json.Unmarshal(item, &said) != nil {
		return f, errors.New("it is no object with the texts file, severity and problem")
	}
	f = Finding{File: said.File, Severity: said.Severity, Problem: said.Problem}
	numbers := strings.FieldsFunc(string(said.Line), func(c rune) bool { return c < '0' || c > '9' })
	if len(numbers) > 0 && said.Line[0] != '-' {
		f.Line, _ = strconv.Atoi(numbers[0])
	}
	return f, f.check()
}

func (f *Finding) check() error {
	f.Severity = strings.ToLower(strings.TrimSpace(f.Severity))
	f.Problem = brief.Clip(brief.Clean(strings.Join(strings.Fields(f.Problem), " ")), mostProblem)
	f.File = path.Clean(brief.Clean(strings.ReplaceAll(strings.TrimSpace(f.File), "\\", "/")))
	switch {
	case f.rank() < 0:
		return fmt.Errorf("severity %q is none of %s", brief.Clip(brief.Clean(f.Severity), 40), strings.Join(Severities, ", "))
	case f.Problem == "":
		return errors.New("it has no problem")
	}
	return nil
}
