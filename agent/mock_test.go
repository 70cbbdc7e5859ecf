// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// userIs is a context in which only the user is known, and that nobody has confirmed anything.
type userIs struct {
	agent.StrictContextMock
	user string
}

func (u *userIs) UserID() string                                       { return u.user }
func (u *userIs) ToolConfirmation() *toolconfirmation.ToolConfirmation { return nil }

// newGreeter returns a tool that greets the user.
func newGreeter() (tool.Function, error) {
	t, err := functiontool.New(functiontool.Config{Name: "greet", Description: "Greets."},
		func(ctx tool.Context, in struct {
			Word string `json:"word"`
		}) (string, error) {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			return in.Word + ", " + ctx.UserID(), nil
		})
	if err != nil {
		return nil, err
	}
	return t.(tool.Function), nil
}

// A test of a tool embeds the mock and overrides what the tool needs.
func ExampleStrictContextMock() {
	greeter, err := newGreeter()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := &userIs{agent.NewStrictContextMock(context.Background()), "ana"}
	fmt.Println(greeter.Run(ctx, map[string]any{"word": "Hello"}))
	// Output: map[result:Hello, ana] <nil>
}

// The context of the mock is the tool's.
func TestStrictContextMockHasItsContext(t *testing.T) {
	greeter, err := newGreeter()
	if err != nil {
		t.Fatal(err)
	}
	type key struct{}
	under, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "v"), time.Hour)
	cancel()
	ctx := &userIs{StrictContextMock: agent.StrictContextMock{Ctx: under}}
	if _, err := greeter.Run(ctx, map[string]any{"word": "Hello"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the end of the context", err)
	}
	if _, ok := ctx.Deadline(); !ok || ctx.Value(key{}) != "v" {
		t.Error("deadline or value of the context is missing")
	}
	select {
	case <-ctx.Done():
	default:
		t.Error("the mock goes on after its context")
	}
}

// Every method that is not overridden panics with its name; those of ContextMock return zero values.
func TestMocksAnswerEveryMethod(t *testing.T) {
	strict, loose := reflect.ValueOf(new(agent.StrictContextMock)), reflect.ValueOf(new(agent.ContextMock))
	for m := range reflect.TypeFor[agent.Context]().Methods() {
		args := make([]reflect.Value, m.Type.NumIn())
		for i := range args {
			args[i] = reflect.Zero(m.Type.In(i))
		}
		func() {
			defer func() {
				want := m.Name + " is called"
				if strings.Contains(" Deadline Done Err Value ", " "+m.Name+" ") {
					want = "Ctx is nil"
				}
				if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
					t.Errorf("StrictContextMock.%s: panic %q, want %q in it", m.Name, said, want)
				}
			}()
			strict.MethodByName(m.Name).Call(args)
		}()
		for _, v := range loose.MethodByName(m.Name).Call(args) {
			if !v.IsZero() {
				t.Errorf("ContextMock.%s returns %v", m.Name, v)
			}
		}
	}
}

// own is an agent of a user, with nothing of Refrain embedded.
type own struct{ name string }

func (o *own) Name() string                    { return o.name }
func (o *own) Description() string             { return "Says its name." }
func (o *own) SubAgents() []agent.Agent        { return nil }
func (o *own) FindSubAgent(string) agent.Agent { return nil }
func (o *own) FindAgent(name string) agent.Agent {
	if name == o.name {
		return o
	}
	return nil
}

func (o *own) Run(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		ev := session.NewEvent(ctx, ctx.InvocationID())
		ev.Content = genai.NewContentFromText(o.name, genai.RoleModel)
		yield(ev, nil)
	}
}

// An agent that is written without agent.New runs as any other.
func TestOwnAgentRuns(t *testing.T) {
	root, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "both",
		SubAgents: []agent.Agent{&own{"one"}, &own{"two"}}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("app", root)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("Go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, ev.Author+": "+ev.Text())
	}
	if got := strings.Join(said, ", "); got != "one: one, two: two" {
		t.Errorf("got %s", got)
	}
}
