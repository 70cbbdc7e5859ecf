// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/authoring/form"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/web/runpage"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
)

func (s *Server) listDefinitions(w http.ResponseWriter, _ *http.Request) error {
	all, err := s.runs.Definitions()
	if err != nil {
		return err
	}
	return s.Send(w, http.StatusOK, map[string]any{"definitions": all})
}

// getDefinition sends a definition with its ETag: as YAML if the client accepts that, and otherwise as JSON that describes the
// definition and has its text.
func (s *Server) getDefinition(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	file, text, err := s.runs.Folder.Read(name)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", operations.TagOf(text))
	w.Header().Set("Vary", "Accept")
	if matches(r.Header.Get("If-None-Match"), operations.TagOf(text)) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if strings.Contains(r.Header.Get("Accept"), "yaml") {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(text)
		return nil
	}
	d, _ := s.runs.Describe(name, file, text)
	d.Text = string(text)
	return s.Send(w, http.StatusOK, d)
}

// matches reports whether a list of ETags, as in If-Match, contains a tag or "*".
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}

// yamlTypes lists the media types of a definition's text. It includes JSON, because JSON is YAML.
var yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain", "application/json"}

// errOwn reports that a definition cannot be changed because it is part of the program.
var errOwn = problem.New(http.StatusForbidden, "built_in", "The definition is part of the program", "write yours under another name")

// putDefinition writes the file of a definition, if the text is valid and a client may write it. It answers with status 201 for
// a new definition and 200 for a changed one.
func (s *Server) putDefinition(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := operations.CheckName(name); err != nil {
		return err
	}
	text, err := s.Body(w, r, yamlTypes...)
	if err != nil {
		return err
	}
	s.runs.Folder.Changing.Lock()
	defer s.runs.Folder.Changing.Unlock()
	if _, own := s.runs.Folder.Own(name); own {
		return errOwn
	}
	file, old, err := s.runs.Folder.Read(name)
	status := http.StatusOK
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Status == http.StatusNotFound {
		file, status = operations.Places(name)[0], http.StatusCreated
		if r.Header.Get("If-Match") != "" {
			return problem.New(http.StatusPreconditionFailed, "changed", "The definition has changed", "it was removed")
		}
	} else if err != nil {
		return err
	} else if err := checkMatch(r, old); err != nil {
		return err
	}
	if status == http.StatusCreated || !bytes.Equal(old, text) {
		p, def, err := operations.Load(s.runs.Folder.Parts(), file, text)
		if err == nil {
			err = s.runs.Trusts(p, def, text)
		}
		if err == nil {
			err = s.runs.Change(r.Context(), operations.WriteDefinition, func() (string, error) { return name, s.runs.Folder.Write(file, text) })
		}
		if err != nil {
			return err
		}
	}
	w.Header().Set("ETag", operations.TagOf(text))
	d, _ := s.runs.Describe(name, file, text)
	return s.Send(w, status, d)
}

// checkMatch returns an error if the client's If-Match or If-None-Match forbids to change the present text, or if both are missing. So
// a client that sends the ETag of the text that it has read cannot overwrite a change that it has not seen.
func checkMatch(r *http.Request, now []byte) error {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case none != "" && matches(none, operations.TagOf(now)):
		return problem.New(http.StatusPreconditionFailed, "exists", "There is such a definition already", "")
	case match == "" && none != "*": // If-None-Match with another ETag does not show that the client knows the present text
		return problem.New(http.StatusPreconditionRequired, "no_etag", "Say which version you have seen",
			"send its ETag as If-Match, so that nobody's change is lost")
	case match != "" && !matches(match, operations.TagOf(now)):
		return problem.New(http.StatusPreconditionFailed, "changed", "The definition has changed",
			"somebody else has written it since you read it; read it again").With("ETag", operations.TagOf(now))
	}
	return nil
}

// deleteDefinition deletes the file of a definition. The client must send If-Match or If-None-Match: see checkMatch.
func (s *Server) deleteDefinition(w http.ResponseWriter, r *http.Request) error {
	s.runs.Folder.Changing.Lock()
	defer s.runs.Folder.Changing.Unlock()
	if _, own := s.runs.Folder.Own(r.PathValue("name")); own {
		return errOwn
	}
	file, text, err := s.runs.Folder.Read(r.PathValue("name"))
	if err != nil {
		return err
	}
	if err := checkMatch(r, text); err != nil {
		return err
	}
	err = s.runs.Change(r.Context(), operations.DeleteDefinition, func() (string, error) { return r.PathValue("name"), s.runs.Folder.Delete(file) })
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// validation is the response of validate.
type validation struct {
	Valid    bool                 `json:"valid"`
	Problems []problemWithFixes   `json:"problems"`
	Agents   []agentPreview       `json:"agents,omitempty"`
	Worst    *definition.AtMost   `json:"worst,omitempty"`
	Stops    []definition.StopWay `json:"stops,omitempty"`
	Inputs   []definition.Input   `json:"inputs,omitempty"`
}

// problemWithFixes is a problem with the changes of the text that would solve it.
type problemWithFixes struct {
	*definition.Problem
	Fixes []form.Fix `json:"fixes,omitempty"`
}

// agentPreview is an agent of the definition, for a preview.
type agentPreview struct {
	Name      string          `json:"name"`
	Title     string          `json:"title,omitempty"`
	Type      definition.Type `json:"type"`
	Depth     int             `json:"depth"`
	OutputKey string          `json:"output_key,omitempty"`
	CanExit   bool            `json:"can_exit_loop,omitempty"`
	Model     string          `json:"model,omitempty"`
	Color     string          `json:"color,omitempty"`
	Line      int             `json:"line,omitempty"`
	// Runs is how often the agent runs at most, and Calls how many requests it sends at most; null means no limit.
	Runs  definition.Bound `json:"runs"`
	Calls definition.Bound `json:"calls"`
}

// validate checks the text of a definition. The problems that it finds are the response, not an error.
func (s *Server) validate(w http.ResponseWriter, r *http.Request) error {
	text, err := s.Body(w, r, yamlTypes...)
	if err != nil {
		return err
	}
	file, err := s.intendedFile(r)
	if err != nil {
		return err
	}
	out := &validation{Problems: []problemWithFixes{}}
	p, def, err := operations.Load(s.runs.Folder.Parts(), file, text)
	all, is := errors.AsType[definition.Problems](err)
	switch {
	case is:
	case err != nil:
		return problem.New(http.StatusUnprocessableEntity, "bad_definition", "The definition has mistakes", "%v", err)
	default:
		out.describe(def)
		all = def.Worst(definition.Assumed{}).Problems()
		if err := s.runs.Trusts(p, def, text); err != nil {
			out.Valid = false
			all = append(all, &definition.Problem{File: file, Line: 1, Column: 1, Severity: definition.SeverityError,
				Code: definition.CodeCannot, Message: problem.Of(err).Detail})
		}
	}
	for _, one := range all {
		found := problemWithFixes{one, form.FixesOf(one)}
		if wire.LanguageOf(r) == prose.Portuguese {
			found.Problem = form.ProblemInPortuguese(one)
		}
		out.Problems = append(out.Problems, found)
	}
	return s.Send(w, http.StatusOK, out)
}

// intendedFile returns the file that a text is intended for, from the name in the query. Paths in the text are relative to this file.
func (s *Server) intendedFile(r *http.Request) (string, error) {
	name := r.URL.Query().Get("name")
	if name == "" {
		return "definition.yaml", nil
	}
	if err := operations.CheckName(name); err != nil {
		return "", err
	}
	if file, _, err := s.runs.Folder.Read(name); err == nil {
		return file, nil
	}
	return operations.Places(name)[0], nil
}

// describe fills in what a preview shows of a valid definition.
func (c *validation) describe(def *definition.Definition) {
	worst := def.Worst(definition.Assumed{})
	c.Valid, c.Inputs, c.Worst, c.Stops = true, def.Inputs, &worst.Total, def.Root.Stops()
	for _, a := range worst.Agents {
		c.Agents = append(c.Agents, agentPreview{
			Name: a.Agent.Name, Title: a.Agent.DisplayName, Type: a.Agent.Type, Depth: a.Depth, OutputKey: a.Agent.OutputKey,
			CanExit: a.Agent.CanExitLoop, Model: a.Model, Color: a.Agent.Color, Line: a.Agent.Position().Line,
			Runs: a.Runs, Calls: a.Calls,
		})
	}
}

// change is one edit of a text.
type change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
	// YAML is the value as YAML text; it replaces Value.
	YAML  *string `json:"yaml"`
	Index int     `json:"index"`
	From  int     `json:"from"`
	To    int     `json:"to"`
	Name  string  `json:"name"`
}

// edit applies the changes of a form to the text of a definition. All other text stays as it is, including comments.
func (s *Server) edit(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Text    string   `json:"text"`
		Changes []change `json:"changes"`
	}
	if err := s.Read(w, r, &req); err != nil {
		return err
	}
	e, err := edit.New([]byte(req.Text))
	if err != nil {
		return err
	}
	renamed := []edit.Renaming{}
	for _, c := range req.Changes {
		var ren edit.Renaming
		var err error
		if c.YAML != nil {
			c.Value = edit.YAML(*c.YAML)
		}
		text, _ := c.Value.(string)
		switch c.Op {
		case "set":
			err = e.Set(c.Path, c.Value)
		case "remove":
			err = e.Remove(c.Path)
		case "clear":
			err = e.Clear(c.Path)
		case "insert":
			err = e.Insert(c.Path, c.Index, c.Value)
		case "move":
			err = e.Move(c.Path, c.From, c.To)
		case "duplicate":
			err = e.Duplicate(c.Path, c.Name)
		case "fix": // applies the suggestion of a problem, which names an agent and its field
			err = e.Fix(c.Path, c.Name, text)
		case "append":
			err = e.Append(c.Path, c.Name, text)
		case "rename_agent":
			ren, err = e.RenameAgent(c.Path, c.Name)
		case "rename_key":
			ren, err = e.RenameKey(c.Path, c.Name)
		default:
			return problem.Bad("there is no op %q: use set, remove, clear, insert, move, duplicate, fix, append, rename_agent or rename_key", c.Op)
		}
		if err != nil {
			return problem.New(http.StatusUnprocessableEntity, "cannot_edit", "The text cannot be changed so", "%v", err)
		}
		if strings.HasPrefix(c.Op, "rename_") {
			renamed = append(renamed, ren)
		}
	}
	return s.Send(w, http.StatusOK, map[string]any{"text": string(e.Bytes()), "renamed": renamed})
}

func (s *Server) schema(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/schema+json")
	_, _ = w.Write(definition.Schema())
	return nil
}

// fields sends the fields of a form for definitions, the codes of problems, and the colors.
func (s *Server) fields(w http.ResponseWriter, r *http.Request) error {
	all := form.Fields
	if wire.LanguageOf(r) == prose.Portuguese {
		all = form.FieldsInPortuguese
	}
	w.Header().Set("Vary", "Accept-Language")
	return s.Send(w, http.StatusOK, map[string]any{"fields": all(), "codes": definition.Codes, "colors": definition.Colors()})
}

// outline sends what a form shows of the text of a definition. The problems in the text are part of the response, not an error.
func (s *Server) outline(w http.ResponseWriter, r *http.Request) error {
	text, err := s.Body(w, r, yamlTypes...)
	if err != nil {
		return err
	}
	file, err := s.intendedFile(r)
	if err != nil {
		return err
	}
	o := form.Read(file, text, definition.Options{FS: s.runs.Folder.Parts()})
	if p := s.runs.Refuses(file, text); p != nil {
		o.Refuse(p.Agent, p.Field, p.Error())
	}
	o.Models(s.cfg.Getenv)
	if wire.LanguageOf(r) == prose.Portuguese {
		o.InPortuguese()
	}
	return s.Send(w, http.StatusOK, o)
}

// complete sends what can be written at a line and a column of a text.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Text   string `json:"text"`
		Line   int    `json:"line"`
		Column int    `json:"column"`
	}
	if err := s.Read(w, r, &req); err != nil {
		return err
	}
	options := form.Complete(req.Text, req.Line, req.Column)
	if options == nil {
		options = []form.Option{}
	}
	if wire.LanguageOf(r) == prose.Portuguese {
		for i := range options {
			options[i].Doc = form.DocInPortuguese(options[i].Doc)
		}
	}
	return s.Send(w, http.StatusOK, map[string]any{"options": options})
}

// Limits of a try.
const (
	tryText   = 64 << 10         // the most bytes of the definition
	tryTime   = 15 * time.Second // how long a try may take
	tryMost   = 2                // how many tries run at once
	tryAnswer = 20_000           // the most characters of the answer that are sent
)

// loopTrial is the result of a loop in a try, with its chart and its ledger.
type loopTrial struct {
	rehearsal.TriedLoop
	Shown runpage.Loop `json:"shown"`
	// Ended is true if the loop has stopped. Shown gives the reason.
	Ended      bool `json:"ended"`
	Iterations int  `json:"iterations"`
}

// try runs a definition without a model. A script answers in place of models, programs, servers and people, so that nothing
// leaves the process. The run is not stored.
func (s *Server) try(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Text   string           `json:"text"`
		Course rehearsal.Course `json:"course"`
		Input  string           `json:"input"`
		State  map[string]any   `json:"state"`
	}
	if err := s.Read(w, r, &req); err != nil {
		return err
	}
	switch {
	case req.Course != "" && !slices.Contains(rehearsal.Courses(), req.Course):
		return problem.Bad("course %q: use one of %q", req.Course, rehearsal.Courses())
	case len(req.Text) > tryText:
		return problem.New(http.StatusRequestEntityTooLarge, "too_large", "The definition is too large to be tried",
			"it has %d bytes, and the limit is %d", len(req.Text), tryText)
	}
	leave, err := tryPlace(s.places.tries, problem.New(http.StatusTooManyRequests, "busy", "Others are trying something", "try again soon").
		With("Retry-After", "2"))
	if err != nil {
		return err
	}
	defer leave()
	_, def, err := operations.Load(s.runs.Folder.Parts(), "definition.yaml", []byte(req.Text))
	if err != nil {
		return err
	}
	values, err := operations.AsTexts(req.State)
	if err != nil {
		return err
	}
	if req.Input == "" {
		req.Input = def.Query
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), tryTime, errTryTime)
	defer cancel()
	tried, err := rehearsal.Try(ctx, def, rehearsal.TryConfig{Course: req.Course, Input: req.Input, Values: values})
	switch {
	case errors.Is(err, errTryTime):
		return problem.New(http.StatusUnprocessableEntity, "try_too_long", "The try takes too long",
			"it was ended after %s", tryTime)
	case err != nil:
		return operations.CannotBuild(err)
	}
	out := struct {
		*rehearsal.Tried
		Loops []loopTrial `json:"loops"`
	}{tried, []loopTrial{}}
	tried.Answer, tried.Error = brief.Clip(tried.Answer, tryAnswer), brief.Clip(tried.Error, tryAnswer)
	lang := wire.LanguageOf(r)
	for _, l := range tried.Loops {
		step := &progress.Step{Name: l.Name, Address: session.Address(l.Name), Status: progress.StatusCompleted, Loop: l.Loop}
		one := loopTrial{TriedLoop: l, Ended: l.Loop.Stop != nil, Iterations: len(l.Loop.Iterations)}
		one.Shown = runpage.LoopOf(step, &progress.Tree{Root: step, Now: l.Elapsed}, lang)
		if one.Ended {
			one.Iterations = l.Loop.Stop.Iteration
		}
		out.Loops = append(out.Loops, one)
	}
	return s.SendMasked(w, http.StatusOK, out)
}

var errTryTime = errors.New("the time of the try is over")
