// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/eval/adkresult"
	"github.com/refrain-dev/refrain/internal/eval/cases"
)

// evalApp answers with a text, in a session that has the name.
const evalApp = `name: greeter
inputs:
  who: {}
text: "Hello {{who}}, you said {{user_input}}."
`

// ADK Web makes an eval set of its sessions, changes and runs its cases, and shows the results of today and of earlier, in both
// spellings of the routes. The file is one that refrain eval reads.
func TestEvalsOfADKWeb(t *testing.T) {
	s := open(t, map[string]string{"greeter.yaml": evalApp})
	message := map[string]any{"role": "user", "parts": []any{map[string]any{"text": "hi"}}}
	sessions := "/api/apps/greeter/users/ana/sessions"
	s.ok("POST", sessions+"/s1", map[string]any{"state": map[string]any{"who": "Ana"}}, nil)
	s.ok("POST", "/api/run", map[string]any{"appName": "greeter", "userId": "ana", "sessionId": "s1", "newMessage": message}, nil)
	s.ok("POST", sessions+"/empty", nil, nil)

	old, dev := "/api/apps/greeter", "/api/dev/apps/greeter"
	var ids []string
	if s.ok("GET", dev+"/eval_sets", nil, &ids); ids == nil || len(ids) != 0 {
		t.Errorf("the eval sets are %v", ids)
	}
	s.ok("POST", dev+"/eval-sets", map[string]any{"eval_set": map[string]any{"eval_set_id": "first", "eval_cases": []any{}}}, nil)
	s.ok("POST", old+"/eval_sets/second", map[string]any{}, nil)
	s.refused(400, "bad_request", "POST", old+"/eval_sets/second", map[string]any{})
	s.refused(400, "bad_request", "POST", dev+"/eval-sets", map[string]any{"eval_set": map[string]any{"eval_set_id": "../x"}})
	s.refused(404, "definition_not_found", "GET", "/api/apps/none/eval_sets", nil)
	if s.ok("GET", old+"/eval_sets", nil, &ids); cmp.Diff([]string{"first", "second"}, ids) != "" {
		t.Errorf("the eval sets are %v", ids)
	}
	add := map[string]any{"evalId": "hello", "sessionId": "s1", "userId": "ana"}
	s.ok("POST", old+"/eval_sets/first/add_session", add, nil)
	s.refused(400, "bad_request", "POST", old+"/eval_sets/first/add_session", add)
	s.refused(404, "eval_set_not_found", "POST", old+"/eval_sets/none/add_session", add)
	for _, id := range []string{"", " ", "../x\n"} {
		s.refused(400, "bad_request", "POST", old+"/eval_sets/first/add_session", map[string]any{"evalId": id, "sessionId": "s1", "userId": "ana"})
	}
	s.refused(409, "no_case", "POST", dev+"/eval-sets/first/add-session", map[string]any{"eval_id": "x", "session_id": "empty", "user_id": "ana"})
	s.ok("POST", dev+"/eval-sets/first/add-session", map[string]any{"eval_id": "other", "session_id": "s1", "user_id": "ana"}, nil)
	if s.ok("GET", old+"/eval_sets/first/evals", nil, &ids); cmp.Diff([]string{"hello", "other"}, ids) != "" {
		t.Errorf("the cases are %v", ids)
	}

	// The page of ADK shows a case, and writes it back with another answer.
	var one map[string]any
	s.ok("GET", old+"/eval_sets/first/evals/other", nil, &one)
	turn := one["conversation"].([]any)[0].(map[string]any)
	if data, _ := turn["intermediateData"].(map[string]any); data["toolUses"] == nil || one["evalId"] != "other" ||
		one["sessionInput"].(map[string]any)["state"].(map[string]any)["who"] != "Ana" {
		t.Errorf("the case is %v", one)
	}
	turn["finalResponse"] = map[string]any{"role": "model", "parts": []any{map[string]any{"text": "Something else."}}}
	s.ok("PUT", old+"/eval_sets/first/evals/other", one, nil)
	s.refused(400, "bad_request", "PUT", old+"/eval_sets/first/evals/hello", one)
	s.refused(422, "bad_cases", "PUT", dev+"/eval-sets/first/eval-cases/hello", map[string]any{"conversation": []any{map[string]any{}}})
	s.refused(404, "case_not_found", "PUT", dev+"/eval-sets/first/eval-cases/none", map[string]any{"conversation": []any{turn}})

	metrics := []any{map[string]any{"metricName": "response_match_score", "threshold": 0.7},
		map[string]any{"metricName": "tool_trajectory_avg_score", "criterion": map[string]any{"threshold": 1, "matchType": "IN_ORDER"}}}
	var now []adkresult.CaseResult
	s.ok("POST", old+"/eval_sets/first/run_eval", map[string]any{"evalIds": []string{"hello", "other"}, "evalMetrics": metrics}, &now)
	if len(now) != 2 || now[0].ID != "hello" || now[0].Status != 1 || now[1].Status != 2 || len(now[1].Overall) != 2 || *now[0].Overall[0].Score != 1 {
		t.Fatalf("the results are %+v", now)
	}
	s.refused(422, "bad_cases", "POST", old+"/eval_sets/first/run_eval", map[string]any{"evalMetrics": []any{map[string]any{"metricName": "no_such"}}})
	s.refused(400, "bad_request", "POST", old+"/eval_sets/second/run_eval", map[string]any{})
	s.refused(400, "bad_request", "POST", old+"/eval_sets/first/run_eval", map[string]any{"evalIds": []string{"none"}, "evalMetrics": metrics})
	s.refused(400, "bad_request", "POST", old+"/eval_sets/first/run_eval", map[string]any{"evalMetrics": []any{map[string]any{
		"metricName": "final_response_match_v2", "criterion": map[string]any{"judge_model_options": map[string]any{"judge_model": "scripted//etc/passwd"}}}}})
	s.refused(400, "bad_request", "POST", old+"/eval_sets/first/run_eval", map[string]any{"evalMetrics": []any{map[string]any{
		"metricName": "final_response_match_v2", "criterion": map[string]any{"judge_model_options": map[string]any{"judge_model": "openai/dearest"}}}}})
	var session struct{ Events []map[string]any }
	if s.ok("GET", sessions+"/"+now[0].Session, nil, &session); len(session.Events) < 2 {
		t.Errorf("the session of a case-run has the events %v", session.Events)
	}
	var run struct{ RunEvalResults []adkresult.CaseResult }
	s.ok("POST", dev+"/eval-sets/first/run", map[string]any{"eval_case_ids": []string{"hello"}, "eval_metrics": metrics}, &run)
	if len(run.RunEvalResults) != 1 || run.RunEvalResults[0].Status != 1 {
		t.Errorf("the results are %+v", run)
	}

	// Both evals are results, in the form of ADK's files.
	var results struct{ EvalResultIDs []string }
	s.ok("GET", dev+"/eval-results", nil, &results)
	if s.ok("GET", old+"/eval_results", nil, &ids); len(ids) != 2 || cmp.Diff(ids, results.EvalResultIDs) != "" {
		t.Fatalf("the results are %v and %v", ids, results)
	}
	var doc adkresult.Document
	d := json.NewDecoder(bytes.NewReader(s.ok("GET", old+"/eval_results/"+ids[1], nil, nil).body))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for i := range doc.Cases {
		if details, _ := doc.Cases[i].Details.(map[string]any); details["id"] != now[i].Session || len(details["events"].([]any)) < 2 {
			t.Errorf("the session of %s is %v", doc.Cases[i].ID, details)
		}
		doc.Cases[i].Details = nil
	}
	if diff := cmp.Diff(now, doc.Cases); diff != "" || doc.ID != ids[1] || doc.Set != "first" {
		t.Errorf("%s has the set %s: %s", doc.ID, doc.Set, diff)
	}
	s.refused(404, "eval_result_not_found", "GET", old+"/eval_results/none", nil)

	var info struct {
		MetricsInfo []struct {
			MetricName      string
			MetricValueInfo struct {
				Interval struct{ MinValue, MaxValue float64 }
			}
		}
	}
	if s.ok("GET", dev+"/metrics-info", nil, &info); len(info.MetricsInfo) < 2 || info.MetricsInfo[0].MetricValueInfo.Interval.MaxValue != 1 {
		t.Errorf("the metrics are %+v", info)
	}
	s.ok("DELETE", old+"/eval_sets/first/evals/other", nil, nil)
	set, err := cases.Open(filepath.Join(s.dir, "greeter", "first.evalset.json"))
	if err != nil {
		t.Fatal(err)
	}
	if c := set.Cases; len(c) != 1 || c[0].ID != "hello" || *c[0].Turns[0].Expected != "Hello Ana, you said hi." || c[0].State["who"] != "Ana" {
		t.Errorf("the file has the cases %+v", c)
	}
	s.ok("DELETE", dev+"/eval-sets/second", nil, nil)
	s.refused(404, "eval_set_not_found", "DELETE", dev+"/eval-sets/second", nil)
}

// Files in ADK's own spelling are read, and what they have besides is kept.
func TestEvalSetsInOtherFormsOfADK(t *testing.T) {
	s := open(t, map[string]string{"greeter.yaml": evalApp,
		"greeter/snake.evalset.json": `{"eval_set_id": "snake", "eval_cases": [
			{"eval_id": "a", "conversation": [{"user_content": {"parts": [{"text": "hi"}]}}], "rubrics": [{"rubric_id": "r"}],
			 "session_input": {"app_name": "greeter", "user_id": "u", "state": {"a_key": 12345678901234567890}}},
			{"eval_id": "b", "conversation": []}]}`,
		"greeter/old.evalset.json": `[{"name": "a", "data": [{"query": "hi"}]}]`})
	at := "/api/apps/greeter/eval_sets/"
	got := string(s.ok("GET", at+"snake/evals/a", nil, nil).body)
	if !strings.Contains(got, `"toolUses":[]`) || !strings.Contains(got, `"a_key":12345678901234567890`) {
		t.Errorf("the case is %s", got)
	}
	s.ok("DELETE", at+"snake/evals/b", nil, nil)
	text, err := os.ReadFile(filepath.Join(s.dir, "greeter", "snake.evalset.json"))
	if err != nil || !strings.Contains(string(text), `"a_key": 12345678901234567890`) || !strings.Contains(string(text), `"rubricId": "r"`) {
		t.Errorf("the file has %s (%v)", text, err)
	}
	s.refused(422, "old_eval_set", "GET", at+"old/evals", nil)
	if err := os.Symlink("/etc/passwd", filepath.Join(s.dir, "greeter", "out.evalset.json")); err != nil {
		t.Fatal(err)
	}
	s.refused(400, "bad_request", "GET", at+"out/evals", nil)
	s.refused(400, "bad_request", "DELETE", at+"out/evals/a", nil)
	if err := os.Rename(filepath.Join(s.dir, "greeter"), filepath.Join(s.dir, "kept")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(s.dir, "greeter")); err != nil {
		t.Fatal(err)
	}
	s.refused(400, "bad_request", "GET", "/api/apps/greeter/eval_sets", nil)
	s.refused(400, "bad_request", "GET", at+"set/evals", nil)
	s.refused(400, "bad_request", "POST", at+"set", map[string]any{})
}
