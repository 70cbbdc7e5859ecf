// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// draw makes a report of any size, with hostile texts and unknown numbers.
func draw(r *rand.Rand) *report.Report {
	texts := []string{"", "a", "refund-7", "\x1b[2Jx", "]]>", "<b>&\"", "日本\u202e", "\xff", strings.Repeat("long ", 40), "p-value"}
	text := func() string { return texts[r.IntN(len(texts))] }
	maybe := func() *float64 {
		return []*float64{nil, new(0.0), new(r.Float64()), new(r.Float64() * 1e4), new(math.NaN()), new(math.Inf(1))}[r.IntN(6)]
	}
	side := func() report.Side {
		s := report.Side{Name: text()}
		for i := range r.IntN(12) {
			c := report.Case{ID: fmt.Sprint(text(), i), Weight: []float64{0, 1, 3, -1}[r.IntN(4)]}
			if r.IntN(3) == 0 {
				c.Group = text()
			}
			for range r.IntN(4) {
				run := report.Run{Score: maybe(), Cost: maybe(), Seconds: r.Float64() * 100, Answer: text()}
				switch r.IntN(12) {
				case 0:
					run.Error = text()
				case 1:
				default:
					run.Passed = new(r.IntN(2) == 0)
				}
				run.Checks = []report.Check{{Name: text(), Value: maybe(), Passed: run.Passed, Reason: text(), Votes: r.IntN(3), Split: r.IntN(2) == 0}}
				c.Runs = append(c.Runs, run)
			}
			s.Cases = append(s.Cases, c)
		}
		return s
	}
	rep := &report.Report{Eval: "ev_1", Set: text(), New: side(), Notes: []string{text()}, Margin: float64(r.IntN(3)) / 10}
	rep.Decide = []string{"", report.Score, report.Cost, report.Seconds, text()}[r.IntN(5)]
	if r.IntN(4) > 0 {
		rep.Old = new(side())
	}
	if r.IntN(4) == 0 {
		rep.Ended, rep.Planned, rep.Repeat = "the budget is used up", 20, 3
	}
	return rep
}

// Whatever the runs are, the forms are well made: sentences fit the width, no number is NaN, and no text commands the terminal.
func TestFormsOfDrawnReports(t *testing.T) {
	bad := regexp.MustCompile(`NaN|Inf|%!|<nil>`)
	for seed := range longtest.N(uint64(80), 20_000) {
		r := rand.New(rand.NewPCG(seed, 40))
		s := draw(r).Summary()
		var text, doc, junit bytes.Buffer
		width := 40 + r.IntN(80)
		for _, err := range []error{s.WriteText(&text, width), s.WriteJSON(&doc), s.WriteJUnit(&junit)} {
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		head, rest, _ := strings.Cut(text.String(), "\n\n")
		_, verdict, _ := strings.Cut(rest, "\n\n")
		for line := range strings.Lines(head + "\n" + verdict) {
			line = strings.TrimSuffix(line, "\n")
			sentence := s.Old != nil || !strings.HasPrefix(line, "  ") // and no row of a table
			if sentence && utf8.RuneCountInString(line) > width && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("seed %d: a line of more than %d columns: %q", seed, width, line)
			}
		}
		if strings.ContainsFunc(text.String(), brief.IsCommand) || !utf8.ValidString(text.String()) {
			t.Errorf("seed %d: %q", seed, text.String())
		}
		if found := bad.FindString(text.String()); found != "" {
			t.Errorf("seed %d: %s in\n%s", seed, found, &text)
		}
		var fields map[string]any
		err := json.Unmarshal(doc.Bytes(), &fields)
		if err != nil || fields["verdict"] != string(s.Verdict) || len(fields["cases"].([]any)) < len(s.New.Cases) {
			t.Errorf("seed %d: %v in\n%s", seed, err, &doc)
		}
		var suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string    `xml:"name,attr"`
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		}
		if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, &junit)
		}
		failures := 0
		for _, c := range suite.Cases {
			if c.Failure != nil {
				failures++
			}
		}
		last := suite.Cases[len(suite.Cases)-1]
		if suite.Tests != len(s.New.Cases)+1 || len(suite.Cases) != suite.Tests || failures != suite.Failures || last.Name != "verdict" ||
			(last.Failure != nil) != (s.ExitCode() == report.ExitFailed) {
			t.Errorf("seed %d: %+v", seed, suite)
		}
	}
}
