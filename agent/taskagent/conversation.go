// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/session"
)

// The values of [CLI.Conversation]. They decide whether a coding agent remembers its earlier
// iterations.
const (
	// ConversationFresh begins a new conversation each time.
	ConversationFresh = "fresh"
	// ConversationContinue continues a copy of the conversation from the last time that the step succeeded. The state names
	// that conversation. So a rollback, a fork and a resumed run continue the conversation that belongs to their state,
	// without undone work and failed attempts. A program that no longer has the conversation, or does not have it on this
	// machine, begins a new one; the result's continued is then null, and the step has a warning.
	//
	// A program that speaks the Agent Client Protocol copies the conversation if it offers session/fork. If it offers
	// session/load only, it continues the conversation itself, provided that the prompts which the program returns are
	// exactly those of the state. If they are not, it begins a new conversation. For a program that offers neither, the step
	// fails with a [*ConversationError].
	ConversationContinue = "continue"
)

// continues reports whether the program continues its earlier conversation.
func (c *CLI) continues() bool { return c.Conversation == ConversationContinue }

// ACPKeeps returns how a program of CLI.ACP continues its conversation, as the predicate of a sentence. For an unknown program
// the text says that only the program itself can tell.
func ACPKeeps(program string) string {
	if p := codingcli.Speakers[program]; p != nil {
		return p.Keeps
	}
	return "goes on with its conversation only if it offers session/fork or session/load, which it tells when it runs"
}

// conversationKey returns the state key of an agent's conversation.
func conversationKey(agent string) string { return drive.KeyPrefixConversation + agent }

// conversation is the value of a conversationKey. The zero value stands for no conversation.
type conversation struct {
	ID    string `json:"session"`
	Asked string `json:"asked,omitempty"` // with ACP, a hash of the prompts in it
	codingcli.Total
}

// conversation returns the conversation that the agent continues, or the zero value if it begins a new one.
func (a *CommandAgent) conversation(ctx agent.InvocationContext) (c conversation) {
	if !a.cfg.CLI.continues() {
		return c
	}
	v, ok := drive.At(ctx).Lookup(conversationKey(a.cfg.Name))
	if !ok {
		return c
	}
	data, err := json.Marshal(v)
	if err != nil || json.Unmarshal(data, &c) != nil || !a.cfg.CLI.isConversation(c.ID) { // another program wrote it
		return conversation{}
	}
	return c
}

// isConversation reports whether a text may be the ID of a conversation. Without ACP the ID becomes an argument of the program,
// so it must not look like an option.
func (c *CLI) isConversation(id string) bool {
	if c.ACP != nil {
		return id != "" && len(id) <= 200
	}
	return id != "" && len(id) <= 100 && id[0] != '-' &&
		strings.Trim(id, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// keeps returns the state change that stores the conversation, so that the next iteration can continue it. It returns nil if
// the agent does not continue conversations, or the program has reported no valid ID.
func (a *CommandAgent) keeps(r *codingcli.Report) map[string]any {
	if !a.cfg.CLI.continues() || !a.cfg.CLI.isConversation(r.Session) {
		return nil
	}
	t := r.Total
	kept := map[string]any{
		"session": r.Session, "input_tokens": t.Input, "cached_tokens": t.Cached, "output_tokens": t.Output, "cost": t.Cost,
	}
	if r.Asked != "" {
		kept["asked"] = r.Asked
	}
	return map[string]any{conversationKey(a.cfg.Name): kept}
}

// renews notes that a coding agent begins a new conversation instead of continuing p.before. why is the reason.
func (p *process) renews(why string) {
	p.renewed = fmt.Sprintf("it begins a new conversation in place of %s: %s", p.before.ID, why)
	p.before = conversation{}
}

// ConversationError reports that a program cannot continue its conversations.
type ConversationError struct {
	// Program is the program's name.
	Program string
}

// Error names the program and says what to do.
func (e *ConversationError) Error() string {
	return e.Program + ": it cannot continue a conversation, because it offers neither session/fork nor session/load " +
		"of the Agent Client Protocol; write conversation: fresh"
}

// Permanent returns true, because another attempt cannot succeed.
func (e *ConversationError) Permanent() bool { return true }

// goesOn runs the command for the call of a step. If a coding agent no longer has its conversation, goesOn runs it again
// with a new one.
func (a *CommandAgent) goesOn(ctx agent.InvocationContext, p *process, root string,
	yield func(*session.Event, error) bool) (outcome, error) {
	got, err := p.runAndShow(ctx, root, yield)
	if p.fresh != nil && err == nil && a.cfg.CLI.program().Read([]byte(got.Stdout), got.Code).Lost {
		p.Args, p.fresh = p.fresh, nil
		p.renews("the program does not have it")
		got, err = p.runAndShow(ctx, root, yield)
	}
	return a.outcome(ctx, p)(got, err)
}
