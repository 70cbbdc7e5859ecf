// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// addTransfer gives the model the tool to hand the conversation over, if the agent has successors,
// and returns the instruction about them. If the agent has its own tool of that name, addTransfer
// keeps it.
func (a *Agent) addTransfer(ctx agent.Context, req *model.LLMRequest) (string, error) {
	tree := drive.At(ctx).Tree()
	t := a.transfer.Load()
	if t == nil || t.tree != tree {
		t = a.newTransfer(tree)
		a.transfer.Store(t)
	}
	if t.tool == nil || req.Tools[transferName] != nil {
		return "", nil
	}
	return t.instruction, tool.Pack(req, t.tool)
}

// transfer has the tool that hands the conversation to another agent, and the instruction about it.
type transfer struct {
	tree        *drive.Tree
	tool        *transferTool // nil if the agent has no successors
	instruction string        // instruction about the successors
}

func (a *Agent) newTransfer(tree *drive.Tree) *transfer {
	to, parent := a.successors(tree)
	if len(to) == 0 {
		return &transfer{tree: tree}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Other agents work with you:\n")
	for _, t := range to {
		fmt.Fprintf(&b, "- %s", t.Name())
		if d := strings.Join(strings.Fields(t.Description()), " "); d != "" {
			fmt.Fprintf(&b, ": %s", d)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "Answer what is yours to answer, going by your description. What another agent is better at is "+
		"not for you: call %s with its name, and say nothing else.", transferName)
	if parent != nil {
		fmt.Fprintf(&b, " What is neither yours nor theirs goes to %s, who is above you.", parent.Name())
	}
	return &transfer{tree: tree, tool: newTransferTool(to), instruction: b.String()}
}

// successors returns the agents that this agent may hand the conversation to: its sub-agents and, if its parent is a
// model agent, the parent and its other sub-agents. Parent is nil if the parent is not one of them.
func (a *Agent) successors(tree *drive.Tree) (to []agent.Agent, parent agent.Agent) {
	to = a.SubAgents()
	above := tree.Parent(a.Name())
	if above == nil || agent.TypeOf(above) != agent.TypeLLM {
		return to, nil
	}
	if !a.cfg.DisallowTransferToParent {
		parent = above
		to = append(to, parent)
	}
	if !a.cfg.DisallowTransferToPeers {
		for _, peer := range above.SubAgents() {
			if peer.Name() != a.Name() {
				to = append(to, peer)
			}
		}
	}
	return to, parent
}

// successor returns the agent that a tool transfers the conversation to. A tool of the program may
// name any agent in the tree.
func (r *run) successor(name string) (agent.Agent, error) {
	if name == r.Name() {
		return nil, fmt.Errorf("%q is you: answer yourself, or transfer to another agent", name)
	}
	tree := drive.At(r.ctx).Tree()
	names := tree.Names()
	to := tree.Find(name)
	if tree == nil {
		for _, sub := range r.SubAgents() {
			names = append(names, sub.Name())
		}
		to = r.FindSubAgent(name)
	}
	if to == nil {
		return nil, noSuchAgent(name, slices.DeleteFunc(names, func(n string) bool { return n == r.Name() }))
	}
	return to, nil
}

func noSuchAgent(name string, names []string) error {
	text := fmt.Sprintf("there is no agent %q to transfer to", name)
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Errorf("%s; did you mean %q?", text, near)
	}
	if len(names) == 0 {
		return errors.New(text)
	}
	return fmt.Errorf("%s; there are: %s", text, strings.Join(names, ", "))
}

const transferName = "transfer_to_agent"

// transferTool is the tool by which a model hands the conversation to another agent.
type transferTool struct {
	names []string
	decl  genai.FunctionDeclaration
}

func newTransferTool(to []agent.Agent) *transferTool {
	t := &transferTool{}
	for _, a := range to {
		t.names = append(t.names, a.Name())
	}
	t.decl = genai.FunctionDeclaration{
		Name: transferName, Description: t.Description(),
		Parameters: &genai.Schema{
			Type: genai.TypeObject, Required: []string{"agent_name"},
			Properties: map[string]*genai.Schema{"agent_name": {
				Type: genai.TypeString, Format: "enum", Enum: t.names,
				Description: "the name of the agent that goes on",
			}},
		},
	}
	return t
}

func (t *transferTool) Name() string      { return transferName }
func (*transferTool) IsLongRunning() bool { return false }
func (*transferTool) Description() string {
	return "Hands the conversation to another agent, which answers in your place."
}

// Declaration returns a copy, which shares the parameters with the original.
func (t *transferTool) Declaration() *genai.FunctionDeclaration {
	d := t.decl
	return &d
}

func (t *transferTool) Run(ctx tool.Context, args any) (map[string]any, error) {
	m, _ := args.(map[string]any)
	name, _ := m["agent_name"].(string)
	if name == "" {
		return nil, fmt.Errorf("agent_name is missing; give one of: %s", strings.Join(t.names, ", "))
	}
	if !slices.Contains(t.names, name) {
		return nil, noSuchAgent(name, t.names)
	}
	ctx.Actions().TransferToAgent = name
	return map[string]any{}, nil
}

// relay is shared by an agent and its successors. The agent runs its successors one after another,
// so that addresses and stacks do not grow with the number of transfers.
type relay struct {
	by   session.Address // address of the agent that started the relay
	next agent.Agent
}

type relayKey struct{}

// handOver runs another agent in this agent's place, as a step of it, and then that agent's
// successors. An agent that itself runs in a relay leaves this to the agent that started the relay.
func (r *run) handOver(to agent.Agent) {
	here := drive.At(r.ctx).Address()
	if l, ok := r.ctx.Value(relayKey{}).(*relay); ok && l.by == here.Parent() {
		l.next = to
		return
	}
	l := &relay{by: here, next: to}
	ctx := r.ctx.WithContext(context.WithValue(r.ctx, relayKey{}, l))
	for l.next != nil {
		step := drive.NewStep(ctx, drive.StepConfig{Agent: l.next})
		l.next = nil
		res := step.Run(func(ev *session.Event) bool { return r.yield(ev, nil) })
		switch {
		case res.ConsumerLeft:
			return
		case res.Err != nil:
			r.yield(nil, res.Err)
			return
		}
	}
}
