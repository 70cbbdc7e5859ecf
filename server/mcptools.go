// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// waitArgs has the arguments that decide whether, and how long, a tool waits for a run.
type waitArgs struct {
	Wait    *bool `json:"wait,omitempty" jsonschema:"false returns at once; the default waits until the run has ended, is paused or asks a person"`
	Seconds uint  `json:"seconds,omitempty" jsonschema:"wait at most this long; the default, 0, has no limit"`
}

// The arguments of the tools.
type (
	listRunsArgs struct {
		Status     string `json:"status,omitempty" jsonschema:"only runs with this status: running, waiting, paused, completed, failed, canceled or interrupted"`
		Definition string `json:"definition,omitempty" jsonschema:"only runs of the definition with this name"`
		Text       string `json:"text,omitempty" jsonschema:"only runs with this in their ID, name or error"`
		Limit      int    `json:"limit,omitempty" jsonschema:"the most runs to list, at most 500; the default is 50"`
		After      string `json:"after,omitempty" jsonschema:"what next was in the answer before"`
	}
	runArgs struct {
		operations.StartArgs
		Key string `json:"key,omitempty" jsonschema:"any text that you have not used before; a call with the same key and arguments is the same run, so that you can repeat a call that got no answer"`
		waitArgs
	}
	watchArgs struct {
		Run string `json:"run" jsonschema:"the ID of the run"`
		waitArgs
	}
	pauseArgs struct {
		Run    string `json:"run" jsonschema:"the ID of the run"`
		Reason string `json:"reason,omitempty" jsonschema:"why, for people"`
		Now    bool   `json:"now,omitempty" jsonschema:"cut off the steps that are running; a resumed run repeats them"`
	}
	cancelArgs struct {
		Run    string `json:"run" jsonschema:"the ID of the run"`
		Reason string `json:"reason,omitempty" jsonschema:"why, for people"`
	}
	resumeArgs struct {
		Run string `json:"run" jsonschema:"the ID of the run"`
		operations.ResumeRequest
		waitArgs
	}
	answerArgs struct {
		Run      string `json:"run" jsonschema:"the ID of the run"`
		Question string `json:"question,omitempty" jsonschema:"the ID of the question; it may be left out if there is only one"`
		Value    any    `json:"value" jsonschema:"the person's answer, as next says it of the question: true or false to approve, a text, or an object"`
		Reason   string `json:"reason,omitempty" jsonschema:"the person's comment"`
		waitArgs
	}
)

// The results of the tools.
type (
	definitionList struct {
		Definitions []definitionEntry `json:"definitions"`
	}
	definitionEntry struct {
		Name        string             `json:"name"`
		Title       string             `json:"title,omitempty"`
		Description string             `json:"description,omitempty"`
		Type        string             `json:"type,omitempty"`
		Valid       bool               `json:"valid"`
		Inputs      []definition.Input `json:"inputs,omitempty" jsonschema:"what state can have"`
		Problem     string             `json:"problem,omitempty" jsonschema:"why it is not valid"`
	}
	runList struct {
		Runs []runEntry `json:"runs"`
		Next string     `json:"next,omitempty" jsonschema:"give it as after for more runs"`
	}
	runEntry  struct{ runlog.Row }
	runResult struct {
		runEntry
		Result string `json:"result,omitempty" jsonschema:"what the run has made, when it has ended"`
		Next   string `json:"next,omitempty" jsonschema:"what can be done now"`

		hasWaited bool // the call has waited until the run ended, paused or asked, or until its time was over
	}
)

// leaveNote is the end of the description of each tool that waits for a run.
const leaveNote = " If you cancel the call, or leave, the run goes on: watch follows it, and the tool cancel ends it."

func (s *Server) addTools(m *mcp.Server) {
	addTool(s, m, "list_definitions", "List definitions", readOnlyTool, "List the definitions that can be run, with their inputs.",
		s.toolDefinitions)
	addTool(s, m, "list_runs", "List runs", readOnlyTool, "List runs, the newest first.", s.toolRuns)
	addTool(s, m, "run", "Run a definition", changingTool, "Run a definition. The call waits until the run has ended, is paused or asks a "+
		"person, and returns its result and why it stopped, or the question; with wait: false it returns the run's ID at once. "+
		"It sends progress for each iteration."+leaveNote, s.toolRun)
	addTool(s, m, "watch", "Watch a run", readOnlyTool, "Tell how a run stands, and wait until it has ended, is paused or asks a person. The call "+
		"sends progress for each iteration."+leaveNote, s.toolWatch)
	addTool(s, m, "pause", "Pause a run", changingTool, "Ask a run to pause when its running steps have ended. resume continues it.", s.toolPause)
	addTool(s, m, "resume", "Resume a run", changingTool, "Continue a run that is paused, interrupted or canceled, one that failed, with retry, "+
		"or one that a limit stopped, with add_iterations or limits. The call waits as run does."+leaveNote, s.toolResume)
	addTool(s, m, "cancel", "Cancel a run", endingTool, "End a run now. resume can continue it later.", s.toolCancel)
	addTool(s, m, "answer", "Answer a question", changingTool, "Answer a question that a run asks a person. Ask the user: do not make up the "+
		"answer. The run goes on when it has all answers, and the call waits as run does."+leaveNote, s.toolAnswer)
}

// The annotations of tools that read, change, or end something.
var (
	readOnlyTool = mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}
	changingTool = mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)}
	endingTool   = mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)}
)

// roleOf returns the role that a tool needs.
func roleOf(does *mcp.ToolAnnotations) access.Role {
	if does.ReadOnlyHint {
		return access.Reader
	}
	return access.Operator
}

// textResult is a result of a tool, with a text for clients that do not read structured results.
type textResult interface{ text() string }

// addTool adds a tool that calls do. It returns an error of the API as an error of the tool. If a definition is not accepted,
// or if the run asks questions, the tool's result makes the client ask its user.
func addTool[In any, Out textResult](s *Server, m *mcp.Server, name, title string, does mcp.ToolAnnotations, about string,
	do func(context.Context, *mcp.CallToolRequest, *In) (Out, error)) {
	if !s.runs.Offers(!does.ReadOnlyHint) {
		return
	}
	mcp.AddTool(m, &mcp.Tool{Name: name, Title: title, Description: about, Annotations: &does},
		func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			ctx, cancel := withRequest(ctx)
			defer cancel()
			var out Out
			err := operations.Permit(ctx, roleOf(&does))
			if err == nil {
				out, err = do(ctx, req, &in)
			}
			if refused, ok := errors.AsType[*operations.NotAcceptedError](err); ok {
				asks, accepted := askConsent(req, refused)
				if asks != nil {
					return asks, out, nil
				}
				if accepted {
					if err = s.runs.Accept(ctx, refused); err == nil {
						out, err = do(ctx, req, &in)
					}
				}
			}
			if err != nil {
				p := problem.Of(err)
				if p.Status >= 500 && p.Err != nil {
					s.cfg.Log.Error("a request failed", "tool", name, "error", credential.Masked(p.Detail))
				}
				return nil, out, toolError(p)
			}
			if t, ok := any(out).(*runResult); ok {
				if asks := askUser(req, t); asks != nil && s.runs.Offers(true) {
					return asks, out, nil
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: out.text()}}}, out, nil
		})
}

func (s *Server) toolDefinitions(context.Context, *mcp.CallToolRequest, *struct{}) (*definitionList, error) {
	all, err := s.runs.Definitions()
	if err != nil {
		return nil, err
	}
	out := &definitionList{Definitions: []definitionEntry{}}
	for _, d := range all {
		one := definitionEntry{Name: d.Name, Title: d.Title, Description: d.Description, Type: string(d.Type), Valid: d.Valid, Inputs: d.Inputs}
		if !d.Valid && len(d.Problems) > 0 {
			one.Problem = d.Problems[0].Error()
		}
		out.Definitions = append(out.Definitions, one)
	}
	return out, nil
}

func (t *definitionList) text() string {
	if len(t.Definitions) == 0 {
		return "There are no definitions in the folder. Give run the text of one."
	}
	var b strings.Builder
	for _, d := range t.Definitions {
		b.WriteString(d.Name)
		if d.Description != "" {
			b.WriteString(": " + quoteAll(d.Description))
		}
		sep := "; inputs: "
		for _, in := range d.Inputs {
			b.WriteString(sep + in.Name + " (" + string(in.Type))
			sep = ", "
			if in.Required {
				b.WriteString(", required")
			}
			if in.Choices != nil {
				b.WriteString(", one of " + quoteAll(in.Choices...))
			}
			b.WriteString(")")
		}
		if !d.Valid {
			b.WriteString(" (it has mistakes: " + quoteAll(d.Problem) + ")")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *Server) toolRuns(ctx context.Context, _ *mcp.CallToolRequest, in *listRunsArgs) (*runList, error) {
	statuses, err := statusesOf([]string{in.Status})
	if err != nil {
		return nil, err
	}
	want := &filter{
		statuses: statuses, name: in.Definition, text: strings.ToLower(in.Text), after: in.After, limit: pageSize,
	}
	if in.Limit < 0 {
		return nil, problem.Bad("limit %d: give a number of at least 1", in.Limit)
	}
	if in.Limit > 0 {
		want.limit = min(in.Limit, pageMost)
	}
	return s.runList(ctx, want)
}

func (s *Server) runList(ctx context.Context, want *filter) (*runList, error) {
	page, err := s.listPage(ctx, want)
	if err != nil {
		return nil, err
	}
	out := &runList{Runs: []runEntry{}, Next: page.next}
	for _, k := range page.runs {
		out.Runs = append(out.Runs, runEntry{*k.row})
	}
	return out, nil
}

func (t *runList) text() string {
	if len(t.Runs) == 0 {
		return "There are no such runs."
	}
	var b strings.Builder
	for _, r := range t.Runs {
		b.WriteString(r.sentence() + "\n")
	}
	if t.Next != "" {
		b.WriteString("There are more: call list_runs with after " + t.Next + ".\n")
	}
	return b.String()
}

func (s *Server) toolRun(ctx context.Context, req *mcp.CallToolRequest, in *runArgs) (*runResult, error) {
	if out, again, err := s.continueCall(ctx, req, &in.waitArgs); again {
		return out, err
	}
	start := &operations.StartRequest{StartArgs: in.StartArgs}
	text, err := json.Marshal(start)
	if err != nil {
		return nil, err
	}
	if len(in.Key) > wire.KeyMost {
		return nil, problem.Bad("the key has more than %d characters", wire.KeyMost)
	}
	// A call that was taken is carried out even if its client has gone.
	if _, err := s.runs.Start(context.WithoutCancel(ctx), start, in.Key, text); err != nil {
		return nil, err
	}
	return s.waitForRun(ctx, req, start.ID, &in.waitArgs)
}

func (s *Server) toolWatch(ctx context.Context, req *mcp.CallToolRequest, in *watchArgs) (*runResult, error) {
	if out, again, err := s.continueCall(ctx, req, &in.waitArgs); again {
		return out, err
	}
	return s.waitForRun(ctx, req, in.Run, &in.waitArgs)
}

func (s *Server) toolPause(ctx context.Context, _ *mcp.CallToolRequest, in *pauseArgs) (*runResult, error) {
	if err := s.runs.Pause(context.WithoutCancel(ctx), in.Run, in.Reason, in.Now); err != nil {
		return nil, err
	}
	return s.runResult(ctx, in.Run)
}

func (s *Server) toolCancel(ctx context.Context, _ *mcp.CallToolRequest, in *cancelArgs) (*runResult, error) {
	if err := s.runs.Cancel(context.WithoutCancel(ctx), in.Run, in.Reason); err != nil {
		return nil, err
	}
	return s.runResult(ctx, in.Run)
}

func (s *Server) toolResume(ctx context.Context, req *mcp.CallToolRequest, in *resumeArgs) (*runResult, error) {
	if out, again, err := s.continueCall(ctx, req, &in.waitArgs); again {
		return out, err
	}
	if err := s.runs.Resume(context.WithoutCancel(ctx), in.Run, &in.ResumeRequest); err != nil {
		return nil, err
	}
	return s.waitForRun(ctx, req, in.Run, &in.waitArgs)
}

func (s *Server) toolAnswer(ctx context.Context, req *mcp.CallToolRequest, in *answerArgs) (*runResult, error) {
	if out, again, err := s.continueCall(ctx, req, &in.waitArgs); again {
		return out, err
	}
	value, err := json.Marshal(in.Value)
	if err != nil {
		return nil, err
	}
	a := &operations.AnswerRequest{Question: in.Question, Value: value, Reason: in.Reason, ClaimedBy: callerOf(req)}
	if err := s.runs.Answer(context.WithoutCancel(ctx), in.Run, a); err != nil {
		return nil, err
	}
	return s.waitForRun(ctx, req, in.Run, &in.waitArgs)
}

// waitForRun waits for a run as the arguments w say, and returns its status. It sends progress to a client that wants it.
func (s *Server) waitForRun(ctx context.Context, req *mcp.CallToolRequest, id string, w *waitArgs) (*runResult, error) {
	if w.Wait != nil && !*w.Wait {
		return s.runResult(ctx, id)
	}
	waiting := ctx
	if w.Seconds > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, time.Duration(min(w.Seconds, 1<<30))*time.Second)
		defer cancel()
	}
	var tell func(*loopProgress) error
	if token := req.Params.GetProgressToken(); token != nil {
		tell = func(p *loopProgress) error {
			return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(p.iterations), Total: float64(p.most), Message: p.message,
			})
		}
	}
	if err := s.waitIdle(waiting, id, tell); err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
		return nil, err
	}
	out, err := s.runResult(ctx, id)
	if out != nil {
		out.hasWaited = true
	}
	return out, err
}

// runResult returns the present status of a run, with its result if it has ended.
func (s *Server) runResult(ctx context.Context, id string) (*runResult, error) {
	f, err := s.follow(ctx, id)
	if err != nil {
		return nil, err
	}
	defer f.leave()
	row, err := s.runs.Row(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &runResult{runEntry: runEntry{*row}}
	if mark.RunStatus(row.Status).IsFinal() {
		if err := s.catchUp(ctx, f); err != nil {
			return nil, err
		}
		if out.Result, err = f.answer(); err != nil {
			return nil, err
		}
	}
	if s.runs.Offers(true) {
		out.Next = out.nextActions()
	}
	return out, nil
}

// answer returns the final answer of the run.
func (f *feed) answer() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.watch.Fold.Answer()
	if err := f.whole.Err; err != nil {
		*f.whole = runlog.Wholes{Fetch: f.view} // the next call tries again to read the store
		return "", err
	}
	return text, f.err
}

// nextActions returns a text with what a client can do next about the run; "" if nothing.
func (t *runEntry) nextActions() string {
	var all []string
	switch t.Status {
	case string(mark.RunRunning):
		return "watch waits for it; pause and cancel stop it"
	case string(mark.RunIsPaused), runlog.StatusInterrupted, string(mark.RunCanceled):
		all = append(all, "resume continues it")
	case string(mark.RunFailed):
		return "resume with retry: true tries the failed step again"
	case string(mark.RunCompleted):
		if loop.StopReason(t.StopReason).Limit() {
			return "resume with add_iterations continues it"
		}
		return ""
	}
	for _, q := range t.Waits {
		all = append(all, fmt.Sprintf("show the user this question, and call answer with run %q, question %q and a value that is %s",
			t.ID, q.ID, valueFormat(&q)))
	}
	return strings.Join(all, "; ")
}

// valueFormat describes the value with which the tool answer answers a question.
func valueFormat(q *mark.Question) string {
	switch q.Kind {
	case mark.AskApproval:
		return "true or false"
	case mark.AskEdit:
		return "an object with new values for some of the keys"
	case mark.AskConfirmation:
		return `{"confirmed": true} or {"confirmed": false}`
	case mark.AskResolution:
		if q.IsEdited() {
			return `{"action": A}, with A one of ` + strings.Join(q.Options, ", ")
		}
		return `{"action": "retry"}, {"action": "skip"} or {"action": "result", "result": TEXT}`
	case mark.AskForm:
		return `{"action": "accept", "content": FIELDS} with the fields of the question's form, {"action": "decline"} or {"action": "cancel"}`
	}
	if len(q.Options) > 0 {
		return "one of " + quoteAll(q.Options...)
	}
	return "a text"
}

// sentence returns the status of the run in one sentence.
func (t *runEntry) sentence() string {
	var text strings.Builder
	text.WriteString("Run " + t.ID)
	if t.Name != "" {
		text.WriteString(" of " + t.Name)
	}
	text.WriteString(" is " + t.Status)
	if t.Iteration > 0 {
		text.WriteString(", iteration " + strconv.Itoa(t.Iteration))
	}
	if t.Score != nil {
		text.WriteString(", score " + brief.Score(*t.Score))
	}
	if t.StopReason != "" {
		text.WriteString(", stopped by " + t.StopReason)
	}
	for _, why := range []string{t.Error, t.Paused} {
		if why != "" {
			text.WriteString(": " + quoteAll(why))
		}
	}
	return text.String() + "."
}

func (t *runResult) text() string {
	var text strings.Builder
	text.WriteString(t.sentence())
	for _, q := range t.Waits {
		text.WriteString("\nQuestion " + q.ID + ": " + quoteAll(q.Text))
		if len(q.Options) > 0 {
			text.WriteString(" (" + quoteAll(q.Options...) + ")")
		}
	}
	if t.Next != "" {
		text.WriteString("\nNext: " + t.Next + ".")
	}
	if t.Result != "" {
		mark := "--- data " + rand.Text()[:8] + " ---" // random, so that the result cannot contain it on purpose
		text.WriteString("\nResult:\n" + mark + "\n" + t.Result + "\n" + mark)
	}
	return text.String()
}

// quoteAll returns the texts in quotes, each without line breaks, so that a model sees that they are data.
func quoteAll(texts ...string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = strconv.Quote(text)
	}
	return strings.Join(all, ", ")
}
