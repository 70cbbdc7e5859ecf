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

// maxDepth is how deep elements can be in each other.
const maxDepth = 1000

// junit counts the test cases of all suites, at any depth, in a text with one or more XML documents and other words around
// them. Entities of a DTD are not known, and nothing outside of the text is read. A suite that reports errors and has no
// test cases is broken.
func junit(text string) (*Result, error) {
	j := new(junitReader)
	found := false
	for {
		i := strings.Index(text, "<testsuite")
		if i < 0 {
			break
		}
		found = true
		n, err := j.document(text[i:])
		if err != nil {
			return nil, err
		}
		text = text[i+n:]
	}
	if !found {
		return nil, errors.New("it has no <testsuite>, as JUnit's XML has it")
	}
	j.Result.said(j.parts)
	return &j.Result, nil
}

type junitReader struct {
	Result
	suites []suite
	parts  []string

	depth   int
	inCase  int // depth of the test case; 0 is none
	status  string
	name    string
	told    strings.Builder // about its failure
	telling bool
}

type suite struct{ errors, cases int64 }

// document reads an element with all that is in it, and returns its length.
func (j *junitReader) document(text string) (int, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
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
			j.begin(&t)
		case xml.CharData:
			if j.telling && j.told.Len() < maxSaid {
				j.told.Write(t)
			}
		case xml.EndElement:
			j.end(t.Name.Local)
			if j.depth--; j.depth == 0 {
				return int(d.InputOffset()), nil
			}
		}
	}
}

func (j *junitReader) begin(t *xml.StartElement) {
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
			j.told.WriteString(attr("message") + "\n")
		case "skipped":
			if j.status == "" {
				j.status = "skip"
			}
		}
	case j.inCase > 0:
	case name == "testcase":
		j.inCase, j.status, j.name = j.depth, "", strings.TrimLeft(attr("classname")+" "+attr("name"), " ")
		j.told.Reset()
		switch status := attr("status"); {
		case status == "notrun", status == "disabled", status == "skipped", attr("result") == "skipped", attr("result") == "suppressed":
			j.status = "skip"
		}
	case name == "testsuite", name == "testsuites":
		n, _ := strconv.ParseInt(attr("errors"), 10, 64)
		j.suites = append(j.suites, suite{errors: min(max(0, n), most)})
	}
}

func (j *junitReader) end(name string) {
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
			j.parts = append(j.parts, "FAIL: "+j.name+"\n"+strings.TrimSpace(j.told.String()))
		case "skip":
			j.Skipped++
		default:
			j.Passed++
		}
	case j.inCase == 0 && (name == "testsuite" || name == "testsuites") && len(j.suites) > 0:
		last := len(j.suites) - 1
		s := j.suites[last]
		j.suites = j.suites[:last]
		if s.cases == 0 && s.errors > 0 {
			j.Failed += s.errors
			j.Broken += s.errors
			s.cases = s.errors
		}
		if last > 0 {
			j.suites[last-1].cases += s.cases
		}
	}
}
