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

// What a coding agent knows of its earlier iterations.
const (
	// ConversationFresh begins a new conversation each time.
	ConversationFresh = "fresh"
	// ConversationContinue goes on with a copy of the conversation of the last time that the step succeeded. Which one that
	// is, is a value of the state: a rollback, a fork and a resumed run go back to the conversation
	// that belongs to their state, which has nothing of what was undone, nor of attempts that have failed. A program that does
	// not have the conversation any more, or not on this machine, begins a new one: the result's continued is null, and the
	// step is warned.
	//
	// A program that speaks the Agent Client Protocol copies the conversation if it offers session/fork. If it offers
	// session/load only, it goes on with the conversation itself as long as that is what belongs to the state: the prompts
	// that the program gives back must be those of the state, and no others. If they are not, it begins a new one. A program
	// that offers neither is a [*ConversationError].
	ConversationContinue = "continue"
)

// continues reports whether the program goes on with its conversation.
func (c *CLI) continues() bool { return c.Conversation == ConversationContinue }

// ACPKeeps says how a program of CLI.ACP goes on with its conversation, as a predicate of it. Of one that is not known, only the
// program itself can tell.
func ACPKeeps(program string) string {
	if p := codingcli.Speakers[program]; p != nil {
		return p.Keeps
	}
	return "goes on with its conversation only if it offers session/fork or session/load, which it tells when it runs"
}

// conversationKey is the state key of the conversation of an agent.
func conversationKey(agent string) string { return drive.KeyPrefixConversation + agent }

// conversation is the value of a conversationKey; zero is none.
type conversation struct {
	ID    string `json:"session"`
	Asked string `json:"asked,omitempty"` // with ACP, the prompts in it
	codingcli.Total
}

// conversation is the one that the agent goes on with.
func (a *CommandAgent) conversation(ctx agent.InvocationContext) (c conversation) {
	if !a.cfg.CLI.continues() {
		return c
	}
	v, err := drive.At(ctx).State().Get(conversationKey(a.cfg.Name))
	if err != nil {
		return c
	}
	data, err := json.Marshal(v)
	if err != nil || json.Unmarshal(data, &c) != nil || !a.cfg.CLI.isConversation(c.ID) { // somebody else wrote it
		return conversation{}
	}
	return c
}

// isConversation reports whether a text may be the ID of a conversation. Without ACP it becomes an argument, and is no option.
func (c *CLI) isConversation(id string) bool {
	if c.ACP != nil {
		return id != "" && len(id) <= 200
	}
	return id != "" && len(id) <= 100 && id[0] != '-' &&
		strings.Trim(id, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// keeps is what the state keeps of a conversation with which the next iteration can go on.
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

// renews notes that a coding agent begins a new conversation in place of the one to go on with, and why.
func (p *process) renews(why string) {
	p.renewed = fmt.Sprintf("it begins a new conversation in place of %s: %s", p.before.ID, why)
	p.before = conversation{}
}

// ConversationError says that a program cannot go on with its conversations.
type ConversationError struct {
	// Program is the program's name.
	Program string
}

func (e *ConversationError) Error() string {
	return e.Program + ": it cannot go on with a conversation, as it offers neither session/fork nor session/load " +
		"of the Agent Client Protocol; write conversation: fresh"
}

// Permanent returns true: another attempt is useless.
func (e *ConversationError) Permanent() bool { return true }

// goesOn runs the command for the call of a step. A coding agent that does not have its conversation any more begins a
// new one.
func (a *CommandAgent) goesOn(ctx agent.InvocationContext, p *process, root string,
	yield func(*session.Event, error) bool) (outcome, error) {
	got, err := p.shown(ctx, root, yield)
	if p.fresh != nil && err == nil && a.cfg.CLI.program().Read([]byte(got.Stdout), got.Code).Lost {
		p.Args, p.fresh = p.fresh, nil
		p.renews("the program does not have it")
		got, err = p.shown(ctx, root, yield)
	}
	return a.outcome(ctx, p)(got, err)
}
