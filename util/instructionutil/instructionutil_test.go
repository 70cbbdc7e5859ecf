// SPDX-License-Identifier: Apache-2.0

package instructionutil_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/util/instructionutil"
)

// filled is what a callback of a run makes of an instruction.
func filled(instruction string) (text string, err error) {
	a, err := agent.New(agent.Config{Name: "a", BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		if _, err := ctx.Artifacts().Save(ctx, "notes.md", genai.NewPartFromText("from a file")); err != nil {
			return nil, err
		}
		text, err = instructionutil.InjectSessionState(ctx, instruction)
		return nil, err
	}}})
	if err != nil {
		return "", err
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(),
		ArtifactService: artifact.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		return "", err
	}
	for _, err := range r.Run(context.Background(), "ana", "s1", nil, agent.RunConfig{}, runner.WithStateDelta(map[string]any{"draft": "a poem"})) {
		if err != nil {
			return "", err
		}
	}
	return text, nil
}

func Example() {
	text, err := filled("Improve {draft}, {missing?} with what is {artifact.notes.md}. {\"json\": 1} stays.")
	fmt.Println(text, err)
	// Output: Improve a poem,  with what is from a file. {"json": 1} stays. <nil>
}

// A context of a test has only a state.
func TestContextThatIsNoInvocation(t *testing.T) {
	view := session.NewView(session.ViewConfig{State: map[string]any{"draft": "a poem"}})
	got, err := instructionutil.InjectSessionState(bare{state: view.State()}, "Improve {draft}{missing}.")
	if got != "Improve a poem." || err != nil {
		t.Errorf("got %q, error %v", got, err)
	}
	if _, err := instructionutil.InjectSessionState(bare{state: view.State()}, "{{#draft}}"); err == nil {
		t.Error("a template that cannot be read: want an error")
	}
}

type bare struct {
	agent.ReadonlyContext
	state session.State
}

func (b bare) ReadonlyState() session.ReadonlyState { return b.state }
