// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"iter"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// newExaminer returns an agent that says how many bananas are in the last picture. It counts them itself, and does not
// rely on what models have said.
func newExaminer(cfg agent.Config) (agent.Agent, error) {
	cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			n, err := countIn(ctx, ctx.Artifacts(), pictureFile)
			if err != nil {
				yield(nil, err)
				return
			}
			wanted, err := ctx.Session().State().Get("wanted")
			if err != nil {
				yield(nil, err)
				return
			}
			ev := session.NewEvent(ctx, ctx.InvocationID())
			ev.Content = genai.NewContentFromText(fmt.Sprintf("%s has %d bananas, %v were wanted.", pictureFile, n, wanted),
				genai.RoleModel)
			yield(ev, nil)
		}
	}
	return agent.New(cfg)
}
