// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"iter"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/session"
)

// remembering is a config of agents that know, from the memory of their process, how
// often first has run in it: what a process that resumes does not. Say is what each
// answers.
func remembering(say func(name string, runs int, ev *session.Event) string) rehearsal.Config {
	runs := new(int)
	return rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.Crash}, Agent: func(a *definition.Agent) (agent.Agent, bool) {
		if a.Type != definition.TypeCommand {
			return nil, false
		}
		if a.Name == "first" { // the agents of a process are made in the order of the file
			runs = new(int)
		}
		own := runs
		made, err := agent.New(agent.Config{Name: a.Name, Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				if a.Name == "first" {
					*own++
				}
				ev := &session.Event{}
				ev.Content = genai.NewContentFromText(say(a.Name, *own, ev), genai.RoleModel)
				yield(ev, nil)
			}
		}})
		return made, err == nil
	}}
}

// A run whose state is the same, and whose answer is not, comes to something else.
func TestCrashComparesTheAnswer(t *testing.T) {
	cfg := remembering(func(name string, runs int, _ *session.Event) string {
		if name == "second" && runs == 0 {
			return "I do not remember that first has run."
		}
		return "Done."
	})
	f := rehearse(t, parse(t, `name: both
type: sequential
sub_agents:
  - {name: first, command: ["true"]}
  - {name: second, command: ["true"]}
`), cfg).Findings[0]
	if f.Status != rehearsal.Uncaught || f.Differ == 0 || !strings.HasSuffix(f.Detail, "the result differs") {
		t.Errorf("%+v", f)
	}
}

// And so does one whose iterations are the same, and whose loop stops for another
// reason.
func TestCrashComparesWhyALoopStops(t *testing.T) {
	cfg := remembering(func(name string, runs int, ev *session.Event) string {
		ev.Actions.Escalate = name == "first" && runs == 2
		return "Done."
	})
	f := rehearse(t, parse(t, `name: both
max_iterations: 2
sub_agents:
  - {name: first, command: ["true"], can_exit_loop: true}
`), cfg).Findings[0]
	if f.Status != rehearsal.Uncaught || f.Differ == 0 || !strings.HasSuffix(f.Detail, "has another stop record") {
		t.Errorf("%+v", f)
	}
}

// LOOP 14: an agent that is never asked is never refused either: that is not known.
func TestNobodyIsRefusedWhoDoesNotAsk(t *testing.T) {
	def := parse(t, `name: improve
max_iterations: 3
sub_agents:
  - {name: writer, instructions: "Improve this.", output_key: draft}
  - {name: critic, instructions: "Judge this: {{draft}}", can_exit_loop: true}
`)
	cfg := rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.ExitNotPermitted}}
	if f := rehearse(t, def, cfg).Findings[0]; f.Status != rehearsal.Caught || f.Stop == nil || f.Stop.Refusals == 0 {
		t.Errorf("it asks: %+v", f)
	}
	// An agent of one's own in its place hears of no fault, and does not ask.
	cfg.Agent = func(a *definition.Agent) (agent.Agent, bool) {
		if a.Name != "writer" {
			return nil, false
		}
		made, err := agent.New(agent.Config{Name: a.Name, Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := &session.Event{}
				ev.Content = genai.NewContentFromText("A draft.", genai.RoleModel)
				ev.Actions.StateDelta = map[string]any{"draft": "A draft."}
				yield(ev, nil)
			}
		}})
		return made, err == nil
	}
	if f := rehearse(t, def, cfg).Findings[0]; f.Status != rehearsal.Unknown || f.Guard != "" || !strings.Contains(f.Detail, "that does not happen") {
		t.Errorf("it does not ask: %+v", f)
	}
}

// LOOP 15: what is caught after many failures could be caught sooner, and after a few
// that is not worth a line.
func TestProviderDownForLong(t *testing.T) {
	const text = `name: improve
max_iterations: MOST
on_error: next_iteration
timeouts: none
sub_agents:
  - {name: writer, instructions: "Improve this.", output_key: draft}
`
	for most, advised := range map[string]bool{"6": false, "7": true} { // it is down from the second iteration on
		f := rehearse(t, parse(t, strings.Replace(text, "MOST", most, 1)), rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.ProviderDown}}).Findings[0]
		if f.Status != rehearsal.Caught || f.Guard != "max_iterations: "+most {
			t.Errorf("%s iterations: %+v", most, f)
		}
		if got := strings.HasPrefix(f.Advice, "max_consecutive_failures: 3 on improve ends it sooner"); got != advised {
			t.Errorf("%s iterations: advised is %v (%q), want %v", most, got, f.Advice, advised)
		}
	}
}
