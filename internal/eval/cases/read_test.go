// SPDX-License-Identifier: Apache-2.0

package cases_test

import (
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// files makes a file system of pairs of a name and a text.
func files(pairs ...string) fstest.MapFS {
	fsys := make(fstest.MapFS)
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

// read reads the first of some files.
func read(t *testing.T, pairs ...string) *cases.Set {
	t.Helper()
	set, err := cases.Read(files(pairs...), pairs[0], "")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// problems returns what is wrong with the first of some files, for people.
func problems(t *testing.T, pairs ...string) string {
	t.Helper()
	_, err := cases.Read(files(pairs...), pairs[0], "")
	ps, ok := errors.AsType[definition.Problems](err)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	var b strings.Builder
	if err := ps.Format(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadYAML(t *testing.T) {
	got := read(t, "refunds.yaml", `
name: refunds
repeat: 5
parallel: 2
seed: 7
margin: 0.02
timeout: 2m
budget: {cost: 5, calls: 100}
pass: {score: 0.8}
decide: good
replace: {send: {status: sent}}
checks:
  - rouge1
  - {expr: "score >= 8.0", name: good, weight: 2}
  - {calls: in_order, args: false, ignore: [exit_loop]}
  - {contains: [a, b], not: true, informational: true, of: draft}
  - {max: {cost: 0.5, tokens: 1000}}
  - {stop: target_reached, min: 0.5}
  - equals
cases:
  - id: vat
    input: 42
    expected: "yes"
    set: {topic: cats, n: 1, f: 2.5, list: [a, null, true]}
    state: {a: {b: c}}
    answers: {ask: go}
    group: g
    tags: [x, y]
    weight: 2
    repeat: 1
    checks: [{matches: "^a"}]
  - turns:
      - {input: first, calls: []}
      - {input: second, expected: done, calls: [{name: search, args: {q: x}}], checks: [completed]}
  - set: {topic: dogs}
`)
	min5, tokens := 0.5, int64(1000)
	want := &cases.Set{
		Name: "refunds", Repeat: 5, Parallel: 2, Seed: 7, Margin: 0.02, Timeout: 2 * time.Minute, Budget: budget.Limits{Cost: new(5.0), Calls: 100},
		Pass: check.Pass{Score: 0.8}, Decide: "good", Replace: map[string]any{"send": map[string]any{"status": "sent"}},
		Checks: []check.Spec{
			{Kind: check.Rouge1},
			{Kind: check.Expr, Expr: "score >= 8.0", Name: "good", Weight: 2},
			{Kind: check.Calls, Order: check.InOrder, IgnoreArgs: true, Ignore: []string{"exit_loop"}},
			{Kind: check.Contains, Texts: []string{"a", "b"}, Not: true, Informational: true, Of: "draft"},
			{Kind: check.Max, Max: &check.Limits{Cost: &min5, Tokens: &tokens}},
			{Kind: check.Stop, Reasons: []string{"target_reached"}, Min: 0.5},
			{Kind: check.Equals},
		},
		Cases: []cases.Case{
			{ID: "vat", Turns: []cases.Turn{{Input: "42", Expected: new("yes")}},
				Values: map[string]any{"topic": "cats", "n": int64(1), "f": 2.5, "list": []any{"a", nil, true}},
				State:  map[string]any{"a": map[string]any{"b": "c"}}, Answers: map[string]any{"ask": "go"},
				Group: "g", Tags: []string{"x", "y"}, Weight: 2, Repeat: 1, Checks: []check.Spec{{Kind: check.Matches, Texts: []string{"^a"}}}},
			{ID: "case-2", Turns: []cases.Turn{
				{Input: "first", Calls: []cases.Call{}},
				{Input: "second", Expected: new("done"), Calls: []cases.Call{{Name: "search", Args: map[string]any{"q": "x"}}},
					Checks: []check.Spec{{Kind: check.Completed}}},
			}},
			{ID: "case-3", Turns: []cases.Turn{{}}, Values: map[string]any{"topic": "dogs"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDefaults(t *testing.T) {
	got := read(t, "sub/refunds.yaml", "cases: [{input: a}]")
	want := &cases.Set{Name: "refunds", Repeat: 3, Parallel: 4, Seed: 1, Decide: "passed",
		Cases: []cases.Case{{ID: "case-1", Turns: []cases.Turn{{Input: "a"}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every mistake has its place and a hint.
func TestMistakes(t *testing.T) {
	text, err := os.ReadFile("testdata/broken.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := problems(t, "broken.yaml", string(text))
	const golden = "testdata/broken.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run go test ./internal/eval/cases -update (-want +got):\n%s", diff)
	}
}

// A case without an ID never takes that of another one.
func TestNumbersOfCases(t *testing.T) {
	for text, want := range map[string]string{
		"[{input: a}, {id: case-1, input: b}, {input: c}]":                             "case-2 case-1 case-3",
		"[{id: case-2, input: a}, {input: b}, {input: c}, {id: ' case-5 ', input: d}]": "case-2 case-3 case-4 case-5",
		"[{input: a}, {input: b}, {id: x, input: c}, {input: d}]":                      "case-1 case-2 x case-4",
		"[{id: case-4, input: a}, {id: case-3, input: b}, {input: c}, {input: d}]":     "case-4 case-3 case-5 case-6",
	} {
		var ids []string
		for _, c := range read(t, "a.yaml", "cases: "+text).Cases {
			ids = append(ids, c.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A reference without a word is fine where no check reads words.
func TestReferencesWithoutWords(t *testing.T) {
	for _, text := range []string{"cases: [{input: a, expected: 👍, checks: [equals]}]", "cases: [{input: a, expected: '', checks: [equals]}]",
		"cases: [{input: a, expected: +}]\nchecks: [contains]", "cases: [{input: a, expected: 東京}]",
		"cases: [{turns: [{input: a, expected: '+'}, {input: b, expected: c}]}]\nchecks: [{rouge1: 0.5, of: k}]"} {
		read(t, "a.yaml", text)
	}
}

func TestCheckMargin(t *testing.T) {
	for _, m := range []float64{0, 0.05, 0.999} {
		if err := cases.CheckMargin(m); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
	for _, m := range []float64{1, 20, -0.05, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := cases.CheckMargin(m); err == nil || !strings.Contains(err.Error(), "such as 0.05") {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// A set is stored with an evaluation, and read back from there.
func TestSetSurvivesJSON(t *testing.T) {
	set := read(t, "a.yaml", `
pass: {score: 0.5}
checks: [{expr: "answer == 'a'"}, {calls: any_order}]
cases:
  - {input: a, expected: b, calls: [], set: {n: 1, f: 0.1, s: "1"}, checks: [completed]}
  - {turns: [{input: a}, {input: b, calls: [{name: t, args: {a: [1, {b: 2}]}}]}]}
`)
	data, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	var back cases.Set
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != string(again) || set.Hash() != back.Hash() {
		t.Errorf("%s\n%s", data, again)
	}
}

func TestHashIsOfWhatDecides(t *testing.T) {
	const text = "cases: [{id: a, input: q, expected: r}]\n"
	base := read(t, "a.yaml", text).Hash()
	for _, same := range []string{"name: other\n", "repeat: 9\n", "seed: 2\n", "margin: 0.1\n", "budget: {cost: 1}\n", "decide: score\n", "parallel: 1\n"} {
		if got := read(t, "b.yaml", same+text).Hash(); got != base {
			t.Errorf("%q changes the hash", same)
		}
	}
	for _, other := range []string{"checks: []\n", "checks: [equals]\n", "pass: {score: 0.5}\n", "replace: {a: b}\n"} {
		if got := read(t, "a.yaml", other+text).Hash(); got == base {
			t.Errorf("%q does not change the hash", other)
		}
	}
	if read(t, "a.yaml", "cases: [{id: a, input: q, expected: s}]").Hash() == base {
		t.Error("another reference has the same hash")
	}
}

func TestReadTables(t *testing.T) {
	want := []cases.Case{
		{ID: "1", Turns: []cases.Turn{{Input: "a, b", Expected: new("c")}}, Values: map[string]any{"topic": "cats", "n": "01"},
			Answers: map[string]any{"ask": "null"}, Tags: []string{"x", "y"}, Weight: 0.5, Repeat: 2},
		{ID: "case-2", Turns: []cases.Turn{{Input: "two\nlines"}}},
	}
	for name, text := range map[string]string{
		"comma.csv": "id,input,expected,set.topic,set.n,answers.ask,tags,weight,repeat\r\n1,\"a, b\",c,cats,01,null,x y,0.5,2\r\n,\"two\nlines\",,,,,,,\r\n",
		"semicolon.csv": "\ufeffid;input;expected;set.topic;set.n;answers.ask;tags;weight;repeat\n1;a, b;c;cats;01;null;x, y;0.5;2\n" +
			";\"two\nlines\";;;;;;;\n",
		"lines.jsonl": `{"id":1,"input":"a, b","expected":"c","set":{"topic":"cats","n":"01"},"answers":{"ask":"null"},"tags":["x","y"],"weight":0.5,"repeat":2}

{"input":"two\nlines"}`,
	} {
		if diff := cmp.Diff(want, read(t, name, text).Cases); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		set := read(t, "sub/all.yaml", "cases: "+name+"\nchecks: [equals]\n", "sub/"+name, text)
		if diff := cmp.Diff(want, set.Cases); diff != "" || set.Name != "all" {
			t.Errorf("%s from %q: %s", name, set.Name, diff)
		}
	}
}

func TestMistakesOfTables(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a.csv", "id,imput\n1,a\n", `a.csv:1:4: error: unknown column "imput" [LOOP003]` + "\n    1 | id,imput\n      |    ^^^^^ did you mean \"input\"?\n"},
		{"a.csv", "input,topic\n1,a\n", "an input of the definition is the column set.topic"},
		{"a.csv", "id,expected\n1,a\n", "a.csv:1:1: error: the first row names no column input"},
		{"a.csv", "input,input\n1,a\n", `a.csv:1:7: error: two columns have the name "input"`},
		{"a.csv", "id,input\n1,é\n\n1,b\n", `a.csv:4:1: error: two cases have the ID "1", the first in line 2`},
		{"a.csv", "id,input\n1,\"a\n", "a.csv:3:1: error: this is not CSV: extraneous or missing \" in quoted-field"},
		{"a.csv", "id,input\n1\n", "a.csv:2:1: error: the row does not have as many fields as the first row"},
		{"a.csv", "input,weight\na,\"é\"\"\"\nb,-1\n", "a.csv:2:3: error: weight must be a number"},
		{"a.csv", "id,input\n1,\n", "a.csv:2:1: error: a case needs input"},
		{"a.csv", "id,input\n", "a.csv: error: the file has no cases"},
		{"a.csv", "", "a.csv: error: the file has no cases"},
		{"a.csv", "input\n\xff\n", "a.csv:2:1: error: the file has a byte that is not UTF-8 text"},
		{"a.jsonl", "{\"input\":\"a\"}\n{\"imput\":\"a\",\"set\":{}}\n", "a.jsonl:2:2: error: unknown field \"imput\" of a case [LOOP003]\n    2 | {\"imput\":\"a\",\"set\":{}}\n"},
		{"a.jsonl", "{\"input\":\"a\"\n", "a.jsonl:1:"},
		{"a.jsonl", "\n", "a.jsonl: error: the file has no cases"},
		{"a.yaml", "cases: sub.yaml", "a.yaml:1:8: error: cases must be a list, or a .csv or .jsonl file"},
		{"a.yaml", "cases: none.csv", "none.csv: error: the file cannot be read: file does not exist"},
		{"a.yaml", "cases: ../a.csv", "a.yaml:1:8: error: cases must be a path inside the folder of this file, got \"../a.csv\" [LOOP041]"},
		{"a.yaml", "cases: /etc/a.csv", "a path inside the folder"},
		{"a.yaml", "cases: []", "a.yaml:1:8: error: there are no cases"},
		{"a.yaml", "name: x", "a.yaml:1:1: error: the file has no cases"},
		{"a.yaml", "[{input: a}]", "write cases: before the list"},
		{"a.yaml", "", "a.yaml:1:1: error: the file is empty"},
		{"a.yaml", "cases: [{id: a, input: a}, {id: ' a ', input: b}]", `error: two cases have the ID "a", the first in line 1`},
		{"a.yaml", `cases: [{id: "a\u202eb", input: a}]`, "a.yaml:1:14: error: an ID is one line of visible characters, and this one has U+202E in it"},
		{"a.yaml", `cases: [{id: "a\nb", input: a}]`, "and this one has U+000A in it"},
		{"a.yaml", `cases: [{id: "a\x9bb", input: a}]`, "and this one has U+009B in it"},
		{"a.yaml", `cases: [{id: " ", input: a}]`, "the ID is empty"},
		{"a.yaml", `cases: [{id: ` + strings.Repeat("é", 201) + `, input: a}]`, "an ID has at most 200 characters, got 201"},
		{"a.evalset.json", `{"eval_cases": [{"eval_id": "a\u200b", "conversation": [{"user_content": {"parts": [{"text": "hi"}]}}]}]}`, "has U+200B in it"},
		{"a.yaml", "decide: helpful\ncases: [{input: a, expected: b}]", "a.yaml:1:9: error: decide cannot be \"helpful\" [LOOP004]\n    1 | decide: helpful\n" +
			"      |         ^^^^^^^ there are passed, score, cost, seconds, rouge1\n"},
		{"a.yaml", "decide: x\ncases: [{turns: [{input: a}, {input: b, checks: [completed]}]}]", "there are passed, score, cost, seconds, turn 2: completed\n"},
		{"a.yaml", "cases: [{input: a, expected: +}]", `a.yaml:1:30: error: "+" has no word, so that rouge1 is 0 for every answer` + " [LOOP004]\n    1 | cases: [{input: a, expected: +}]\n" +
			"      |                              ^ take the check equals, or another reference\n"},
		{"a.yaml", "cases: [{input: a, expected: 👍, checks: [rouge1]}]", "a.yaml:1:30: error: \"👍\" has no word"},
		{"a.yaml", "cases: [{input: a, expected: ''}]\nchecks: [contains]", "a.yaml:1:30: error: every answer contains the empty text"},
		{"a.yaml", "cases: [{turns: [{input: a, expected: b}, {input: a, expected: '-', checks: [rouge1]}]}]", "a.yaml:1:64: error: \"-\" has no word"},
		{"a.jsonl", "{\"input\":\"a\",\"expected\":\"b\"}\n\n{\"input\":\"a\",\"expected\":\"?\"}\n", "a.jsonl:3:25: error: \"?\" has no word"},
		{"a.csv", "input,expected\na,!\n", "a.csv:2:3: error: \"!\" has no word"},
		{"a.test.json", `[{"query": "a", "reference": "b"}, {"query": "a", "reference": "👍"}]`, "a.test.json:1:64: error: \"👍\" has no word"},
		{"a.json", `{"eval_cases": null}`, "a.json:1:1: error: eval_cases is null"},
		{"a.json", `[{"expected_tool_use": [], "reference": "b"}]`, "a turn of ADK's old form is {query, expected_tool_use, reference}"},
		{"a.yaml", "margin: 20\ncases: [{input: a}]", "a.yaml:1:9: error: margin must be at least 0 and below 1, got 20: a margin is a share, such as 0.05"},
		{"a.yaml", "margin: 1\ncases: [{input: a}]", "a.yaml:1:9: error: margin must be"},
		{"a.yaml", "margin: -0.05\ndecide: cost\ncases: [{input: a}]", "a.yaml:1:9: error: margin must be"},
		{"a.yaml", "margin: .nan\ncases: [{input: a}]", "a.yaml:1:9: error: margin must be"},
		{"a.yaml", "cases: [{input: a, weight: 1e308}]", "a.yaml:1:28: error: weight must be at most 1000000, got 1e308"},
		{"a.yaml", "cases: [{input: a, checks: [{equals: a, weight: 1e308}]}]", "a.yaml:1:49: error: weight must be at most 1000000, got 1e308"},
		{"a.csv", "input,weight\na,1000001\n", "a.csv:2:3: error: weight must be at most 1000000"},
	} {
		if got := problems(t, tt.name, tt.text); !strings.Contains(got, tt.want) {
			t.Errorf("%q: %q is not in\n%s", tt.text, tt.want, got)
		}
	}
}

// A link cannot lead the reader out of the folder.
func TestFilesStayInTheFolder(t *testing.T) {
	dir := t.TempDir()
	secret, folder := filepath.Join(dir, "secret.csv"), filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{secret: "input\nsecret\n", filepath.Join(folder, "a.yaml"): "cases: link.csv\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(folder, "link.csv")); err != nil {
		t.Skip(err)
	}
	if set, err := cases.Open(filepath.Join(folder, "a.yaml")); err == nil {
		t.Errorf("read %v", set.Cases)
	}
	if set, err := cases.Open(secret); err != nil || len(set.Cases) != 1 {
		t.Errorf("%v, %v", set, err)
	}
	if _, err := cases.Open(filepath.Join(dir, "none", "a.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	missing := filepath.Join(folder, "b.yaml")
	if _, err := cases.Open(missing); err == nil || !strings.HasPrefix(err.Error(), missing+": error: the file cannot be read") {
		t.Error(err)
	}
}

func TestLargeFilesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a.yaml":  "cases: [{input: a}]\n#" + strings.Repeat("x", 1<<20),
		"a.csv":   "input\n" + strings.Repeat("x", 16<<20),
		"a.jsonl": strings.Repeat(" ", 16<<20) + "{}",
		"b.jsonl": `{"input":"` + strings.Repeat("x", 1<<20) + `"}`,
		"b.csv":   "input\n" + strings.Repeat("x\n", 10_001),
	} {
		if got := problems(t, name, text); !strings.Contains(got, "larger than") && !strings.Contains(got, "longer than") && !strings.Contains(got, "more than 10000 cases") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
