// SPDX-License-Identifier: Apache-2.0

package testcount_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/testcount"
)

func line(action, pkg, test, output string) string {
	return fmt.Sprintf("{\"Action\":%q,\"Package\":%q,\"Test\":%q,\"Output\":%q}\n", action, pkg, test, output)
}

// finished is how a package ends whose program has run to its end.
func finished(pkg, status string) string {
	return line("output", pkg, "", strings.ToUpper(status)+"\n") + line(status, pkg, "", "")
}

func tests(pkg, status string, names ...string) (text string) {
	for _, name := range names {
		text += line("run", pkg, name, "") + line(status, pkg, name, "")
	}
	return text
}

func TestCounts(t *testing.T) {
	recorded, err := os.ReadFile("testdata/go1.26.json")
	if err != nil {
		t.Fatal(err)
	}
	whole := tests("p", "pass", "TestA", "TestB") + finished("p", "pass")
	const deep = "<testsuite>"
	for _, tc := range []struct {
		name, format, text string
		want               testcount.Counts // passed, failed, skipped, broken
		err                string
	}{
		// As go has printed it: two packages that do not build, one that panics and one that exits in the middle, one without
		// tests, one whose test prints what looks like results.
		{"of go itself", testcount.GoJSON, string(recorded), testcount.Counts{Passed: 4, Failed: 4, Broken: 4}, ""},
		{"several packages", testcount.GoJSON, whole + strings.ReplaceAll(whole, `"p"`, `"q"`), testcount.Counts{Passed: 4}, ""},
		{"junk between, before and in lines", testcount.GoJSON, "go: downloading x\n{not json\nwarning: " + whole + "{}\n[1]\n\"x\"\nnull\n",
			testcount.Counts{Passed: 2}, ""},
		{"subtests", testcount.GoJSON, tests("p", "pass", "T", "T/a", "T/b/c", "U") + tests("p", "skip", "T/s") + finished("p", "pass"),
			testcount.Counts{Passed: 3, Skipped: 1}, ""},
		{"a subtest fails", testcount.GoJSON, tests("p", "pass", "T/a") + tests("p", "fail", "T/b", "T") + finished("p", "fail"),
			testcount.Counts{Passed: 1, Failed: 1}, ""},
		{"a test fails whose subtests pass", testcount.GoJSON, tests("p", "pass", "T/a") + tests("p", "fail", "T") + finished("p", "fail"),
			testcount.Counts{Passed: 1, Failed: 1}, ""},
		{"run twice, failed once", testcount.GoJSON, tests("p", "fail", "T") + tests("p", "pass", "T") + finished("p", "fail"),
			testcount.Counts{Failed: 1}, ""},
		{"all tests are gone", testcount.GoJSON, line("start", "p", "", "") + line("skip", "p", "", ""), testcount.Counts{}, ""},
		{"cut off in a test", testcount.GoJSON, tests("p", "pass", "T") + line("run", "p", "U", "") + `{"Action":"pa`,
			testcount.Counts{Passed: 1, Failed: 1, Broken: 1}, ""},
		{"cut off after a package", testcount.GoJSON, whole + line("start", "q", "", ""), testcount.Counts{Passed: 2, Failed: 1, Broken: 1}, ""},
		{"the end of a test is lost", testcount.GoJSON, tests("p", "pass", "T") + line("run", "p", "U", "") + finished("p", "pass"),
			testcount.Counts{Passed: 2}, ""},
		{"TestMain fails", testcount.GoJSON, tests("p", "pass", "T") + line("output", "p", "", "PASS\n") + line("fail", "p", "", ""),
			testcount.Counts{Passed: 1, Failed: 1, Broken: 1}, ""},
		{"built, and never run", testcount.GoJSON, `{"Action":"build-output","ImportPath":"p","Output":"x"}`, testcount.Counts{}, "no result of a package"},
		{"no JSON", testcount.GoJSON, "ok  \tp\t0.1s\n", testcount.Counts{}, "no result of a package"},
		{"a name of slashes", testcount.GoJSON, tests("p", "pass", strings.Repeat("/", 1<<20)) + finished("p", "pass"), testcount.Counts{Passed: 1}, ""},

		{"junit", testcount.JUnit, `<?xml version="1.0" encoding="latin1"?><testsuites errors="9"><testsuite name="a"><testsuite>
			<testcase name="x"/><testcase name="y"><failure message="no">at 3</failure></testcase></testsuite>
			<testcase name="z"><skipped/></testcase><testcase name="e"><error/><skipped/></testcase>
			<testcase name="d" status="notrun"/><testcase name="out"><system-out><failure/></system-out></testcase></testsuite></testsuites>`,
			testcount.Counts{Passed: 2, Failed: 2, Skipped: 2}, ""},
		{"two documents with words around", testcount.JUnit, "1 < 2\n<testsuite><testcase/></testsuite>\n& more <b>\n<?xml version='1.0'?><testsuite><testcase/></testsuite>\n",
			testcount.Counts{Passed: 2}, ""},
		{"a suite that could not begin", testcount.JUnit, `<testsuites errors="2"><testsuite errors="2"/><testsuite><testcase/></testsuite></testsuites>`,
			testcount.Counts{Passed: 1, Failed: 2, Broken: 2}, ""},
		{"no tests", testcount.JUnit, `<testsuite/>`, testcount.Counts{}, ""},
		{"cut off", testcount.JUnit, `<testsuite><testcase/><testcase><fail`, testcount.Counts{}, "cut off"},
		{"not closed", testcount.JUnit, `<testsuite><testcase/>`, testcount.Counts{}, "cut off"},
		{"closed wrongly", testcount.JUnit, `<testsuite><testcase></testsuite>`, testcount.Counts{}, "read its XML"},
		{"an entity", testcount.JUnit, `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&e;"/></testsuite>`,
			testcount.Counts{}, "entity"},
		{"too deep", testcount.JUnit, strings.Repeat(deep, 1<<20), testcount.Counts{}, "too deep"},
		{"fewer than none", testcount.JUnit, "all\n <testsuite/>\n <testsuites>\n<testsuite errors=\"-1\"/></testsuites>", testcount.Counts{},
			`line 4, column 1: <testsuite> says errors="-1", which is not a number of tests`},
		{"more than fit", testcount.JUnit, `x <testsuites tests="99999999999999999999"/>`, testcount.Counts{}, "line 1, column 3: <testsuites> says tests="},
		{"no number", testcount.JUnit, `<testsuite failures="many"/>`, testcount.Counts{}, `failures="many", which is not`},
		{"more failures than tests", testcount.JUnit, `<testsuite tests="2" failures="3"><testcase/></testsuite>`, testcount.Counts{},
			`line 1, column 1: <testsuite> says failures="3" of 2 tests`},
		// Of a hook that is no test to its program, but has a test case.
		{"as many failures as test cases", testcount.JUnit, `<testsuite tests="0" failures="1"><testcase><failure/></testcase></testsuite>`,
			testcount.Counts{Failed: 1}, ""},
		{"no XML", testcount.JUnit, "all passed", testcount.Counts{}, "no <testsuite>"},

		{"numbers", testcount.Numbers, ` {"passed": 3, "failed": 1e1, "skipped": 2, "more": "x"} `, testcount.Counts{Passed: 3, Failed: 10, Skipped: 2}, ""},
		{"a word", testcount.Numbers, `{"passed": "3", "failed": 1}`, testcount.Counts{}, `"passed" is 3, and not a number`},
		{"below zero", testcount.Numbers, `{"passed": 3, "failed": -1}`, testcount.Counts{}, "not a number of tests"},
		{"half a test", testcount.Numbers, `{"passed": 3.5, "failed": 1}`, testcount.Counts{}, "not a number of tests"},
		{"too many", testcount.Numbers, `{"passed": 1e300, "failed": 1}`, testcount.Counts{}, "not a number of tests"},
		{"null", testcount.Numbers, `null`, testcount.Counts{}, `no "passed"`},
		{"missing", testcount.Numbers, `{"passed": 3}`, testcount.Counts{}, `no "failed"`},
		{"two", testcount.Numbers, `{"passed": 3, "failed": 1} {}`, testcount.Counts{}, "one JSON object"},
		{"a brace more", testcount.Numbers, `{"passed": 3, "failed": 1} }`, testcount.Counts{}, "one JSON object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := testcount.Of(tc.format, tc.text)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want an error with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Counts != tc.want {
				t.Errorf("%+v, want %+v", got.Counts, tc.want)
			}
			if m := got.Map(); m["total"] != tc.want.Passed+tc.want.Failed+tc.want.Skipped {
				t.Errorf("total is %v", m["total"])
			}
		})
	}
}

// A program may invent the names of its tests: counting takes little more memory than they do.
func TestNamesOfSlashes(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		text.WriteString(tests("p", "fail", fmt.Sprint(i, strings.Repeat("/", 990))))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := testcount.Of(testcount.GoJSON, text.String())
	runtime.ReadMemStats(&after)
	if err != nil || got.Failed != 2000 {
		t.Errorf("%+v, %v", got, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
		t.Errorf("it has allocated %d MiB", took>>20)
	}
}

func TestWhatFailedIsSaid(t *testing.T) {
	got, err := testcount.Of(testcount.GoJSON, line("output", "p", "T", "=== RUN   T\n")+line("output", "p", "T", "fine\n")+line("pass", "p", "T", "")+
		line("output", "p", "U", "    u_test.go:3: 1 is not 2\n")+line("fail", "p", "U", "")+finished("p", "fail"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "1 passed, 1 failed, 0 skipped\n    u_test.go:3: 1 is not 2"; got.Summary != want {
		t.Errorf("%q, want %q", got.Summary, want)
	}
	got, err = testcount.Of(testcount.GoJSON, line("output", "p", "U", strings.Repeat("é", 1<<20))+line("fail", "p", "U", "")+finished("p", "fail"))
	if err != nil || len(got.Summary) > 17<<10 || !strings.HasSuffix(got.Summary, "é\n[…]") {
		t.Errorf("%d bytes, %v", len(got.Summary), err)
	}
}

func FuzzCounts(f *testing.F) {
	f.Add("go_json", tests("p", "fail", "T/a", "T")+finished("p", "fail"))
	f.Add("junit", `<testsuite errors="1"><testcase><failure/></testcase></testsuite>`)
	f.Add("counts", `{"passed": 1, "failed": 0}`)
	f.Fuzz(func(t *testing.T, format, text string) {
		got, err := testcount.Of(format, text)
		if err != nil {
			return
		}
		if got.Passed < 0 || got.Failed < 0 || got.Skipped < 0 || got.Broken < 0 || format != "counts" && got.Broken > got.Failed {
			t.Errorf("%+v", got.Counts)
		}
	})
}
