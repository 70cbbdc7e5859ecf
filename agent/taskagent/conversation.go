// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"encoding/json"
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
	// not have the conversation any more, or not on this machine, begins a new one, and the result's continued is null.
	ConversationContinue = "continue"
)

// continues reports whether the program goes on with its conversation.
func (c *CLI) continues() bool { return c.Conversation == ConversationContinue }

// conversationKey is the state key of the conversation of an agent.
func conversationKey(agent string) string { return drive.KeyPrefixConversation + agent }

// conversation is the value of a conversationKey; zero is none.
type conversation struct {
	ID string `json:"session"`
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
	if err != nil || json.Unmarshal(data, &c) != nil || !isConversation(c.ID) { // somebody else wrote it
		return conversation{}
	}
	return c
}

// isConversation reports whether a text may be the ID of a conversation. It becomes an argument, and is no option.
func isConversation(id string) bool {
	return id != "" && len(id) <= 100 && id[0] != '-' &&
		strings.Trim(id, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// keeps is what the state keeps of a conversation with which the next iteration can go on.
func (a *CommandAgent) keeps(r *codingcli.Report) map[string]any {
	if !a.cfg.CLI.continues() || !isConversation(r.Session) {
		return nil
	}
	t := r.Total
	return map[string]any{conversationKey(a.cfg.Name): map[string]any{
		"session": r.Session, "input_tokens": t.Input, "cached_tokens": t.Cached, "output_tokens": t.Output, "cost": t.Cost,
	}}
}

// goesOn runs the command for the call of a step. A coding agent that does not have its conversation any more begins a
// new one.
func (a *CommandAgent) goesOn(ctx agent.InvocationContext, p *process, root string,
	yield func(*session.Event, error) bool) (outcome, error) {
	got, err := p.shown(ctx, root, yield)
	if p.fresh != nil && err == nil && a.cfg.CLI.program().Read([]byte(got.Stdout), got.Code).Lost {
		p.Args, p.fresh, p.before = p.fresh, nil, conversation{}
		got, err = p.shown(ctx, root, yield)
	}
	return a.outcome(ctx, p)(got, err)
}
