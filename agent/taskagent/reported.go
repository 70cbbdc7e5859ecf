// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// ofCall lists the fields of a CLI's result that differ between any two calls.
var ofCall = []string{"session", "continued", "turns", "input_tokens", "output_tokens", "cost", "stderr"}

// CLIResult lists the fields of a CLI's result.
func CLIResult() []string {
	return []string{
		"outcome", "said", "session", "continued", "turns", "input_tokens", "output_tokens", "cost", "denied", "denied_commands",
		"files", "more_files", "exit_code", "stderr",
	}
}

// metadataUsage is the key in an event's CustomMetadata of the coding agent's usage, a [budget.Usage].
const metadataUsage = "refrain:usage"

// cliOutcome turns the output of a coding agent into the task's outcome. err is the reason for which Refrain ended the program;
// nil if it ended by itself.
func (a *CommandAgent) cliOutcome(ctx agent.InvocationContext, p *process, got completion, err error) (outcome, error) {
	c := a.cfg.CLI
	if err != nil && !got.Started {
		return outcome{}, err
	}
	unkept := p.keepTranscript(ctx, got.Script)
	code := got.Code
	if err != nil { // Refrain ended the program, so its exit code has no other meaning
		code = 0
	}
	r := c.program().Read([]byte(got.Stdout), code)
	if r.Renewed != "" {
		p.renews(r.Renewed)
	}
	r.Since(p.before.Total)
	if r.Outcome == codingcli.Partial && len(r.Denied) > 0 && c.Denied == "fail" {
		r.Outcome = codingcli.Denied
	}
	tooMany := a.books(ctx, p, &r)
	if err != nil && ctx.Err() != nil {
		return outcome{}, err
	}
	if r.Outcome == codingcli.OK && answeredNothing(&r) {
		r.Outcome = codingcli.Failed
	}
	called := r.Outcome
	if called == codingcli.NoResult {
		switch {
		case got.Idle:
			called = codingcli.Idle
		case err == nil && (got.Code > 0 || c.ACP == nil && got.Code < 0): // Refrain kills a program with ACP after its answer
			called = codingcli.Crashed
		}
	}
	out := outcome{words: trimNewline(r.Answer), used: &r.Usage, model: r.Model, result: map[string]any{
		"outcome": string(called), "said": r.Answer, "session": r.Session, "denied": r.Denied, "denied_commands": r.Commands,
		"continued": known(p.before.ID != "", p.before.ID),
		"turns":     known(r.Turns > 0, r.Turns), "input_tokens": known(!r.Usage.Estimated, r.Usage.InputTokens),
		"output_tokens": known(!r.Usage.Estimated, r.Usage.OutputTokens), "cost": known(r.Usage.Cost != nil, r.Usage.Cost),
		"files": known(r.Files != nil, r.Files), "more_files": known(r.Files != nil, r.MoreFiles),
		"exit_code": known(c.ACP == nil || got.Code >= 0, got.Code), "stderr": tail(got.Stderr),
	}}
	out.output, out.warning = out.words, p.renewed
	if tooMany != nil {
		return out, tooMany
	}
	if r.Unable {
		return out, &ConversationError{Program: c.name()}
	}
	switch ok := r.Outcome == codingcli.OK || r.Outcome == codingcli.Partial || r.Outcome == codingcli.Denied && c.Denied == "allow"; {
	case ok: // also if the program hung after its result and was ended
		out.sets = a.keeps(&r)
		out.warning = strings.Join(slices.DeleteFunc([]string{out.warning, c.refused(&r), unkept}, func(s string) bool { return s == "" }), "; ")
		return out, nil
	case err != nil:
		out.unfinished = called == codingcli.Idle
		return out, err
	}
	out.unfinished = slices.Contains([]codingcli.Outcome{codingcli.Idle, codingcli.Crashed, codingcli.NoResult, codingcli.Failed}, called)
	failed := &CLIError{Program: c.name(), Outcome: called, Message: tail(r.Answer), Denied: r.Denied}
	if r.Outcome == codingcli.Limited {
		failed.Until, out.limit = r.Until, &limit{until: r.Until, least: r.Wait}
	}
	if r.Outcome == codingcli.NoResult {
		failed.Message = cmp.Or(tail(got.Stderr), got.State)
	}
	return out, failed
}

// answeredNothing reports whether the model did not answer a program that reports success. Then the program's message is an
// error of its provider, as Qwen Code prints it, or the program has used no tokens.
func answeredNothing(r *codingcli.Report) bool {
	if strings.HasPrefix(strings.TrimSpace(r.Answer), "[API Error") {
		return true
	}
	return !r.Usage.Estimated && r.Usage.Calls > 0 && r.Usage.InputTokens == 0 && r.Usage.CachedTokens == 0 && r.Usage.OutputTokens == 0
}

// refused returns a warning that names the first three commands that the program was not allowed to run, or "" if there are none.
func (c *CLI) refused(r *codingcli.Report) string {
	if len(r.Commands) == 0 {
		return ""
	}
	shown := r.Commands[:min(3, len(r.Commands))]
	text := fmt.Sprintf("%s was not allowed to run %s", c.name(), strings.Join(shown, ", "))
	if more := len(r.Commands) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "; allow a command with allow in the definition, or with --allow 'COMMAND' of refrain loop"
}

// known returns v if is is true, and nil otherwise, for a value that the program has not reported.
func known[T any](is bool, v T) any {
	if !is {
		return nil
	}
	return v
}

// spent writes the model and the usage of a coding agent into an event.
func (out *outcome) spent(ev *session.Event) {
	if out.used == nil {
		return
	}
	u := *out.used
	ev.ModelVersion, ev.CustomMetadata = out.model, map[string]any{metadataUsage: u}
	if u.Estimated {
		return
	}
	ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount: int32(u.InputTokens), CachedContentTokenCount: int32(u.CachedTokens),
		CandidatesTokenCount: int32(u.OutputTokens), TotalTokenCount: int32(u.InputTokens + u.OutputTokens),
	}
	model.SetCacheWrites(ev.UsageMetadata, u.CacheWriteTokens, u.CacheWrite1hTokens)
}

// books adds the usage of a coding agent to the run's budget, and releases its reservation. It returns an error if the run
// has made too many requests to models.
func (a *CommandAgent) books(ctx agent.InvocationContext, p *process, r *codingcli.Report) error {
	r.Model = cmp.Or(r.Model, a.cfg.CLI.Model, a.cfg.CLI.name())
	r.Usage = ctx.RunConfig().Prices.Priced(r.Model, r.Usage)
	drive.At(ctx).Budget().Book(r.Usage)
	p.room.Release()
	for range r.Usage.Calls - 1 { // asCLI has counted the first one
		if err := drive.At(ctx).CountModelCall(); err != nil {
			return fmt.Errorf("each of the %d requests of %s to its model counts: %w", r.Usage.Calls, a.cfg.CLI.name(), err)
		}
	}
	return nil
}

var (
	_ drive.Describer   = (*CommandAgent)(nil)
	_ drive.Reporter    = (*CommandAgent)(nil)
	_ drive.UsageReader = (*CommandAgent)(nil)
)

// Compared returns the result of a coding agent without the fields that differ between any two calls. It returns any other
// value as it is.
func (a *CommandAgent) Compared(ev *session.Event, v any) any {
	fields, ok := v.(map[string]any)
	if _, report := fields["outcome"]; !ok || !report || ev.CustomMetadata[metadataUsage] == nil {
		return v
	}
	fields = maps.Clone(fields)
	maps.DeleteFunc(fields, func(name string, _ any) bool { return slices.Contains(ofCall, name) })
	return fields
}

// InterruptedUsage returns the usage of an attempt that was cut off because this process ended. For a coding agent it is an estimate of
// one call, because the true usage is unknown; for any other command it is zero.
func (a *CommandAgent) InterruptedUsage() (used budget.Usage) {
	if a.cfg.CLI != nil {
		used = budget.Usage{Calls: 1, Estimated: true}
	}
	return used
}

// HasAnswer reports whether an event has what a coding agent has answered, so that its step has a transcript.
func HasAnswer(ev *session.Event) bool {
	return ev.Mark == nil && ev.CustomMetadata[metadataUsage] != nil
}

// Used returns the usage of a coding agent for a logged event, and zero for any other event.
func (a *CommandAgent) Used(ev *session.Event, _ budget.Prices) (used budget.Usage) {
	if ev.Mark != nil && ev.Mark.Kind != mark.KindLimited || ev.CustomMetadata[metadataUsage] == nil {
		return used
	}
	data, err := json.Marshal(ev.CustomMetadata[metadataUsage])
	if err == nil {
		err = json.Unmarshal(data, &used)
	}
	if err != nil { // another program wrote it
		return budget.Usage{Calls: 1, Estimated: true}
	}
	return used
}
