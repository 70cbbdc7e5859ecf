// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/eval/report"
)

var update = flag.Bool("update", false, "write the golden files")

// reports are the reports of the golden files.
func reports() map[string]*report.Report {
	two := func(a, b report.Side) *report.Report {
		return &report.Report{Eval: "ev_3f2a", Set: "refunds", New: a, Old: &b, Repeat: 3, Time: 12 * time.Minute}
	}
	better := two(
		of("loop.yaml", times(18, "ppp"), times(4, "fpp"), times(1, "ppf"), times(3, "fff"), times(4, "ppp")),
		of("old.yaml", times(18, "ppf"), times(4, "fpp"), times(1, "ppp"), times(3, "fff"), times(4, "fff")))
	for i := range better.New.Cases {
		for j := range better.New.Cases[i].Runs {
			run := &better.New.Cases[i].Runs[j]
			run.Cost, run.Seconds = new(0.01+0.001*float64((i+2*j)%5)), 2+0.1*float64((i+j)%3)
			run.Checks = append(run.Checks, report.Check{Name: "polite", Value: new(1.0), Passed: new(true), Votes: 3, Split: i%7 == 0})
		}
	}
	tie := two(
		of("loop.yaml", times(20, "ppp"), times(5, "fpp"), times(5, "ppf"), times(4, "fff")),
		of("old.yaml", times(20, "ppp"), times(5, "fff"), times(5, "ppp"), times(4, "ffp")))
	tie.Notes = []string{"The runs of old.yaml are 9 days old. Models may have changed since."}
	worse := two(
		of("loop.yaml", times(10, "pff"), times(10, "ppp")),
		of("old.yaml", times(10, "ppp"), times(10, "ppp")))
	worse.Alpha, worse.Planned = 0.0084, 60
	groups := two(of("loop.yaml", times(12, "ppf")), of("old.yaml", times(12, "pff")))
	for i := range groups.New.Cases {
		groups.New.Cases[i].Group = fmt.Sprint("customer-", i%4)
	}
	errors := two(of("loop.yaml", times(10, "ppp"), times(2, "eee")), of("old.yaml", times(12, "ppf")))
	errors.Retry = "refrain eval loop.yaml --failed ev_3f2a"
	budget := two(of("loop.yaml", times(10, "ppp")), of("old.yaml", times(10, "pff")))
	budget.Planned, budget.Ended = 40, "the budget of 5 is used up"
	score := two(of("loop.yaml", times(12, "ppf")), of("old.yaml", times(12, "pff")))
	score.Decide = report.Score
	seconds := two(of("loop.yaml", times(9, "ppp")), of("old.yaml", times(9, "ppp")))
	seconds.Decide = report.Seconds
	for i := range seconds.New.Cases {
		seconds.New.Cases[i].Runs[0].Seconds = 1 + 0.1*float64(i)
	}
	same := two(of("loop.yaml", times(99, "ppp"), times(2, "ppf")), of("old.yaml", times(99, "ppp"), times(2, "fpp")))
	same.Margin = 0.05
	equal := two(of("loop.yaml", times(40, "ppp")), of("old.yaml", times(40, "ppp")))
	for _, side := range []*report.Side{&equal.New, equal.Old} {
		for i := range side.Cases {
			for j := range side.Cases[i].Runs {
				side.Cases[i].Runs[j].Answer = "42"
			}
		}
	}
	one := func(lists ...[]string) *report.Report {
		return &report.Report{Eval: "ev_3f2a", Set: "refunds", New: of("loop.yaml", lists...), Repeat: 3, Time: 90 * time.Second}
	}
	failed := one(times(9, "ppp"), times(12, "ppf"), times(1, "fff"), times(1, "ppe"), times(1, "???"))
	failed.New.Cases[21].ID = "\x1b[2J<refund> & \"vat\" with a name that is longer than a column"
	unknown := one(times(1, "ppp"), times(29, "???"))
	for i := range unknown.New.Cases[1].Runs {
		unknown.New.Cases[1].Runs[i].Checks = []report.Check{{Name: "rouge1", Reason: "the case has no expected text"}}
	}
	few := two(of("loop.yaml", times(5, "ppp")), of("old.yaml", times(5, "fff")))
	few.New.Cases[0].Group, few.New.Cases[0].Tags = "refunds", []string{"slow"}
	few.New.Cases[0].Runs[0].Checks[0] = report.Check{Name: "polite", Reason: "no vote", Informational: true, Votes: 3, Split: true}
	few.New.Cases[0].Runs[1].Checks = nil
	return map[string]*report.Report{
		"better": better, "undecided": tie, "worse": worse, "groups": groups, "errors": errors, "budget": budget, "score": score,
		"seconds": seconds, "same": same, "equal": equal, "few": few, "passed": one(times(5, "ppp")), "failed": failed, "unknown": unknown,
		"empty": {Eval: "ev_3f2a", Set: "refunds"},
	}
}

func TestGoldenFiles(t *testing.T) {
	for name, r := range reports() {
		s := r.Summary()
		forms := map[string]func() ([]byte, error){
			"txt": func() ([]byte, error) { b := new(bytes.Buffer); err := s.WriteText(b, 80); return b.Bytes(), err },
			"xml": func() ([]byte, error) { b := new(bytes.Buffer); err := s.WriteJUnit(b); return b.Bytes(), err },
		}
		if name == "few" || name == "empty" {
			forms["json"] = func() ([]byte, error) { b := new(bytes.Buffer); err := s.WriteJSON(b); return b.Bytes(), err }
		}
		if name == "better" || name == "same" || name == "equal" || name == "undecided" || name == "unknown" {
			delete(forms, "xml")
		}
		for ext, write := range forms {
			got, err := write()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+"."+ext)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

// Every field of the JSON is in the documentation.
func TestDocumentationNamesTheFields(t *testing.T) {
	page, err := os.ReadFile("../../../doc/eval.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "few.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Reports for programs")
	section, _, _ = strings.Cut(section, "\n## ")
	named := regexp.MustCompile("[`{ ](\\w+)[`},]").FindAllString(section, -1)
	for _, field := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(string(text), -1) {
		if !slices.ContainsFunc(named, func(n string) bool { return strings.Trim(n, "`{ },") == field[1] }) {
			t.Errorf("doc/eval.md does not name the field %q", field[1])
		}
	}
}

// Whatever an answer has, the file is XML, and its test cases have names of their own.
func TestJUnitOfHostileTexts(t *testing.T) {
	hostile := "]]> \uffff \ufffe \x00 \x1b \xff ]]]]>\ue000<![CDATA[ &amp; </system-out>"
	r := &report.Report{Eval: "ev_3f2a", Set: hostile, New: of("loop.yaml", times(6, "f"))}
	long := strings.Repeat("x", 200)
	for i, id := range []string{"verdict", long + "a", long + "b", "a  b", "a b", "verdict (2)"} {
		c := &r.New.Cases[i]
		c.ID, c.Runs[0].Answer, c.Runs[0].Checks[0].Name, c.Runs[0].Checks[0].Reason = id, hostile, hostile, hostile
	}
	for _, old := range []*report.Side{nil, new(of("old.yaml", times(6, "f")))} {
		r.Old = old
		var b bytes.Buffer
		if err := r.Summary().WriteJUnit(&b); err != nil {
			t.Fatal(err)
		}
		for _, c := range b.String() {
			if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == '\ufffe' || c == '\uffff' {
				t.Errorf("XML cannot have %U", c)
			}
		}
		var suite struct {
			Cases []struct {
				Name   string `xml:"name,attr"`
				Output string `xml:"system-out"`
			} `xml:"testcase"`
		}
		if err := xml.Unmarshal(b.Bytes(), &suite); err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for _, c := range suite.Cases {
			if seen[c.Name] {
				t.Errorf("two test cases have the name %q", c.Name)
			}
			seen[c.Name] = true
			if old == nil && !strings.Contains(c.Output, "]]> ") {
				t.Errorf("%q is not as it was", c.Output)
			}
		}
		if len(suite.Cases) != 7 || !seen["verdict"] {
			t.Errorf("the test cases are %v", seen)
		}
	}
}
