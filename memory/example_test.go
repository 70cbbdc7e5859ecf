// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
)

func ExampleInMemoryService() {
	ctx := context.Background()
	sessions := session.InMemoryService()
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ev := session.NewEvent(ctx, "run-1")
	ev.Author = "user"
	ev.Content = genai.NewContentFromText("I like short sentences.", genai.RoleUser)
	if err := sessions.AppendEvent(ctx, created.Session, ev); err != nil {
		fmt.Println(err)
		return
	}

	mem := memory.InMemoryService()
	if err := mem.AddSessionToMemory(ctx, created.Session); err != nil {
		fmt.Println(err)
		return
	}
	found, err := mem.SearchMemory(ctx, &memory.SearchRequest{AppName: "app", UserID: "ana", Query: "Which sentences?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range found.Memories {
		fmt.Println(m.Author, "said:", m.Content.Parts[0].Text)
	}
	// Output: user said: I like short sentences.
}
