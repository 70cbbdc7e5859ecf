// SPDX-License-Identifier: Apache-2.0

// Package adkresult writes the results of an evaluation as Google's ADK for Python does, in the file
// APP_SET_TIME.evalset_result.json, so that ADK Web and other tools for ADK can show them.
//
//	r := adkresult.Result{App: "dice", Set: set.ADK, Time: time.Now(), Runs: runs}
//	f, err := root.Create(r.Name())
//	...
//	err = r.Write(f)
//
// The file has ADK's fields and no others, because ADK refuses unknown ones. [CaseOf] writes a case in ADK's form.
package adkresult

import (
	"encoding/json"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/eval/check"
)

// Result is the result of an evaluation.
type Result struct {
	App  string // name of the application, for ADK the folder of the agent
	Set  string // ID of the set of cases
	Time time.Time
	// Runs are the case-runs in the order of the cases. A case that was run several times has several.
	Runs []Run
}

// Run is one case-run.
type Run struct {
	Case  check.Case
	Turns []check.Outcome // may be fewer than the turns of the case
	Grade check.Grade
	// Session and User are the IDs of the session of the run.
	Session, User string
}

// ID returns ADK's ID of the result.
func (r Result) ID() string {
	return r.App + "_" + r.Set + "_" + strconv.FormatFloat(seconds(r.Time), 'f', -1, 64)
}

func seconds(t time.Time) float64 { return math.Round(float64(t.UnixNano())/1e3) / 1e6 }

// Name returns the name of the file. It has no folder in it, whatever the names of the application and the set are.
func (r Result) Name() string {
	return strings.Map(func(c rune) rune {
		if c == '/' || c == '\\' || c == ':' || c < ' ' {
			return '_'
		}
		return c
	}, r.ID()) + ".evalset_result.json"
}

// The statuses of ADK.
const (
	passed       = 1
	failed       = 2
	notEvaluated = 3
)

func status(ok *bool) int {
	switch {
	case ok == nil:
		return notEvaluated
	case *ok:
		return passed
	}
	return failed
}

// A Document is what the file has.
type Document struct {
	ID       string       `json:"evalSetResultId"`
	Name     string       `json:"evalSetResultName"`
	Set      string       `json:"evalSetId"`
	Cases    []CaseResult `json:"evalCaseResults"`
	Creation float64      `json:"creationTimestamp"`
}

// A CaseResult is the result of one case-run.
type CaseResult struct {
	File    string             `json:"evalSetFile"` // older versions of ADK require it, and MetricResults
	Set     string             `json:"evalSetId"`
	ID      string             `json:"evalId"`
	Status  int                `json:"finalEvalStatus"`
	Metrics []any              `json:"evalMetricResults"`
	Overall []metricResult     `json:"overallEvalMetricResults"`
	Turns   []invocationResult `json:"evalMetricResultPerInvocation"`
	Session string             `json:"sessionId"`
	User    string             `json:"userId"`
	// Details is the session, for ADK Web, which shows it. Files have none.
	Details any `json:"sessionDetails,omitempty"`
}

type metricResult struct {
	Name      string   `json:"metricName"`
	Threshold float64  `json:"threshold"`
	Score     *float64 `json:"score"`
	Status    int      `json:"evalStatus"`
}

type invocationResult struct {
	Actual   invocation     `json:"actualInvocation"`
	Expected invocation     `json:"expectedInvocation"`
	Metrics  []metricResult `json:"evalMetricResults"`
}

// A Case is a case of an eval set.
type Case struct {
	ID           string       `json:"evalId"`
	Conversation []invocation `json:"conversation"`
	Session      struct {
		App   string         `json:"appName"`
		User  string         `json:"userId"`
		State map[string]any `json:"state"`
	} `json:"sessionInput"`
	Creation float64 `json:"creationTimestamp"`
}

// CaseOf returns a case in ADK's form. Inputs of the definition are in its state. The answers of people and the checks of the case have
// no place there.
func CaseOf(c *check.Case, app, user string, at time.Time) Case {
	out := Case{ID: c.ID, Creation: seconds(at)}
	for i, t := range c.Turns {
		out.Conversation = append(out.Conversation, invocationOf(c.ID, at, i, t.Input, t.Expected, t.Calls))
	}
	out.Session.App, out.Session.User, out.Session.State = app, user, make(map[string]any)
	maps.Copy(out.Session.State, c.State)
	maps.Copy(out.Session.State, c.Values)
	return out
}

type invocation struct {
	ID       string       `json:"invocationId"`
	User     content      `json:"userContent"`
	Response *content     `json:"finalResponse"`
	Data     intermediate `json:"intermediateData"` // ADK Web reads toolUses without asking whether it is there
	Creation float64      `json:"creationTimestamp"`
}

type content struct {
	Parts []part `json:"parts"`
	Role  string `json:"role"`
}

type part struct {
	Text string `json:"text"`
}

type intermediate struct {
	Uses      []call `json:"toolUses"`
	Responses []any  `json:"toolResponses"`
	Texts     []any  `json:"intermediateResponses"`
}

type call struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

// Document returns what the file has.
func (r Result) Document() Document {
	out := Document{ID: r.ID(), Name: strings.TrimSuffix(r.Name(), ".evalset_result.json"), Set: r.Set, Cases: []CaseResult{}, Creation: seconds(r.Time)}
	for _, run := range r.Runs {
		out.Cases = append(out.Cases, r.of(run))
	}
	return out
}

// Write writes the file as JSON. It returns the error of w, or that of a value that has no JSON.
func (r Result) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r.Document())
}

func (r Result) of(run Run) CaseResult {
	c := CaseResult{File: r.Set, Set: r.Set, ID: run.Case.ID, Status: status(run.Grade.Passed), Metrics: []any{}, Overall: []metricResult{},
		Turns: []invocationResult{}, Session: run.Session, User: run.User}
	for _, res := range run.Grade.Results {
		c.Overall = append(c.Overall, metricResult{metric(res), res.Min, res.Value, status(res.Passed)})
	}
	for i, t := range run.Case.Turns {
		one := invocationResult{Expected: invocationOf(run.Session, r.Time, i, t.Input, t.Expected, t.Calls), Metrics: []metricResult{}}
		if i < len(run.Turns) {
			one.Actual = invocationOf(run.Session, r.Time, i, t.Input, &run.Turns[i].Answer, run.Turns[i].Calls)
		} else {
			one.Actual = invocationOf(run.Session, r.Time, i, t.Input, nil, nil)
		}
		for _, res := range run.Grade.Results {
			if i < len(res.Turns) {
				m := metricResult{Name: metric(res), Threshold: res.Min, Score: res.Turns[i], Status: notEvaluated}
				if m.Score != nil {
					m.Status = status(new(res.Reached(*m.Score)))
				}
				one.Metrics = append(one.Metrics, m)
			}
		}
		c.Turns = append(c.Turns, one)
	}
	return c
}

// metric returns ADK's name of a check, or else the check's own.
func metric(r check.Result) string {
	switch r.Name {
	case string(check.Calls):
		return "tool_trajectory_avg_score"
	case string(check.Rouge1):
		return "response_match_score"
	}
	return r.Name
}

// invocationOf returns turn i of a case or a case-run. id begins its ID.
func invocationOf(id string, at time.Time, i int, input string, answer *string, calls []check.Call) invocation {
	inv := invocation{ID: id + "-" + strconv.Itoa(i+1), User: content{[]part{{input}}, "user"}, Creation: seconds(at),
		Data: intermediate{[]call{}, []any{}, []any{}}}
	if answer != nil {
		inv.Response = &content{[]part{{*answer}}, "model"}
	}
	for _, c := range calls {
		args := c.Args
		if args == nil {
			args = map[string]any{}
		}
		inv.Data.Uses = append(inv.Data.Uses, call{c.Name, args})
	}
	return inv
}
