// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"log"

	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/postgres"
)

func Example() {
	ctx := context.Background()
	svc, err := postgres.Open(ctx, "postgres://refrain@db.example.com/refrain", postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer svc.Close()

	// What another machine appends is seen here.
	key := lease.Key{AppName: "app", UserID: "ana", SessionID: "s1"}
	for ev, err := range svc.Watch(ctx, key, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ev.Seq, ev.Author, ev.Text())
	}
}
