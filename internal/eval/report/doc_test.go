// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/eval/report"
)

// The reports in the documentation are what the cases above them and the golden files give.
func TestReportsOfTheDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../../doc/eval.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, file, _ := strings.Cut(page, "```yaml\ncases:\n")
	file, _, _ = strings.Cut(file, "```")
	set, err := cases.Read(fstest.MapFS{"cases.yaml": {Data: []byte("cases:\n" + file)}}, "cases.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := set.Grader()
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]string{
		"hours": {"We are closed on Sundays."},
		"price": {"It depends on the cake."},
		"nuts":  {"No, it has almonds in it."},
		"order": {"Yes, until noon of the day before.", "Yes, you may.", "Yes, until noon of the day before."},
		"rude":  {"I am sorry that our bread was terrible."},
	}
	r := &report.Report{Eval: "ev_3f2a1c", Set: set.Name, New: report.Side{Name: "support.yaml"}, Repeat: set.Repeat, Time: 21 * time.Second}
	for _, c := range set.Cases {
		of := report.Case{ID: c.ID}
		for i := range set.Repeat {
			answer := answers[c.ID][i%len(answers[c.ID])]
			grade, err := g.Grade(t.Context(), &check.Subject{Case: c, Turns: []check.Outcome{{Answer: answer}}})
			if err != nil {
				t.Fatal(err)
			}
			run := report.Run{Passed: grade.Passed, Score: grade.Score, Cost: new(0.011 / 15), Answer: answer}
			for _, k := range grade.Results {
				run.Checks = append(run.Checks, report.Check{Name: k.Name, Value: k.Value, Passed: k.Passed, Reason: k.Reason})
			}
			of.Runs = append(of.Runs, run)
		}
		r.New.Cases = append(r.New.Cases, of)
	}
	var text bytes.Buffer
	if err := r.Summary().WriteText(&text, 100); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "```\n"+text.String()+"```\n") {
		t.Errorf("doc/eval.md does not have\n%s", text.String())
	}
	better, err := os.ReadFile("testdata/better.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(page, "```\nbetter: ")
	sample, _, _ = strings.Cut(sample, "```")
	if !strings.Contains(string(better), "better: "+sample) || sample == "" {
		t.Errorf("testdata/better.txt does not have\nbetter: %s", sample)
	}
}
