// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/adkresult"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
)

// An eval set of an application is a file of cases in the folder with the name of the application, where ADK keeps it too:
// greeter/first.evalset.json. refrain eval reads the same file. An eval of the store is a result.

// setEnding ends the name of the file of an eval set.
const setEnding = ".evalset.json"

// evalRoutes are the operations on evals. ADK Web asks for most of them in two spellings, the older one with underscores.
func (a *API) evalRoutes(below string) []wire.Route {
	app := below + "/apps/{app}"
	all := []wire.Route{
		wire.At("GET", app+"/metrics-info", access.Reader, a.metricsInfo),
		wire.At("GET", app+"/eval_sets", access.Reader, a.evalSets(func(ids []string) any { return ids })),
		wire.At("GET", app+"/eval-sets", access.Reader, a.evalSets(func(ids []string) any { return map[string]any{"evalSetIds": ids} })),
		wire.At("POST", app+"/eval-sets", access.Author, a.createSet),
		wire.At("POST", app+"/eval_sets/{set}", access.Author, a.createSet),
		wire.At("GET", app+"/eval-sets/{set}", access.Reader, a.evalSet),
		wire.At("DELETE", app+"/eval-sets/{set}", access.Author, a.deleteSet),
		wire.At("GET", app+"/eval_sets/{set}/evals", access.Reader, a.evals),
		wire.At("POST", app+"/eval_sets/{set}/add_session", access.Author, a.addSession),
		wire.At("POST", app+"/eval-sets/{set}/add-session", access.Author, a.addSession),
		wire.At("POST", app+"/eval_sets/{set}/run_eval", access.Operator, a.runEval(func(all []adkresult.CaseResult) any { return all })),
		wire.At("POST", app+"/eval-sets/{set}/run", access.Operator, a.runEval(func(all []adkresult.CaseResult) any {
			return map[string]any{"runEvalResults": all}
		})),
		wire.At("GET", app+"/eval_results", access.Reader, a.results(func(ids []string) any { return ids })),
		wire.At("GET", app+"/eval-results", access.Reader, a.results(func(ids []string) any { return map[string]any{"evalResultIds": ids} })),
	}
	for _, at := range []string{"/eval_sets/{set}/evals/{eval}", "/eval-sets/{set}/eval-cases/{eval}"} {
		all = append(all, wire.At("GET", app+at, access.Reader, a.evalCase), wire.At("PUT", app+at, access.Author, a.putCase),
			wire.At("DELETE", app+at, access.Author, a.deleteCase))
	}
	for _, at := range []string{"/eval_results/{result}", "/eval-results/{result}"} {
		all = append(all, wire.At("GET", app+at, access.Reader, a.result))
	}
	return all
}

// setFile returns the file of an eval set.
func setFile(app, set string) (string, error) {
	if err := operations.CheckName(app); err != nil {
		return "", err
	}
	if operations.CheckName(set) != nil {
		return "", problem.Bad("%q cannot be the ID of an eval set: use up to 63 letters, digits and _ . -", set)
	}
	return app + "/" + set + setEnding, nil
}

// evalSets lists the eval sets of an application.
func (a *API) evalSets(answer func(ids []string) any) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		app := r.PathValue("app")
		if err := a.knows(app); err != nil {
			return err
		}
		entries, err := fs.ReadDir(a.Runs.Folder.FS(), app)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		ids := []string{}
		for _, e := range entries {
			if id, ok := strings.CutSuffix(e.Name(), setEnding); ok && operations.CheckName(id) == nil {
				ids = append(ids, id)
			}
		}
		return a.Send(w, http.StatusOK, answer(ids))
	}
}

// readSet reads an eval set with the names of ADK for Go.
func (a *API) readSet(app, set string) (file string, doc map[string]any, list []any, err error) {
	if file, err = setFile(app, set); err != nil {
		return "", nil, nil, err
	}
	text, err := a.Runs.Folder.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil, nil, problem.New(http.StatusNotFound, "eval_set_not_found", "There is no such eval set", "there is no file %s", file)
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(camel(text)))
		d.UseNumber() // they are written again as they are
		err = d.Decode(&doc)
	}
	if outside, ok := errors.AsType[*fs.PathError](err); ok {
		return file, nil, nil, outside
	}
	list, ok := doc["evalCases"].([]any)
	if err != nil || !ok {
		return file, nil, nil, problem.New(http.StatusUnprocessableEntity, "old_eval_set", "The eval set cannot be shown",
			"%s has no list eval_cases; refrain eval runs the older forms of ADK too", file)
	}
	return file, doc, list, nil
}

func idOf(one any) string {
	m, _ := one.(map[string]any)
	id, _ := cmp.Or(m["evalId"], m["evalCaseId"]).(string)
	return id
}

func (a *API) evalSet(w http.ResponseWriter, r *http.Request) error {
	_, doc, _, err := a.readSet(r.PathValue("app"), r.PathValue("set"))
	if err != nil {
		return err
	}
	return a.SendMasked(w, http.StatusOK, doc)
}

// evals lists the cases of an eval set.
func (a *API) evals(w http.ResponseWriter, r *http.Request) error {
	_, _, list, err := a.readSet(r.PathValue("app"), r.PathValue("set"))
	if err != nil {
		return err
	}
	ids := []string{}
	for _, one := range list {
		ids = append(ids, idOf(one))
	}
	slices.Sort(ids)
	return a.Send(w, http.StatusOK, ids)
}

// placeOf returns the place of a case in an eval set.
func placeOf(list []any, set, id string) (int, error) {
	i := slices.IndexFunc(list, func(one any) bool { return idOf(one) == id })
	if i < 0 {
		return 0, problem.New(http.StatusNotFound, "case_not_found", "There is no such case", "the eval set %q has no case %q", set, id)
	}
	return i, nil
}

func (a *API) evalCase(w http.ResponseWriter, r *http.Request) error {
	_, _, list, err := a.readSet(r.PathValue("app"), r.PathValue("set"))
	if err != nil {
		return err
	}
	i, err := placeOf(list, r.PathValue("set"), r.PathValue("eval"))
	if err != nil {
		return err
	}
	one := list[i].(map[string]any)
	turns, _ := one["conversation"].([]any)
	for _, t := range turns {
		if inv, ok := t.(map[string]any); ok { // ADK Web reads toolUses without asking whether it is there
			data, _ := inv["intermediateData"].(map[string]any)
			if data == nil {
				data = map[string]any{}
				inv["intermediateData"] = data
			}
			if data["toolUses"] == nil && data["invocationEvents"] == nil {
				data["toolUses"] = []any{}
			}
		}
	}
	return a.SendMasked(w, http.StatusOK, one)
}

// writeSet writes an eval set.
func (a *API) writeSet(file string, doc map[string]any) error {
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return a.Runs.Folder.Write(file, append(text, '\n'))
}

// changeSet changes the cases of an eval set.
func (a *API) changeSet(r *http.Request, change func(list []any) ([]any, error)) error {
	return a.Runs.Change(r.Context(), operations.WriteCases, func() (string, error) {
		a.Runs.Folder.Changing.Lock()
		defer a.Runs.Folder.Changing.Unlock()
		file, doc, list, err := a.readSet(r.PathValue("app"), r.PathValue("set"))
		if err != nil {
			return "", err
		}
		if doc["evalCases"], err = change(list); err != nil {
			return "", err
		}
		return file, a.writeSet(file, doc)
	})
}

// checkCaseID returns an error for an ID of a case that no path could name.
func checkCaseID(id string) error {
	if id == "" || strings.TrimSpace(id) != id {
		return problem.Bad("%q cannot be the ID of a case: it is one line of visible characters, without spaces around them", id)
	}
	return nil
}

// checkCase returns an error about a case that cannot be read.
func checkCase(one any) error {
	const name = "case" + setEnding
	text, err := json.Marshal(map[string]any{"evalCases": []any{one}})
	if err == nil {
		_, err = cases.ReadWith(noFiles{}, name, "", map[string][]byte{name: text})
	}
	return badCases(err)
}

// noFiles is a file system without files.
type noFiles struct{}

func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// badCases returns the problem of cases that cannot be read.
func badCases(err error) error {
	if err == nil {
		return nil
	}
	p := new(*problem.Of(err))
	if p.Problems == nil {
		return err
	}
	p.Type, p.Title = "urn:refrain:bad_cases", "The cases have mistakes"
	return p
}

// createSet creates an eval set without cases. The set is named in the path, or in the body.
func (a *API) createSet(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		EvalSet struct{ EvalSetID, Name, Description string }
	}
	if err := a.readLoosely(w, r, &req); err != nil {
		return err
	}
	app, id := r.PathValue("app"), cmp.Or(r.PathValue("set"), req.EvalSet.EvalSetID)
	file, err := setFile(app, id)
	if err == nil {
		err = a.knows(app)
	}
	if err != nil {
		return err
	}
	doc := map[string]any{"evalSetId": id, "name": cmp.Or(req.EvalSet.Name, id), "evalCases": []any{},
		"creationTimestamp": seconds(time.Now())}
	if d := req.EvalSet.Description; d != "" {
		doc["description"] = d
	}
	err = a.Runs.Change(r.Context(), operations.WriteCases, func() (string, error) {
		a.Runs.Folder.Changing.Lock()
		defer a.Runs.Folder.Changing.Unlock()
		if _, err := fs.Stat(a.Runs.Folder.FS(), file); err == nil {
			return "", problem.Bad("the application %q has an eval set %q", app, id)
		}
		return file, a.writeSet(file, doc)
	})
	if err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, doc)
}

// readLoosely reads a body with names in either spelling. Fields that a newer client sends are ignored.
func (a *API) readLoosely(w http.ResponseWriter, r *http.Request, v any) error {
	text, err := a.Body(w, r, "application/json")
	if err != nil || len(text) == 0 {
		return err
	}
	if err := json.Unmarshal(camel(text), v); err != nil {
		return problem.Bad("read the body: %v", err)
	}
	return nil
}

func (a *API) deleteSet(w http.ResponseWriter, r *http.Request) error {
	file, err := setFile(r.PathValue("app"), r.PathValue("set"))
	if err != nil {
		return err
	}
	err = a.Runs.Change(r.Context(), operations.WriteCases, func() (string, error) {
		err := a.Runs.Folder.Delete(file)
		if errors.Is(err, fs.ErrNotExist) {
			err = problem.New(http.StatusNotFound, "eval_set_not_found", "There is no such eval set", "there is no file %s", file)
		}
		return file, err
	})
	if err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, nil)
}

// putCase replaces a case.
func (a *API) putCase(w http.ResponseWriter, r *http.Request) error {
	one := map[string]any{}
	if err := a.readLoosely(w, r, &one); err != nil {
		return err
	}
	id := r.PathValue("eval")
	if got := idOf(one); got != "" && got != id {
		return problem.Bad("the body has the case %q, and the path %q", got, id)
	}
	one["evalId"] = id
	if err := checkCase(one); err != nil {
		return err
	}
	err := a.changeSet(r, func(list []any) ([]any, error) {
		i, err := placeOf(list, r.PathValue("set"), id)
		if err == nil {
			list[i] = one
		}
		return list, err
	})
	if err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, nil)
}

func (a *API) deleteCase(w http.ResponseWriter, r *http.Request) error {
	err := a.changeSet(r, func(list []any) ([]any, error) {
		i, err := placeOf(list, r.PathValue("set"), r.PathValue("eval"))
		if err != nil {
			return nil, err
		}
		return slices.Delete(list, i, i+1), nil
	})
	if err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, nil)
}

// addSession makes a case of a session, as refrain eval add does.
func (a *API) addSession(w http.ResponseWriter, r *http.Request) error {
	var req struct{ EvalID, SessionID, UserID string }
	if err := a.readLoosely(w, r, &req); err != nil {
		return err
	}
	k := sessionKey{r.PathValue("app"), req.UserID, req.SessionID}
	if err := errors.Join(k.check(), checkCaseID(req.EvalID)); err != nil {
		return err
	}
	one, err := a.Runs.Session(r.Context(), k.id())
	if err != nil {
		return err
	}
	c, err := eval.CaseOf(session.ViewOf(one), &a.Runs.Code)
	if err != nil {
		return problem.New(http.StatusConflict, "no_case", "The session cannot be a case", "%v", err)
	}
	c.ID = req.EvalID
	made := adkresult.CaseOf(c, k.app, k.user, time.Now())
	if err := checkCase(made); err != nil {
		return err
	}
	err = a.changeSet(r, func(list []any) ([]any, error) {
		if _, err := placeOf(list, "", req.EvalID); err == nil {
			return nil, problem.Bad("the eval set has a case %q", req.EvalID)
		}
		return append(list, made), nil
	})
	if err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, nil)
}
