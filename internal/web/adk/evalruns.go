// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"path/filepath"
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/adkresult"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/session"
)

// runEval runs cases of an eval set once, by the metrics of the client, and answers with their results. The eval goes on if the client
// leaves.
func (a *API) runEval(answer func([]adkresult.CaseResult) any) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		leave, err := a.Place(r.Context()) // it waits as a stream does
		if err != nil {
			return err
		}
		defer leave()
		var req struct {
			EvalIDs, EvalCaseIDs []string
			EvalMetrics          []metric
		}
		if err := a.readLoosely(w, r, &req); err != nil {
			return err
		}
		app := r.PathValue("app")
		plan, err := a.planOf(r, app, append(req.EvalIDs, req.EvalCaseIDs...), req.EvalMetrics)
		if err != nil {
			return err
		}
		cfg := eval.ConfigOf(a.Runs)
		var ev *eval.Eval
		err = a.Runs.Change(r.Context(), "evaluate", func() (string, error) {
			if ev, err = eval.Start(r.Context(), cfg, plan, nil); err != nil {
				return "", problem.New(http.StatusUnprocessableEntity, "cannot_evaluate", "The cases cannot run", "%v", err)
			}
			return ev.ID, nil
		})
		if err != nil {
			return err
		}
		defer ev.Close()
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
		defer cancel(nil)
		go func() { // until the handler returns
			select {
			case <-a.Closing:
				cancel(errClosing)
			case <-ctx.Done():
			}
		}()
		if err := ev.Run(ctx); err != nil {
			return err
		}
		res, err := eval.ADKResult(ctx, cfg, ev.Record)
		if err != nil {
			return err
		}
		return a.SendMasked(w, http.StatusOK, answer(res.Document().Cases))
	}
}

var errClosing = problem.New(http.StatusServiceUnavailable, "closing", "The server is stopping", "refrain eval resume continues the eval")

// metric is a metric as ADK Web sends it: with a threshold, or with a criterion that has the threshold and more.
type metric struct {
	MetricName string
	Threshold  *float64
	Criterion  map[string]any
}

// planOf returns the plan of an eval over the cases with some IDs, or all if there are none. Without metrics those of the folder apply.
func (a *API) planOf(r *http.Request, app string, ids []string, metrics []metric) (*eval.Plan, error) {
	file, _, list, err := a.readSet(app, r.PathValue("set"))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, problem.Bad("the eval set has no cases")
	}
	texts := map[string][]byte{}
	if len(metrics) > 0 {
		criteria := map[string]any{}
		for _, m := range metrics {
			criteria[m.MetricName] = m.Criterion
			if m.Criterion == nil {
				criteria[m.MetricName] = m.Threshold
			}
		}
		text, err := json.Marshal(map[string]any{"criteria": criteria})
		if err != nil {
			return nil, err
		}
		texts[path.Join(path.Dir(file), cases.ADKCriteria)] = text
	}
	set, err := cases.ReadWith(a.Runs.Folder.FS(), file, "", texts)
	if err != nil {
		return nil, badCases(err)
	}
	set.Repeat = 1 // as ADK does
	if len(ids) > 0 {
		if err := eval.Only(set, ids); err != nil {
			return nil, problem.Bad("%v", err)
		}
	}
	prog, def, err := a.Runs.Program(r.Context(), app)
	if err != nil {
		return nil, err
	}
	if len(metrics) > 0 {
		if err := a.checkJudges(set, file, prog, def); err != nil {
			return nil, err
		}
	}
	v, err := eval.NewVersion(prog.Path, prog, def)
	if err != nil {
		return nil, err
	}
	return &eval.Plan{Versions: []eval.Version{v}, File: filepath.Join(a.Runs.Dir, filepath.FromSlash(file)), Hash: set.Hash(), Set: *set}, nil
}

// checkJudges refuses a judge that a client has named, unless an author has: in the definition, or in the criteria beside the set. Other models
// cost what nobody has agreed to, and an error about a script would show a file of the server.
func (a *API) checkJudges(set *cases.Set, file string, prog *program.Program, def *definition.Definition) error {
	allowed := []string{cases.ADKJudge, prog.Model, prog.DefaultModel}
	for _, one := range def.Worst(definition.Assumed{Model: prog.DefaultModel, EveryModel: prog.Model}).Agents {
		allowed = append(allowed, one.Model)
	}
	if authored, err := cases.ReadWith(a.Runs.Folder.FS(), file, "", nil); err == nil {
		models, err := judgesOf(authored)
		if err != nil {
			return err
		}
		allowed = append(allowed, models...)
	}
	models, err := judgesOf(set)
	if err != nil {
		return err
	}
	for _, m := range models {
		if !slices.Contains(allowed, m) {
			return problem.Bad("the judge %q is a model that neither the definition nor %s names; an author can add it there", m, cases.ADKCriteria)
		}
	}
	return nil
}

// judgesOf returns the models that judge the cases of a set.
func judgesOf(set *cases.Set) (models []string, err error) {
	g, err := set.Grader()
	if err != nil {
		return nil, err
	}
	for i := range set.Cases {
		for _, q := range g.Asks(&set.Cases[i], false) {
			models = append(models, q.Model)
		}
	}
	return models, nil
}

// mostResults is how many of the newest evals are results.
const mostResults = 100

// resultsOf returns the newest evals of an application.
func (a *API) resultsOf(ctx context.Context, app string) ([]eval.Row, error) {
	_, def, err := a.Runs.Program(ctx, app)
	if err != nil {
		return nil, err
	}
	rows, err := eval.List(ctx, eval.ConfigOf(a.Runs), mostResults)
	rows = slices.DeleteFunc(rows, func(r eval.Row) bool { return r.App != def.Name })
	for i := range rows {
		rows[i].App = app
	}
	return rows, err
}

// results lists the results of an application.
func (a *API) results(answer func(ids []string) any) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		rows, err := a.resultsOf(r.Context(), r.PathValue("app"))
		if err != nil {
			return err
		}
		ids := []string{}
		for i := range rows {
			ids = append(ids, rows[i].ADK().ID())
		}
		return a.Send(w, http.StatusOK, answer(ids))
	}
}

// result answers with a result and the sessions of its case-runs, which ADK Web shows.
func (a *API) result(w http.ResponseWriter, r *http.Request) error {
	app, want := r.PathValue("app"), r.PathValue("result")
	rows, err := a.resultsOf(r.Context(), app)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(r eval.Row) bool { return r.ADK().ID() == want })
	if i < 0 {
		return problem.New(http.StatusNotFound, "eval_result_not_found", "There is no such result", "no eval has the result %q", want)
	}
	cfg := eval.ConfigOf(a.Runs)
	rec, err := eval.Read(r.Context(), cfg.Service, cfg.AppName, cfg.UserID, rows[i].Eval)
	if err != nil {
		return err
	}
	res, err := eval.ADKResult(r.Context(), cfg, rec)
	if err != nil {
		return err
	}
	res.App = app
	doc := res.Document()
	for i := range doc.Cases {
		if err := a.addDetails(r.Context(), app, &doc.Cases[i]); err != nil {
			return err
		}
	}
	return a.SendMasked(w, http.StatusOK, doc)
}

// addDetails adds the session of a case-run to its result, if it is there.
func (a *API) addDetails(ctx context.Context, app string, c *adkresult.CaseResult) error {
	one, err := a.Runs.Session(ctx, c.Session)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	events := []any{}
	for ev := range one.Events().All() {
		m, err := event(ev)
		if err != nil {
			return err
		}
		if m != nil {
			events = append(events, m)
		}
	}
	c.Details = map[string]any{"id": c.Session, "appName": app, "userId": c.User, "state": map[string]any{}, "events": events,
		"lastUpdateTime": seconds(one.LastUpdateTime())}
	return session.ViewOf(one).Err()
}

// caseRun returns the key of a case-run that a client of ADK names as a session of an application.
func caseRun(k sessionKey) string {
	if caserun.Is(k.session) {
		return k.session
	}
	return k.id()
}

// metricsInfo lists the metrics that need no more than a threshold.
func (a *API) metricsInfo(w http.ResponseWriter, _ *http.Request) error {
	all := []any{}
	for _, m := range [][2]string{
		{"tool_trajectory_avg_score", "The share of turns whose calls of tools are the expected ones."},
		{"response_match_score", "The words that the answer and the expected one share, as ROUGE-1."},
		{"final_response_match_v2", "A model judges whether the answer says the same as the expected one."},
		{"rubric_based_final_response_quality_v1", "The share of the rubrics of the case that a model finds true of the answer."},
		{"rubric_based_tool_use_quality_v1", "The share of the rubrics of the case that a model finds true of the calls of tools."},
		{"rubric_based_multi_turn_trajectory_quality_v1", "The share of the rubrics of the case that a model finds true of the conversation."},
	} {
		all = append(all, map[string]any{"metricName": m[0], "description": m[1], "metricValueInfo": map[string]any{
			"interval": map[string]any{"minValue": 0, "openAtMin": false, "maxValue": 1, "openAtMax": false}}})
	}
	return a.Send(w, http.StatusOK, map[string]any{"metricsInfo": all})
}
