// SPDX-License-Identifier: Apache-2.0

package testcount

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxDepth is the largest depth of nested elements.
const maxDepth = 1000

// junit counts the test cases of all suites, at any depth, in a text that has one or more XML documents and may have other text
// around them. It does not read a DTD or anything outside the text. A suite that reports errors and has no test cases is broken;
// each of these errors counts as a failed test. A suite with impossible numbers is an error.
func junit(text string) (*Result, error) {
	j := &junitReader{text: text}
	found := false
	for rest := 0; ; {
		i := strings.Index(text[rest:], "<testsuite")
		if i < 0 {
			break
		}
		found = true
		n, err := j.document(rest + i)
		if err != nil {
			return nil, err
		}
		rest += i + n
	}
	if !found {
		return nil, errors.New("it has no <testsuite>, as JUnit's XML has it")
	}
	j.Result.summarize(j.parts)
	return &j.Result, nil
}

type junitReader struct {
	Result
	text   string
	suites []suite
	parts  []string

	depth   int
	inCase  int             // the depth of the test case that is being read; 0 outside a test case
	status  string          // of that test case: fail, skip or ""
	name    string          // of that test case
	failure strings.Builder // the text about its failure
	telling bool            // the reader is in that text
}

type suite struct {
	at                      int   // the offset of its beginning in the text, in bytes
	tests, failures, errors int64 // the numbers in its attributes
	cases                   int64 // the number of test cases that were read in it
}

// place returns the line and the column of an offset in the text.
func (j *junitReader) place(at int) string {
	before := j.text[:at]
	return fmt.Sprintf("line %d, column %d", 1+strings.Count(before, "\n"), at-strings.LastIndex(before, "\n"))
}

// document reads the element at an offset with everything in it, and returns its length in bytes.
func (j *junitReader) document(from int) (int, error) {
	d := xml.NewDecoder(strings.NewReader(j.text[from:]))
	for {
		at := from + int(d.InputOffset())
		t, err := d.Token()
		if errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "unexpected EOF") {
			return 0, errors.New("its XML is cut off")
		}
		if err != nil {
			return 0, fmt.Errorf("read its XML: %w", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if j.depth++; j.depth > maxDepth {
				return 0, errors.New("its XML is too deep")
			}
			if err := j.begin(&t, at); err != nil {
				return 0, err
			}
		case xml.CharData:
			if j.telling && j.failure.Len() < maxSummary {
				j.failure.Write(t)
			}
		case xml.EndElement:
			if err := j.end(t.Name.Local); err != nil {
				return 0, err
			}
			if j.depth--; j.depth == 0 {
				return int(d.InputOffset()), nil
			}
		}
	}
}

// begin handles the start of an element at an offset. It returns an error for a suite whose numbers cannot be read.
func (j *junitReader) begin(t *xml.StartElement, at int) error {
	attr := func(name string) string {
		for _, a := range t.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	name := t.Name.Local
	switch {
	case j.inCase > 0 && j.depth == j.inCase+1:
		switch name {
		case "failure", "error":
			j.status, j.telling = "fail", true
			j.failure.WriteString(attr("message") + "\n")
		case "skipped":
			if j.status == "" {
				j.status = "skip"
			}
		}
	case j.inCase > 0:
	case name == "testcase":
		j.inCase, j.status, j.name = j.depth, "", strings.TrimLeft(attr("classname")+" "+attr("name"), " ")
		j.failure.Reset()
		switch status := attr("status"); {
		case status == "notrun", status == "disabled", status == "skipped", attr("result") == "skipped", attr("result") == "suppressed":
			j.status = "skip"
		}
	case name == "testsuite", name == "testsuites":
		s := suite{at: at}
		for i, to := range []*int64{&s.tests, &s.failures, &s.errors} {
			attribute := []string{"tests", "failures", "errors"}[i]
			value := strings.TrimSpace(attr(attribute))
			if value == "" {
				continue
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || n > most {
				return fmt.Errorf("%s: <%s> says %s=%.40q, which is not a number of tests", j.place(at), name, attribute, value)
			}
			*to = n
		}
		j.suites = append(j.suites, s)
	}
	return nil
}

// end handles the end of an element. It counts a test case, and adds the test cases of a suite to those of the suite around it.
func (j *junitReader) end(name string) error {
	switch {
	case j.inCase > 0 && j.depth == j.inCase+1:
		j.telling = false
	case j.inCase == j.depth && j.inCase > 0:
		j.inCase = 0
		if n := len(j.suites); n > 0 {
			j.suites[n-1].cases++
		}
		switch j.status {
		case "fail":
			j.Failed++
			j.parts = append(j.parts, "FAIL: "+j.name+"\n"+strings.TrimSpace(j.failure.String()))
		case "skip":
			j.Skipped++
		default:
			j.Passed++
		}
	case j.inCase == 0 && (name == "testsuite" || name == "testsuites") && len(j.suites) > 0:
		last := len(j.suites) - 1
		s := j.suites[last]
		j.suites = j.suites[:last]
		if tests := max(s.tests, s.cases); s.failures > tests {
			return fmt.Errorf("%s: <%s> says failures=\"%d\" of %d tests", j.place(s.at), name, s.failures, tests)
		}
		if s.cases == 0 && s.errors > 0 {
			j.Failed += s.errors
			j.Broken += s.errors
			s.cases = s.errors
		}
		if last > 0 {
			j.suites[last-1].cases += s.cases
		}
	}
	return nil
}
