// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/internal/eval/cases"
)

// The page lists the evals of the store, and gets one as refrain eval show --json prints it.
func TestEvals(t *testing.T) {
	s := open(t, map[string]string{"greeter.yaml": "name: greeter\ntext: Hello {{user_input}}.\n", "greeter/set.evalset.json": `{"eval_set_id": "set", "eval_cases": [
		{"eval_id": "a", "conversation": [{"user_content": {"parts": [{"text": "Ana"}]}, "final_response": {"parts": [{"text": "Hello Ana."}]}}]},
		{"eval_id": "b", "conversation": [{"user_content": {"parts": [{"text": "Bea"}]}, "final_response": {"parts": [{"text": "something else"}]}}]}]}`})
	var list struct {
		Evals []struct {
			Eval, Name, Set, Verdict string
			Over                     bool
			Cases                    int
			Cost                     *float64
		}
	}
	if s.ok("GET", "/api/v1/evals", nil, &list); list.Evals == nil || len(list.Evals) != 0 {
		t.Errorf("the evals are %+v", list)
	}
	s.ok("POST", "/api/apps/greeter/eval_sets/set/run_eval", map[string]any{}, nil)
	s.ok("GET", "/api/v1/evals", nil, &list)
	if len(list.Evals) != 1 || list.Evals[0].Verdict != "failed" || list.Evals[0].Set != "set" || list.Evals[0].Cases != 2 || !list.Evals[0].Over ||
		list.Evals[0].Name != "greeter.yaml" || list.Evals[0].Cost == nil {
		t.Fatalf("the evals are %+v", list)
	}
	var one struct {
		Verdict string
		Cases   []struct {
			ID  string
			New struct{ Runs []struct{ Answer string } }
		}
	}
	if s.ok("GET", "/api/v1/evals/"+list.Evals[0].Eval, nil, &one); one.Verdict != "failed" || len(one.Cases) != 2 || one.Cases[0].New.Runs[0].Answer != "Hello Ana." {
		t.Errorf("the eval is %+v", one)
	}
	s.refused(404, "eval_not_found", "GET", "/api/v1/evals/none", nil)
}

// A run becomes a case of a file in the folder, and of no other file.
func TestARunBecomesACase(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting, "asks.yaml": "name: asks\nquestion: Well?\n"})
	run := s.run(map[string]any{"definition": "counting"})
	s.wait(run.Run)
	at := "/api/v1/runs/" + run.Run + ":case"
	var made struct{ File, Case string }
	s.ok("POST", at, nil, &made, "Idempotency-Key", "k")
	s.ok("POST", at, nil, &made, "Idempotency-Key", "k")
	if made.File != "cases.yaml" || made.Case != run.Run {
		t.Errorf("made %+v", made)
	}
	s.ok("POST", at, map[string]any{"file": "counting/more.yml"}, nil)
	for _, file := range []string{"cases.yaml", "counting/more.yml"} {
		set, err := cases.Open(filepath.Join(s.dir, file))
		if err != nil || len(set.Cases) != 1 || set.Cases[0].ID != run.Run || *set.Cases[0].Turns[0].Expected != "It is 40." {
			t.Errorf("%s has %+v (%v)", file, set, err)
		}
	}
	s.refused(422, "bad_cases", "POST", at, map[string]any{"file": "cases.yaml"}) // it has the case
	s.refused(422, "bad_cases", "POST", at, map[string]any{"file": "counting.yaml"})
	s.refused(422, "bad_cases", "POST", at, map[string]any{"file": "cases.json"})
	outside := filepath.Join(t.TempDir(), "out.yaml")
	if err := os.Symlink(outside, filepath.Join(s.dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../x.yaml", "/tmp/x.yaml", "a/b/c.yaml", ".git/x.yaml", `a\b.yaml`} {
		s.refused(400, "bad_request", "POST", at, map[string]any{"file": file})
	}
	s.do("POST", at, map[string]any{"file": "link.yaml"})
	if _, err := os.Stat(outside); err == nil {
		t.Error("a link leads out of the folder")
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "counting.yaml")); err != nil || string(text) != counting {
		t.Errorf("the definition is %q (%v)", text, err)
	}
	s.refused(404, "run_not_found", "POST", "/api/v1/runs/none:case", nil)
	waiting := s.run(map[string]any{"definition": "asks"})
	s.wait(waiting.Run)
	s.refused(409, "no_case", "POST", "/api/v1/runs/"+waiting.Run+":case", nil)
}
