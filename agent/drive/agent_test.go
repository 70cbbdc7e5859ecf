// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// A3, A9
func TestNewRefusesWhatCannotRun(t *testing.T) {
	sub := speaker(t, "sub")
	for _, tt := range []struct {
		name string
		cfg  agent.Config
		want string
	}{
		{"no name", agent.Config{}, "agent has no name; give it one"},
		{"the user's name", agent.Config{Name: "user"}, `agent cannot be named "user", because events of the person who asks have that author; choose another name`},
		{"a nil sub-agent", agent.Config{Name: "a", SubAgents: []agent.Agent{sub, nil}}, `agent "a": sub-agent 2 is nil; remove it`},
		{"a sub-agent twice", agent.Config{Name: "a", SubAgents: []agent.Agent{sub, speaker(t, "other"), sub}}, `agent "a": sub-agent "sub" is listed twice; list it once`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := agent.New(tt.cfg)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, %v; want error %q", a, err, tt.want)
			}
		})
	}
}

// A3, A4, A14
func TestNewKeepsWhatItIsTold(t *testing.T) {
	one, two := speaker(t, "one"), speaker(t, "two")
	subs := []agent.Agent{one, two}
	a := must(t, agent.Config{Name: "a", Description: "does things", SubAgents: subs})
	subs[0] = nil
	a.SubAgents()[1] = nil
	if a.Name() != "a" || a.Description() != "does things" {
		t.Errorf("got %q, %q", a.Name(), a.Description())
	}
	if got := a.SubAgents(); len(got) != 2 || got[0] != one || got[1] != two {
		t.Errorf("sub-agents changed with a caller's slice: %v", got)
	}
	if events, errs := collect(a.Run(invocation(t.Context()))); len(events)+len(errs) != 0 {
		t.Errorf("an agent without Run does nothing, got %v, %v", events, errs)
	}
}

// E6
func TestFindAgentFindsByName(t *testing.T) {
	leaf := speaker(t, "leaf")
	middle := must(t, agent.Config{Name: "middle", SubAgents: []agent.Agent{leaf}})
	root := must(t, agent.Config{Name: "root", SubAgents: []agent.Agent{speaker(t, "first"), middle}})
	for _, tt := range []struct {
		name            string
		self, below     agent.Agent
		selfOf, belowOf agent.Agent
	}{
		{"root", root, nil, root, root},
		{"middle", middle, middle, root, root},
		{"leaf", leaf, leaf, root, root},
		{"leaf", leaf, leaf, middle, middle},
		{"root", nil, nil, middle, middle},
		{"nobody", nil, nil, root, root},
	} {
		if got := tt.selfOf.FindAgent(tt.name); got != tt.self {
			t.Errorf("%s.FindAgent(%q) = %v, want %v", tt.selfOf.Name(), tt.name, got, tt.self)
		}
		if got := tt.belowOf.FindSubAgent(tt.name); got != tt.below {
			t.Errorf("%s.FindSubAgent(%q) = %v, want %v", tt.belowOf.Name(), tt.name, got, tt.below)
		}
	}
}

// stranger is an Agent that somebody wrote without this package's Base: a value
// of a type that cannot be compared.
type stranger struct {
	name string
	subs []agent.Agent
	said []string
}

func (s stranger) Name() string                         { return s.name }
func (s stranger) Description() string                  { return "" }
func (s stranger) SubAgents() []agent.Agent             { return s.subs }
func (s stranger) FindAgent(name string) agent.Agent    { return agent.Find(s, name) }
func (s stranger) FindSubAgent(name string) agent.Agent { return agent.FindSub(s, name) }
func (s stranger) Run(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		for _, text := range s.said {
			if !yield(says(text), nil) {
				return
			}
		}
	}
}

// sly is a type that can be compared, with values that cannot.
type sly struct {
	agent.Agent
	extra any
}

type typed struct{ stranger }

func (typed) Type() agent.Type { return agent.TypeRemote }

// A11
func TestTypeOfIsWhatTheAgentSays(t *testing.T) {
	for _, tt := range []struct {
		agent agent.Agent
		want  agent.Type
	}{
		{speaker(t, "a"), agent.TypeCustom},
		{stranger{}, agent.TypeCustom},
		{typed{}, agent.TypeRemote},
	} {
		if got := agent.TypeOf(tt.agent); got != tt.want {
			t.Errorf("TypeOf(%T) = %q, want %q", tt.agent, got, tt.want)
		}
	}
}

// A12
func TestAgentsThatCannotBeComparedCanBeSubAgents(t *testing.T) {
	uncomparable := sly{speaker(t, "sly"), []int{1}}
	subs := []agent.Agent{stranger{name: "one"}, stranger{name: "two"}, uncomparable, sly{speaker(t, "sly2"), []int{2}}}
	root := must(t, agent.Config{Name: "root", SubAgents: subs})
	if _, err := drive.NewTree(root); err != nil {
		t.Error(err)
	}
	if got := root.FindAgent("sly"); got == nil || got.Name() != "sly" {
		t.Errorf("FindAgent: got %v", got)
	}
}

// loud is somebody's agent around one of ours.
type loud struct{ *drive.Base }

func (l loud) Run(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		if yield(says("listen"), nil) {
			l.Base.Run(ctx)(yield)
		}
	}
}

// A12
func TestRunOfAnAgentThatEmbedsAnotherIsItsOwn(t *testing.T) {
	inner, err := drive.NewBase(agent.Config{Name: "a"}, nil, func(_ agent.InvocationContext, yield func(*session.Event, error) bool) {
		yield(says("hello"), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	events, errs := collect(drive.Run(invocation(t.Context()), loud{inner}))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff([]string{"a: listen", "a: hello"}, texts(events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A3, E6
func TestCheckTreeReportsEveryProblem(t *testing.T) {
	shared := speaker(t, "shared")
	for _, tt := range []struct {
		name string
		root agent.Agent
		want string
	}{
		{"a good tree", must(t, agent.Config{Name: "root", SubAgents: []agent.Agent{shared, stranger{name: "other"}}}), ""},
		{"two parents", stranger{name: "root", subs: []agent.Agent{
			stranger{name: "one", subs: []agent.Agent{shared}}, stranger{name: "two", subs: []agent.Agent{shared}},
		}}, `agent "shared" cannot have >1 parents, found: "one", "two"; make a second agent of another name`},
		{"two of one name", stranger{name: "root", subs: []agent.Agent{
			speaker(t, "twin"), must(t, agent.Config{Name: "middle", SubAgents: []agent.Agent{speaker(t, "twin")}}),
		}}, `agent names must be unique in the agent tree, found duplicate: "twin"`},
		{"two values of one name", stranger{name: "root", subs: []agent.Agent{stranger{name: "twin"}, stranger{name: "twin"}}},
			`agent names must be unique in the agent tree, found duplicate: "twin"`},
		{"the root's name again", stranger{name: "root", subs: []agent.Agent{speaker(t, "root")}},
			`agent names must be unique in the agent tree, found duplicate: "root"`},
		{"no name and the user's name", stranger{name: "root", subs: []agent.Agent{stranger{}, stranger{name: "user"}}},
			`under "root": agent has no name; give it one` + "\n" + `under "root": agent cannot be named "user", because events of the person who asks have that author; choose another name`},
		{"a name that an address could not hold", stranger{name: "a/b"}, `agent cannot be named "a/b", because / [ ] and # separate the parts of an address; choose another name`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if _, err := drive.NewTree(tt.root); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was not made by a constructor is refused, or fails; nothing panics.
func TestAgentsThatNobodyMade(t *testing.T) {
	var none *drive.Base
	zero := struct{ *drive.Base }{}
	for _, tt := range []struct {
		name string
		sub  agent.Agent
		want string
	}{
		{"nil", nil, `agent "a": sub-agent 1 is nil; remove it`},
		{"a nil pointer", none, `agent "a": sub-agent 1 is nil; remove it`},
		{"a zero value", zero, "was not made by its New"},
	} {
		if _, err := agent.New(agent.Config{Name: "a", SubAgents: []agent.Agent{tt.sub}}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if _, err := drive.NewTree(tt.sub); err == nil {
			t.Errorf("%s: NewTree takes it", tt.name)
		}
	}
	if _, errs := collect(zero.Run(invocation(t.Context()))); len(errs) != 1 {
		t.Errorf("Run: errors %v", errs)
	}
	if _, errs := collect(drive.Run(invocation(t.Context()), zero)); len(errs) != 1 {
		t.Errorf("run as a step: errors %v", errs)
	}
	if zero.Name() != "" || zero.Description() != "" || zero.SubAgents() != nil || zero.FindAgent("a") != nil || zero.FindSubAgent("a") != nil {
		t.Error("a zero agent has something")
	}
}
