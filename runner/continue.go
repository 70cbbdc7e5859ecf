// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// ErrNotOpen refuses an answer to a confirmation that no agent asked for, or that has been
// answered. The message is not stored.
var ErrNotOpen = errors.New("confirmation is not open")

// targetAgent returns the agent that a message is for: the agent whose function call the message answers,
// or the agent that the user was talking to, or the root.
func (r *Runner) targetAgent(evs session.Events, msg *genai.Content) (agent.Agent, error) {
	called, err := r.askingAgent(evs, responses(msg))
	if called != nil || err != nil {
		return called, err
	}
	return r.lastSpeaker(evs), nil
}

// ambiguous returns an error for an answer to a confirmation that was asked for with two different calls, because it
// is not known which call the person has seen.
func ambiguous(evs session.Events, answers []*genai.FunctionResponse) error {
	asked := make(map[string]*genai.FunctionCall) // what a confirmation is about, by its ID
	for _, a := range answers {
		if a.Name == toolconfirmation.FunctionCallName {
			asked[a.ID] = nil
		}
	}
	for ev := range evs.All() {
		if ev.Author == "user" || ev.Content == nil {
			continue
		}
		for _, p := range ev.Content.Parts {
			if p == nil || p.FunctionCall == nil || p.FunctionCall.Name != toolconfirmation.FunctionCallName {
				continue
			}
			known, ok := asked[p.FunctionCall.ID]
			if !ok || !slices.Contains(ev.LongRunningToolIDs, p.FunctionCall.ID) {
				continue
			}
			about, err := toolconfirmation.OriginalCallFrom(p.FunctionCall)
			if err != nil {
				continue // it is about no call
			}
			if known != nil && !reflect.DeepEqual(known, about) {
				return fmt.Errorf("%w: %q was asked for with two different calls, and neither is made; ask the agent again",
					ErrNotOpen, p.FunctionCall.ID)
			}
			asked[p.FunctionCall.ID] = about
		}
	}
	return nil
}

func responses(c *genai.Content) []*genai.FunctionResponse {
	if c == nil {
		return nil
	}
	var all []*genai.FunctionResponse
	for _, p := range c.Parts {
		if p != nil && p.FunctionResponse != nil {
			all = append(all, p.FunctionResponse)
		}
	}
	return all
}

// askingAgent returns the agent whose calls the answers are for, or nil. It reads the newest events
// first.
func (r *Runner) askingAgent(evs session.Events, answers []*genai.FunctionResponse) (agent.Agent, error) {
	var confirmations, others openCalls
	for _, a := range answers {
		if a.Name != toolconfirmation.FunctionCallName {
			others = append(others, a.ID)
			continue
		}
		if _, err := toolconfirmation.AnswerFrom(a); err != nil {
			return nil, err
		}
		if slices.Contains(confirmations, a.ID) {
			return nil, fmt.Errorf("answer to confirmation %q: there are two; send one", a.ID)
		}
		confirmations = append(confirmations, a.ID)
	}
	var asked, called string
	for i := evs.Len() - 1; i >= 0 && len(confirmations)+len(others) > 0; i-- {
		ev := evs.At(i)
		if ev.Author == "user" {
			if id, ok := confirmations.answeredBy(ev); ok {
				return nil, fmt.Errorf("%w: %q has been answered; what the agent asks for now has another ID",
					ErrNotOpen, id)
			}
			continue
		}
		if called == "" && others.remove(ev, func(*genai.FunctionCall) bool { return true }) {
			called = ev.Author
		}
		// A model can write a call of that name, but not make it long-running.
		if !confirmations.remove(ev, func(c *genai.FunctionCall) bool {
			return c.Name == toolconfirmation.FunctionCallName && slices.Contains(ev.LongRunningToolIDs, c.ID)
		}) {
			continue
		}
		if asked != "" && asked != ev.Author {
			return nil, fmt.Errorf("the message answers questions of %q and of %q; answer them in two messages",
				ev.Author, asked)
		}
		asked = ev.Author
	}
	switch {
	case len(confirmations) > 0:
		return nil, fmt.Errorf("%w: no agent asked for %q; answer with the ID of the %s call that an agent yielded",
			ErrNotOpen, confirmations[0], toolconfirmation.FunctionCallName)
	case asked == "":
		return r.tree.Find(called), nil
	}
	if err := ambiguous(evs, answers); err != nil {
		return nil, err
	}
	a := r.tree.Find(asked)
	if a == nil {
		return nil, fmt.Errorf("answer to a confirmation: the agent %q that asked is no longer among %q", asked,
			r.tree.Names())
	}
	return a, nil
}

// openCalls has the IDs of calls that were not found yet.
type openCalls []string

// remove removes the IDs of an event's calls and reports whether there were any.
func (o *openCalls) remove(ev *session.Event, is func(*genai.FunctionCall) bool) (found bool) {
	if len(*o) == 0 || ev.Content == nil {
		return false
	}
	for _, p := range ev.Content.Parts {
		if p == nil || p.FunctionCall == nil || p.FunctionCall.ID == "" || !is(p.FunctionCall) {
			continue
		}
		if i := slices.Index(*o, p.FunctionCall.ID); i >= 0 {
			*o = slices.Delete(*o, i, i+1)
			found = true
		}
	}
	return found
}

// answeredBy returns one of the IDs, if an event has an answer for it.
func (o openCalls) answeredBy(ev *session.Event) (id string, ok bool) {
	for _, a := range responses(ev.Content) {
		if a.Name == toolconfirmation.FunctionCallName && slices.Contains(o, a.ID) {
			return a.ID, true
		}
	}
	return "", false
}

// lastSpeaker returns the agent that spoke last, if it and all agents above it can transfer the conversation.
// Otherwise it returns the root.
func (r *Runner) lastSpeaker(evs session.Events) agent.Agent {
	root := r.cfg.Agent
	if !returnsConversation(root) || len(root.SubAgents()) == 0 {
		return root
	}
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		if ev.Author == "user" || ev.Content == nil || len(ev.Content.Parts) == 0 {
			continue
		}
		if a := r.tree.Find(ev.Author); a != nil && r.keepsConversation(a) {
			return a
		}
	}
	return root
}

// keepsConversation reports whether an agent keeps the conversation for the next message.
func (r *Runner) keepsConversation(a agent.Agent) bool {
	for ; a != nil; a = r.tree.Parent(a.Name()) {
		if !returnsConversation(a) {
			return false
		}
	}
	return true
}

// returnsConversation reports whether an agent asks a model, and can transfer the conversation to the agent above it.
func returnsConversation(a agent.Agent) bool {
	return drive.TraitsOf(a, true).TransfersToParent
}
