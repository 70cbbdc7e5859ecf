// SPDX-License-Identifier: Apache-2.0

package adkresult_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/eval/adkresult"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
)

// The types of ADK's schema, as its reader has them: evaluation/eval_result.py, eval_metrics.py and eval_case.py.
type (
	evalSetResult struct {
		EvalSetResultID   string           `json:"evalSetResultId"`
		EvalSetResultName string           `json:"evalSetResultName"`
		EvalSetID         string           `json:"evalSetId"`
		EvalCaseResults   []evalCaseResult `json:"evalCaseResults"`
		CreationTimestamp float64          `json:"creationTimestamp"`
	}
	evalCaseResult struct {
		EvalSetFile                   string                `json:"evalSetFile"`
		EvalSetID                     string                `json:"evalSetId"`
		EvalID                        string                `json:"evalId"`
		FinalEvalStatus               int                   `json:"finalEvalStatus"`
		EvalMetricResults             *[]json.RawMessage    `json:"evalMetricResults"`
		OverallEvalMetricResults      *[]evalMetricResult   `json:"overallEvalMetricResults"`
		EvalMetricResultPerInvocation *[]metricOfInvocation `json:"evalMetricResultPerInvocation"`
		SessionID                     string                `json:"sessionId"`
		UserID                        *string               `json:"userId"`
	}
	evalMetricResult struct {
		MetricName string   `json:"metricName"`
		Threshold  float64  `json:"threshold"`
		Score      *float64 `json:"score"`
		EvalStatus int      `json:"evalStatus"`
	}
	metricOfInvocation struct {
		ActualInvocation   invocation         `json:"actualInvocation"`
		ExpectedInvocation invocation         `json:"expectedInvocation"`
		EvalMetricResults  []evalMetricResult `json:"evalMetricResults"`
	}
	invocation struct {
		InvocationID     string   `json:"invocationId"`
		UserContent      content  `json:"userContent"`
		FinalResponse    *content `json:"finalResponse"`
		IntermediateData *struct {
			ToolUses *[]struct {
				Name string         `json:"name"`
				Args map[string]any `json:"args"`
			} `json:"toolUses"`
			ToolResponses         []json.RawMessage `json:"toolResponses"`
			IntermediateResponses []json.RawMessage `json:"intermediateResponses"`
		} `json:"intermediateData"`
		CreationTimestamp float64 `json:"creationTimestamp"`
	}
	content struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
		Role string `json:"role"`
	}
)

// parse reads a result as ADK does: unknown fields are refused, and the JSON may be in a JSON text, as older versions wrote it.
func parse(data []byte) (r evalSetResult, err error) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = []byte(text)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, err
	}
	for _, c := range r.EvalCaseResults {
		if c.EvalMetricResults == nil || c.OverallEvalMetricResults == nil || c.EvalMetricResultPerInvocation == nil {
			return r, errors.New("a required list is missing")
		}
		for _, inv := range *c.EvalMetricResultPerInvocation {
			for _, i := range []invocation{inv.ActualInvocation, inv.ExpectedInvocation} {
				if i.IntermediateData == nil || i.IntermediateData.ToolUses == nil || len(i.UserContent.Parts) == 0 {
					return r, errors.New("an invocation has no toolUses or no message")
				}
			}
		}
	}
	return r, nil
}

func TestWrite(t *testing.T) {
	set, err := cases.Read(fstest.MapFS{"dice.evalset.json": {Data: []byte(`[{"name": "roll", "data": [
		{"query": "Roll a die", "expected_tool_use": [{"tool_name": "roll", "tool_input": {"sides": 6}}], "reference": "It shows 4."},
		{"query": "Again", "reference": "It shows 2."}]}]`)}}, "dice.evalset.json", "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := set.Grader()
	if err != nil {
		t.Fatal(err)
	}
	s := &check.Subject{Case: set.Cases[0], Turns: []check.Outcome{
		{Answer: "It shows 4", Calls: []check.Call{{Name: "roll", Args: map[string]any{"sides": 6.0}}}}}}
	grade, err := g.Grade(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r := adkresult.Result{App: "../dice", Set: set.ADK, Time: time.UnixMicro(1_747_946_425_614_513), Runs: []adkresult.Run{
		{Case: set.Cases[0], Turns: s.Turns, Grade: grade, Session: "ev_1.A.1.1", User: "user"},
		{Case: set.Cases[0], Session: "ev_1.A.1.2", User: "user"},
	}}
	if got, want := r.Name(), ".._dice_dice_1747946425.614513.evalset_result.json"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := parse(b.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	inText, err := json.Marshal(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := parse(inText); err != nil || !cmp.Equal(got, again) {
		t.Errorf("as a text: %v", err)
	}
	if len(got.EvalCaseResults) != 2 || got.CreationTimestamp != 1747946425.614513 || got.EvalSetID != "dice" || strings.ContainsAny(got.EvalSetResultName, "/") {
		t.Fatalf("%+v", got)
	}
	first, second := got.EvalCaseResults[0], got.EvalCaseResults[1]
	half := 0.5
	want := []evalMetricResult{{"tool_trajectory_avg_score", 1, new(1.0), 1}, {"response_match_score", 0.8, &half, 2}}
	if diff := cmp.Diff(want, *first.OverallEvalMetricResults); diff != "" || first.FinalEvalStatus != 2 || first.EvalID != "roll" {
		t.Errorf("%d %s", first.FinalEvalStatus, diff)
	}
	turns := *first.EvalMetricResultPerInvocation
	if len(turns) != 2 {
		t.Fatalf("%d turns", len(turns))
	}
	if diff := cmp.Diff([]evalMetricResult{{"tool_trajectory_avg_score", 1, new(1.0), 1}, {"response_match_score", 0.8, new(1.0), 1}}, turns[0].EvalMetricResults); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]evalMetricResult{{"tool_trajectory_avg_score", 1, nil, 3}, {"response_match_score", 0.8, new(0.0), 2}}, turns[1].EvalMetricResults); diff != "" {
		t.Error(diff)
	}
	if use := *turns[0].ActualInvocation.IntermediateData.ToolUses; len(use) != 1 || use[0].Name != "roll" || use[0].Args["sides"] != 6.0 ||
		turns[0].ActualInvocation.FinalResponse.Parts[0].Text != "It shows 4" || turns[1].ActualInvocation.FinalResponse != nil ||
		turns[1].ExpectedInvocation.UserContent.Parts[0].Text != "Again" {
		t.Errorf("%+v", turns)
	}
	if second.FinalEvalStatus != 3 || second.SessionID != "ev_1.A.1.2" {
		t.Errorf("%+v", second)
	}
}

// The status of a turn follows the same rules as that of the whole: "not" and the error of rounding.
func TestStatusOfATurn(t *testing.T) {
	set, err := cases.Read(fstest.MapFS{"a.yaml": {Data: []byte(`
checks: [{equals: , not: true}, {rouge1: 0.7500000000001}]
cases: [{id: a, input: a, expected: the flight is booked}]`)}}, "a.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := set.Grader()
	if err != nil {
		t.Fatal(err)
	}
	s := &check.Subject{Case: set.Cases[0], Turns: []check.Outcome{{Answer: "the flights were booked"}}}
	grade, err := g.Grade(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (adkresult.Result{App: "a", Set: "a", Runs: []adkresult.Run{{Case: set.Cases[0], Turns: s.Turns, Grade: grade}}}).Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := []evalMetricResult{{"not equals", 1, new(1.0), 1}, {"response_match_score", 0.7500000000001, new(0.75), 1}}
	if diff := cmp.Diff(want, *got.EvalCaseResults[0].OverallEvalMetricResults); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, (*got.EvalCaseResults[0].EvalMetricResultPerInvocation)[0].EvalMetricResults); diff != "" {
		t.Error(diff)
	}
}
