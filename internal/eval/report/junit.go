// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// JUnit's format, as GitHub, GitLab and Jenkins read it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
		Output  *junitOutput  `xml:"system-out"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
	junitOutput struct {
		Text string `xml:",cdata"`
	}
)

// WriteJUnit writes a test case for each case, and one for the verdict. A case of one version fails unless all of its runs
// pass. Of two versions only the verdict can fail, because single cases become worse by chance.
func (s *Summary) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: brief.Line(s.Set, 200), Time: seconds(s.Time.Seconds())}
	name := names(verdictName)
	old := make(map[string]State)
	if s.Old != nil {
		for i := range s.Old.Cases {
			old[s.Old.Cases[i].ID] = s.Old.Cases[i].State()
		}
	}
	for i := range s.New.Cases {
		c := &s.New.Cases[i]
		of := junitCase{Class: suite.Name, Name: name(brief.Line(c.ID, 200))}
		of.read(c, s.Old == nil)
		if state, ok := old[c.ID]; ok {
			of.Output.Text += "old: " + string(state) + "\n"
		}
		suite.Cases = append(suite.Cases, of)
	}
	var text strings.Builder
	if err := s.WriteText(&text, 0); err != nil {
		return err
	}
	verdict := junitCase{Class: suite.Name, Name: verdictName, Time: seconds(0), Output: &junitOutput{text.String()}}
	switch message := (&junitMessage{s.headline()}); s.ExitCode() {
	case ExitFailed:
		verdict.Failure = message
	case ExitUndecided:
		verdict.Skipped = message
	}
	suite.Cases = append(suite.Cases, verdict)
	for i, c := range suite.Cases {
		suite.Cases[i].Output.Text = withoutForbidden(c.Output.Text)
		suite.Tests++
		switch {
		case c.Failure != nil:
			suite.Failures++
		case c.Error != nil:
			suite.Errors++
		case c.Skipped != nil:
			suite.Skipped++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// verdictName is the name of the test case for the verdict.
const verdictName = "verdict"

// names returns a function that gives each name once: one that it has given before gets a number.
func names(taken ...string) func(string) string {
	given, next := make(map[string]bool), make(map[string]int)
	for _, name := range taken {
		given[name] = true
	}
	return func(name string) string {
		one := name
		for n := max(next[name], 2); given[one]; n++ {
			one, next[name] = fmt.Sprintf("%s (%d)", name, n), n+1
		}
		given[one] = true
		return one
	}
}

// withoutForbidden replaces the characters that XML cannot have, which the encoder does in attributes but not in CDATA.
func withoutForbidden(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', ' ' <= r && r <= '\uD7FF', '\uE000' <= r && r <= '\uFFFD', r >= '\U00010000':
			return r
		}
		return '\uFFFD'
	}, text)
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// read takes over what the runs of the new version did. fails reports whether a case can fail.
func (j *junitCase) read(c *Case, fails bool) {
	time := 0.0
	for i := range c.Runs {
		time += c.Runs[i].Seconds
	}
	j.Time = seconds(time)
	state, why := c.State(), c.why()
	j.Output = &junitOutput{"new: " + string(state) + "\n"}
	if why != "" {
		j.Output.Text += why + "\n"
	}
	switch {
	case len(c.Runs) == 0:
		j.Skipped = &junitMessage{"the case has not run"}
	case !fails:
	case state == Sometimes || state == Never:
		j.Failure = &junitMessage{fmt.Sprintf("%s passed; %s", state, why)}
	case state == Error:
		one := Side{Cases: []Case{*c}}
		j.Error = &junitMessage{one.error()}
	case state == Unknown:
		j.Skipped = &junitMessage{"no check was evaluated"}
	}
}
