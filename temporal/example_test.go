// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"go.temporal.io/sdk/client"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/postgres"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

// A worker drives runs until it is interrupted. Then it hands them over to other workers.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	store, err := postgres.Open(ctx, os.Getenv("REFRAIN_DSN"), postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	c, err := client.Dial(client.Options{HostPort: "localhost:7233"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	w, err := temporal.NewWorker(c, temporal.Config{Supervisor: supervisor.Config{
		Service: store, AppName: "refrain", UserID: "user", Build: program.Rebuild(program.Env{}),
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A run is started, and asked to pause.
func ExampleStart() {
	var (
		ctx     context.Context
		c       client.Client
		sup     *supervisor.Supervisor // of the same store as the workers
		started mark.RunStarted        // such as that of program
	)
	id, err := temporal.Start(ctx, c, sup, supervisor.Request{
		Message: genai.NewContentFromText("Write a poem", genai.RoleUser), Started: started,
	}, temporal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	st, err := temporal.Ask(ctx, c, id, temporal.Request{Do: temporal.Pause, Reason: "lunch"}, temporal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(st.Status)
}
