// SPDX-License-Identifier: Apache-2.0

package cases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
)

// The forms of ADK's files, written for this test from the public schemas. All have the same two turns.
var adkForms = map[string]string{
	"oldest.test.json": `[
  {"query": "Roll a die", "expected_tool_use": [{"tool_name": "roll", "tool_input": {"sides": 6}}],
   "expected_intermediate_agent_responses": [{"author": "dice", "text": "rolling"}], "reference": "It shows 4."},
  {"query": "Thanks", "expected_tool_use": [], "reference": ""}
]`,
	"old.evalset.json": `[{"name": "dice", "data": [
  {"query": "Roll a die", "expected_tool_use": [{"tool_name": "roll", "tool_input": {"sides": 6}}], "reference": "It shows 4."},
  {"query": "Thanks", "expected_tool_use": []}],
  "initial_session": {"app_name": "dice", "user_id": "u", "state": {"sides": 6}}}]`,
	"snake.evalset.json": `{"eval_set_id": "snake", "name": "Dice", "description": null, "eval_cases": [{"eval_id": "dice", "conversation": [
  {"invocation_id": "1", "user_content": {"role": "user", "parts": [{"text": "Roll ", "inline_data": null}, {"text": "a die"}]},
   "final_response": {"role": "model", "parts": [{"thought": true, "text": "hm"}, {"text": "It shows 4."}]},
   "intermediate_data": {"tool_uses": [{"id": null, "name": "roll", "args": {"sides": 6}}], "tool_responses": [], "intermediate_responses": [["dice", [{"text": "rolling"}]]]},
   "creation_timestamp": 1747946425.6},
  {"user_content": {"parts": [{"text": "Thanks"}]}, "final_response": null, "intermediate_data": {}}],
  "session_input": {"app_name": "dice", "user_id": "u", "state": {"sides": 6}}, "rubrics": [], "made_up": 1}], "creation_timestamp": 1.5}`,
	"camel.evalset.json": `{"evalSetId": "camel", "evalCases": [{"evalId": "dice", "conversation": [
  {"invocationId": "1", "userContent": {"parts": [{"text": "Roll a die"}]}, "finalResponse": {"parts": [{"text": "It shows 4."}]},
   "intermediateData": {"invocationEvents": [
     {"author": "dice", "content": {"parts": [{"text": "rolling"}, {"functionCall": {"name": "roll", "args": {"sides": 6}}}]}},
     {"author": "dice", "content": {"parts": [{"functionResponse": {"name": "roll", "response": {"result": 4}}}]}}]}},
  {"userContent": {"parts": [{"text": "Thanks"}]}, "intermediateData": {"toolUses": []}}],
  "sessionInput": {"appName": "dice", "userId": "u", "state": {"sides": 6}}}]}`,
}

func TestReadADK(t *testing.T) {
	turns := []cases.Turn{
		{Input: "Roll a die", Expected: new("It shows 4."), Calls: []cases.Call{{Name: "roll", Args: map[string]any{"sides": int64(6)}}}},
		{Input: "Thanks", Calls: []cases.Call{}},
	}
	for name, text := range adkForms {
		set := read(t, name, text)
		want := []cases.Case{{ID: "dice", Turns: turns, State: map[string]any{"sides": int64(6)}}}
		if strings.HasPrefix(name, "oldest") {
			want[0].ID, want[0].State = "case-1", nil
		}
		if diff := cmp.Diff(want, set.Cases); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff([]check.Spec{{Kind: check.Calls, Name: "tool_trajectory_avg_score", Min: 1}, {Kind: check.Rouge1, Name: "response_match_score", Min: 0.8}},
			set.Checks); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if id, _, _ := strings.Cut(name, "."); set.ADK != id {
			t.Errorf("%s has the ID %q", name, set.ADK)
		}
	}
}

func TestReadEvaluationDataset(t *testing.T) {
	set := read(t, "dice-dataset.json", `{"description": "dice", "eval_cases": [
  {"eval_case_id": "one", "prompt": {"role": "user", "parts": [{"text": "Roll a die"}]}, "reference": {"response": {"parts": [{"text": "4"}]}},
   "rubric_groups": {"g": {"rubrics": [{"rubric_id": "r", "content": {"property": {"description": "polite"}}}]}}},
  {"eval_case_id": "two", "agent_data": {"turns": [
    {"turn_index": 0, "events": [
      {"author": "user", "state_delta": {"sides": 6}},
      {"author": "user", "content": {"parts": [{"text": "Roll a die"}]}},
      {"author": "dice", "content": {"parts": [{"text": "4"}]}}]},
    {"turn_index": 1, "events": [{"author": "user", "content": {"parts": [{"text": "Thanks"}]}}]}]},
   "expected_tool_uses": [{"name": "roll"}]}]}`)
	want := []cases.Case{
		{ID: "one", Turns: []cases.Turn{{Input: "Roll a die", Expected: new("4")}}},
		{ID: "two", Turns: []cases.Turn{{Input: "Roll a die"}, {Input: "Thanks", Calls: []cases.Call{{Name: "roll"}}}}, State: map[string]any{"sides": int64(6)}},
	}
	if diff := cmp.Diff(want, set.Cases); diff != "" {
		t.Error(diff)
	}
}

func TestCriteriaOfADK(t *testing.T) {
	set := read(t, "eval/a.test.json", `[{"query": "q", "reference": "r"}]`, "eval/test_config.json", `{"criteria": {
  "response_match_score": 0.1, "final_response_match_v2": {"threshold": 0.8, "judge_model_options": {"num_samples": 5}},
  "tool_trajectory_avg_score": {"threshold": 0.0, "matchType": "IN_ORDER", "ignore_args": true}}, "custom_metrics": {}}`)
	want := []check.Spec{
		{Kind: check.Rouge1, Name: "response_match_score", Min: 0.1},
		{Kind: check.Agrees, Name: "final_response_match_v2", Min: 0.8, Model: "gemini/gemini-2.5-flash", Samples: 5},
		{Kind: check.Calls, Name: "tool_trajectory_avg_score", Min: 1e-12, Order: check.InOrder, IgnoreArgs: true},
	}
	if diff := cmp.Diff(want, set.Checks); diff != "" {
		t.Error(diff)
	}
	if c := read(t, "a.test.json", `[{"query": "q"}]`, "test_config.json", `{"criteria": {}}`).Checks; c == nil || len(c) != 0 {
		t.Errorf("no criteria are %v", c)
	}
}

// The rubrics of a criterion, of a case and of an invocation are asked of the turns that they concern, and only those of the type of the
// criterion.
func TestRubricsOfADK(t *testing.T) {
	rubric := func(text, kind string) string {
		return fmt.Sprintf(`{"rubricId": "r", "rubricContent": {"textProperty": %q}, "type": %q}`, text, kind)
	}
	set := read(t, "a.json", `{"eval_cases": [
  {"eval_id": "a", "conversation": [
    {"user_content": {"parts": [{"text": "q"}]}},
    {"user_content": {"parts": [{"text": "q"}]}, "rubrics": [`+rubric("turn", "FINAL_RESPONSE_QUALITY")+`]}],
   "rubrics": [`+rubric("case", "FINAL_RESPONSE_QUALITY")+`, `+rubric("tools", "TOOL_USE_QUALITY")+`, `+rubric("all", "TRAJECTORY_QUALITY")+`]},
  {"eval_id": "b", "conversation": [{"user_content": {"parts": [{"text": "q"}]}}]}]}`,
		"test_config.json", `{"criteria": {
  "rubric_based_final_response_quality_v1": {"threshold": 0.5, "judge_model_options": {"judge_model": "gemini-x", "num_samples": 1},
    "rubrics": [{"rubric_id": "c", "rubric_content": {"text_property": "criterion"}}]},
  "rubric_based_tool_use_quality_v1": {}, "rubric_based_multi_turn_trajectory_quality_v1": 0.7, "hallucinations_v1": 0.5}}`)
	spec := func(texts ...string) check.Spec {
		return check.Spec{Kind: check.Rubric, Name: "rubric_based_final_response_quality_v1", Min: 0.5, Model: "gemini/gemini-x", Samples: 1,
			EachTurn: true, Texts: texts}
	}
	tools := check.Spec{Kind: check.Rubric, Name: "rubric_based_tool_use_quality_v1", Min: 0.8, Model: "gemini/gemini-2.5-flash", Samples: 5,
		EachTurn: true, Texts: []string{"tools"}}
	whole := check.Spec{Kind: check.Rubric, Name: "rubric_based_multi_turn_trajectory_quality_v1", Min: 0.7, Model: "gemini/gemini-2.5-flash", Samples: 5,
		Whole: true, Texts: []string{"all"}}
	want := []cases.Case{
		{ID: "a", Turns: []cases.Turn{{Input: "q"}, {Input: "q", Checks: []check.Spec{spec("turn")}}},
			Checks: []check.Spec{spec("criterion", "case"), tools, whole}},
		{ID: "b", Turns: []cases.Turn{{Input: "q"}}, Checks: []check.Spec{spec("criterion")}},
	}
	if diff := cmp.Diff(want, set.Cases); diff != "" {
		t.Error(diff)
	}
	if len(set.Checks) != 1 || set.Checks[0].Kind != check.Unsupported {
		t.Errorf("the checks of all cases are %+v", set.Checks)
	}
	g, err := set.Grader()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, q := range g.Asks(&set.Cases[0], false) {
		n += len(q.Prompts) * q.Samples
	}
	if n != 2*2+2*5+5+1 {
		t.Errorf("a run of the first case takes %d votes", n)
	}
	set.JudgeBy("openai/other")
	if g, err = set.Grader(); err != nil || g.Asks(&set.Cases[0], false)[0].Model != "openai/other" {
		t.Errorf("%v", err)
	}
}

func TestMistakesOfADK(t *testing.T) {
	const set = `{"eval_cases": [{"eval_id": "a", "conversation": [{"user_content": {"parts": [{"text": "q"}]}}]}]}`
	for _, tt := range []struct{ text, config, want string }{
		{set, `{"criteria": {"safety_v1": 0.8}}`, "test_config.json:1:15: error: safety_v1 is computed by a service of Google Cloud"},
		{set, `{"criteria": {"response_match_scor": 0.8}}`, `did you mean "response_match_score"?`},
		{set, `{"criteria": {"response_match_score": 8}}`, "test_config.json:1:39: error: the threshold of response_match_score must be at most 1, got 8"},
		{set, `{"criteria": {"tool_trajectory_avg_score": {"match_type": "SOME"}}}`, "there are EXACT, IN_ORDER, ANY_ORDER"},
		{set, `{"criteria": `, "test_config.json:2:1: error: not YAML"},
		{`[{"query": "a"}, {"reference": "b"}]`, "", "a.json:1:18: error: a turn needs a query"},
		{`[{"query": "a", "expected_tool_use": [{"tool_input": {}}]}]`, "", "a.json:1:39: error: a call needs a tool_name"},
		{`{"eval_cases": []}`, "", "a.json:1:16: error: there are no cases"},
		{`{"eval_cases": [{"eval_id": "a", "conversation": []}]}`, "", "a.json:1:17: error: the case has no message of a user"},
		{`{"eval_cases": [{"eval_id": "a", "conversation": [{}]}]}`, "", "an invocation needs user_content"},
		{`{"eval_cases": [{"conversation_scenario": {"starting_prompt": "a"}}]}`, "", "a model plays the user of this case"},
		{`{"eval_cases": [{"prompt": {"parts": [{"text": "a"}, {"inline_data": {"data": "aGk="}}]}}]}`, "", "a.json:1:54: error: this part of the message has no text"},
		{`{"eval_cases": [1, "a"]}`, "", "a case must be a map, got 1"},
		{`{"eval_cases": [{"eval_id": "a", "prompt": "q"}, {"evalCaseId": "a", "prompt": "q"}]}`, "", `two cases have the ID "a", the first in line 1`},
		{`{"eval_cases": [{"agent_data": {"turns": [{"events": [{"author": "user", "content": {"parts": [{"text": "a"}]}}]},
			{"events": [{"author": "user", "state_delta": {"a": 1}}]}]}}]}`, "", "before the first turn only"},
	} {
		pairs := []string{"a.json", tt.text}
		if tt.config != "" {
			pairs = append(pairs, "test_config.json", tt.config)
		}
		if got := problems(t, pairs...); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %q is not in\n%s", tt.text, tt.config, tt.want, got)
		}
	}
}
