// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// toolResult is the result of one tool call.
type toolResult struct {
	result  map[string]any // nil if the answer comes later
	actions session.EventActions
	spent   *genai.GenerateContentResponseUsageMetadata // usage of agents that the tool called
	vain    bool                                        // the call had no effect, because the tool is unknown or its request was refused
	cut     bool                                        // the context ended before the tool answered
	crash   error                                       // a panic of an observer
}

// callTools runs the calls of one turn at the same time and returns one event with their answers,
// in the order of the calls. About has a person's confirmations of some calls, and known the
// results of calls that were made before. Pending reports that some answers come later. Calls that
// were cut off have no answer; the event names them, see [drive.MetadataInterrupted].
func (r *run) callTools(req *model.LLMRequest, calls []*genai.FunctionCall, about confirmations,
	known map[string]map[string]any) (ev *session.Event, pending bool) {
	done, end := make([]toolResult, len(calls)), drive.At(r.ctx).LogToolCalls(r.yield)
	var tasks []func(context.Context)
	for i, c := range calls {
		switch {
		case known[c.ID] != nil:
			done[i].result = known[c.ID]
		case len(calls) == 1:
			r.callTool(r.ctx, req, c, about[c.ID], &done[i])
		default:
			tasks = append(tasks, func(ctx context.Context) {
				defer agent.Recover(&done[i].crash)
				in := r.under(ctx)
				if r.callTool(in, req, c, about[c.ID], &done[i]); in.Ended() {
					r.ctx.EndInvocation()
				}
			})
		}
	}
	if tasks != nil {
		platform.RunTasks(r.ctx, tasks)
	}
	spent := end()
	for _, d := range done {
		if d.crash != nil { // panic in the agent's goroutine, as a single call does
			panic(d.crash)
		}
	}
	ev = &session.Event{Author: r.Name()}
	ev.Content = &genai.Content{Role: genai.RoleUser}
	vain := len(calls) > 0
	var cut []any
	for i, c := range calls {
		vain = vain && done[i].vain
		ev.UsageMetadata = tool.SumUsage(ev.UsageMetadata, done[i].spent)
		if done[i].cut { // actions of a call without an answer do not count
			cut = append(cut, c.ID)
			continue
		}
		merge(&ev.Actions, &done[i].actions)
		if done[i].result == nil {
			pending = true
			continue
		}
		ev.Content.Parts = append(ev.Content.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: c.ID, Name: c.Name, Response: done[i].result,
		}})
	}
	switch {
	case cut != nil:
		ev.CustomMetadata = map[string]any{drive.MetadataInterrupted: cut}
	case vain:
		ev.CustomMetadata = map[string]any{metadataVain: true}
	}
	if spent != (budget.Usage{}) {
		drive.Annotate(ev, drive.MetadataSpent, spent)
	}
	return ev, pending
}

// under returns the invocation with the context of a task.
func (r *run) under(ctx context.Context) agent.InvocationContext {
	if in, ok := ctx.(agent.InvocationContext); ok {
		return in
	}
	return r.ctx.WithContext(ctx)
}

// callIn runs one call under a context. An error becomes the call's answer, because the model can
// act on it. An error after the context has ended is no answer: it ends the run or the step, and
// the call is in doubt. callIn returns that error too.
func (r *run) callIn(in agent.InvocationContext, req *model.LLMRequest, call *genai.FunctionCall,
	answer *toolconfirmation.ToolConfirmation, done *toolResult) (failed error) {
	ctx, spent := tool.WithUsage(agent.NewToolContext(in, call.ID, &done.actions, answer))
	defer func() {
		if p := recover(); p != nil { // a callback has panicked; tool.Call recovers the panics of tools
			failed = fmt.Errorf("panic: %v", p)
			done.result = map[string]any{"error": failed.Error()}
		}
		done.spent = spent()
	}()
	f, ok := toolOf(req, call.Name).(tool.Function)
	refusal := drive.At(r.ctx).ExitRefusal()
	if !ok && isExit(call.Name) && refusal != "" { // the agent may not leave, so its request has no exit tool
		reason, _ := call.Args["reason"].(string)
		done.actions.Exit = &session.Exit{Reason: reason}
		done.refuse(refusal)
		return nil
	}
	if !ok {
		done.vain = true
		done.result, failed = r.onToolError(ctx, unknownTool(call.Name), maps.Clone(call.Args), errors.New(noSuchTool(req, call.Name)))
		if failed != nil {
			done.result = map[string]any{"error": failed.Error()}
		}
		return failed
	}
	args := maps.Clone(call.Args) // callbacks may change the arguments, but not the call in the log
	if args == nil {
		args = map[string]any{}
	}
	result, err := r.beforeTool(ctx, f, args)
	if result == nil && err == nil {
		result, err = tool.Call(ctx, f, args)
	}
	if done.cut = err != nil && r.ctx.Err() != nil; done.cut {
		return err
	}
	if err != nil {
		result, err = r.onToolError(ctx, f, args, err)
	}
	for _, cb := range r.on.AfterTool {
		other, cerr := cb(ctx, f, args, result, err)
		if cerr != nil {
			result, err = nil, cerr
			break
		}
		if other != nil {
			result, err = other, nil
			break
		}
	}
	if to := done.actions.TransferToAgent; to != "" && err == nil {
		if _, err = r.successor(to); err != nil {
			done.actions.TransferToAgent = ""
		}
	}
	if err != nil {
		result = map[string]any{"error": err.Error()}
		done.vain = endsTurn(call.Name) // such a call would have ended the turn, so the model is asked again
	}
	if result == nil && !f.IsLongRunning() && !defers(f) {
		result = map[string]any{}
	}
	done.result = result
	if refusal != "" && done.actions.AsksToLeave() && !f.IsLongRunning() {
		done.refuse(refusal)
	}
	return err
}

// defers reports whether a tool that has returned nil gives its answer later. Until then the log has no answer.
func defers(f tool.Function) bool {
	d, ok := f.(interface{ DefersResponse() bool })
	return ok && d.DefersResponse()
}

// refuse withdraws a request to leave the loop. It tells the model why, and records the refused request for the loop.
func (a *toolResult) refuse(why string) {
	x := session.Exit{Plain: true}
	if a.actions.Exit != nil {
		x = *a.actions.Exit
	}
	x.Refused = why
	a.actions.Escalate, a.actions.SkipSummarization, a.actions.Exit = false, false, &x
	a.result = map[string]any{"error": "The loop goes on: " + why +
		". Do not ask to leave it again; go on with your task."}
	a.vain = true
}

func isExit(name string) bool { return name == exitlooptool.Name || name == exitlooptool.Alias }

// toolOf returns the tool that a model calls by a name, or nil. It accepts both names of the exit
// tool, which models mix up.
func toolOf(req *model.LLMRequest, name string) any {
	if t, ok := req.Tools[name]; ok {
		return t
	}
	switch name {
	case exitlooptool.Alias:
		return req.Tools[exitlooptool.Name]
	case exitlooptool.Name:
		return req.Tools[exitlooptool.Alias]
	}
	return nil
}

// endsTurn reports whether a tool has no effect except to end the agent's turn.
func endsTurn(name string) bool {
	return isExit(name) || name == transferName
}

// unknownTool is the tool that callbacks get for a call of a tool that does not exist.
type unknownTool string

func (t unknownTool) Name() string      { return string(t) }
func (unknownTool) Description() string { return "Tool not found" }
func (unknownTool) IsLongRunning() bool { return false }

func noSuchTool(req *model.LLMRequest, name string) string {
	if len(req.Tools) == 0 {
		return fmt.Sprintf("there is no tool %q, and this agent has none", name)
	}
	names := slices.Sorted(maps.Keys(req.Tools))
	return fmt.Sprintf("there is no tool %q; the tools are: %s", name, strings.Join(names, ", "))
}

func (r *run) beforeTool(ctx agent.Context, f tool.Function, args map[string]any) (map[string]any, error) {
	for _, cb := range r.on.BeforeTool {
		if result, err := cb(ctx, f, args); result != nil || err != nil {
			return result, err
		}
	}
	return nil, nil
}

// onToolError asks the callbacks for the answer of a call that has failed. The error of a callback replaces that of the
// tool, which may have a secret that the callback hides.
func (r *run) onToolError(ctx agent.Context, f tool.Tool, args map[string]any, err error) (map[string]any, error) {
	for _, cb := range r.on.OnToolError {
		result, cerr := cb(ctx, f, args, err)
		if cerr != nil {
			return nil, cerr
		}
		if result != nil {
			return result, nil
		}
	}
	return nil, err
}

// merge adds the actions of one call to those of the others.
func merge(to, from *session.EventActions) {
	to.StateDelta = merged(to.StateDelta, from.StateDelta)
	to.ArtifactDelta = merged(to.ArtifactDelta, from.ArtifactDelta)
	to.RequestedToolConfirmations = merged(to.RequestedToolConfirmations, from.RequestedToolConfirmations)
	to.SkipSummarization = to.SkipSummarization || from.SkipSummarization
	switch { // an accepted request takes precedence over a refused one, and the first over later ones
	case from.AsksToLeave() && !to.AsksToLeave(), to.Exit == nil && !to.Escalate:
		to.Exit = from.Exit
	}
	to.Escalate = to.Escalate || from.Escalate
	if from.TransferToAgent != "" {
		to.TransferToAgent = from.TransferToAgent
	}
}

func merged[V any](to, from map[string]V) map[string]V {
	if to == nil {
		return from
	}
	maps.Copy(to, from)
	return to
}
