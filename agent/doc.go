// SPDX-License-Identifier: Apache-2.0

// Package agent defines agents, the contexts they run in, and their callbacks and errors.
//
// An [Agent] answers an invocation with a stream of events. [New] makes one from a function; the
// packages below this one make agents that ask a model, run a program, or run other agents. Names
// and signatures are those of ADK for Go, with one difference: any package can implement Agent.
//
//	hello, err := agent.New(agent.Config{
//		Name: "hello",
//		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
//			return func(yield func(*session.Event, error) bool) {
//				ev := session.NewEvent(ctx, ctx.InvocationID())
//				ev.Content = genai.NewContentFromText("Hello.", genai.RoleModel)
//				yield(ev, nil)
//			}
//		},
//	})
//
// Package runner runs an agent in a session. An agent runs another by its Run method. Package drive
// is for authors of a kind of agent or of a runner.
package agent
