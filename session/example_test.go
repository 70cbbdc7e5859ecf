// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

func Example() {
	ctx := context.Background()
	svc := session.InMemoryService()
	created, err := svc.Create(ctx, &session.CreateRequest{
		AppName: "app", UserID: "ana", SessionID: "s1", State: map[string]any{"topic": "cats"},
	})
	if err != nil {
		log.Fatal(err)
	}

	ev := session.NewEvent(ctx, "run-1")
	ev.Author = "writer"
	ev.Content = genai.NewContentFromText("Once upon a time there was a cat.", genai.RoleModel)
	ev.Actions.StateDelta["draft"] = ev.Text()
	if err := svc.AppendEvent(ctx, created.Session, ev); err != nil {
		log.Fatal(err)
	}

	got, err := svc.Get(ctx, &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	for ev := range got.Session.Events().All() {
		fmt.Printf("%d %s: %s\n", ev.Seq, ev.Author, ev.Text())
	}
	draft, err := got.Session.State().Get("draft")
	fmt.Println(draft, err)
	_, err = got.Session.State().Get("title")
	fmt.Println(errors.Is(err, session.ErrStateKeyNotExist))
	// Output:
	// 1 writer: Once upon a time there was a cat.
	// Once upon a time there was a cat. <nil>
	// true
}
