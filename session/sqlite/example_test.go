// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "refrain")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "refrain.db")

	svc, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	made, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	ev := session.NewEvent(ctx, "run-1")
	ev.Author = "writer"
	ev.Actions.StateDelta["draft"] = "Once upon a time"
	if err := svc.AppendEvent(ctx, made.Session, ev); err != nil {
		log.Fatal(err)
	}
	if err := svc.Close(); err != nil {
		log.Fatal(err)
	}

	// Later, in another process.
	svc, err = sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer svc.Close()
	got, err := svc.Get(ctx, &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	draft, err := got.Session.State().Get("draft")
	fmt.Println(got.Session.Events().Len(), draft, err)
	// Output: 1 Once upon a time <nil>
}
