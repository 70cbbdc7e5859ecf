// SPDX-License-Identifier: Apache-2.0

// Command atonce does many runs at once, in a process of its own, so that their memory can be
// measured: that of a program which has this library and no other product.
//
//	atonce nothing|plain|marks|sqlite SESSIONS ITERATIONS
//
// It works in the current folder, and prints how many events agents said, and in how many nanoseconds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// done is what is printed.
type done struct {
	Events int
	Wall   time.Duration
}

func main() {
	began := time.Now()
	n, err := run(os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(done{n, time.Since(began)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "atonce:", err)
		os.Exit(1)
	}
}

func run(args []string) (int, error) {
	if len(args) != 3 {
		return 0, errors.New("needs the kind of runs, their number, and that of the iterations of each")
	}
	sessions, err := strconv.Atoi(args[1])
	if err != nil {
		return 0, err
	}
	iterations, err := strconv.Atoi(args[2])
	if err != nil {
		return 0, err
	}
	switch args[0] {
	case "nothing":
		return 0, nil
	case "plain", "marks":
		return ours.ManyRuns(session.InMemoryService(), args[0] == "marks", sessions, iterations)
	case "sqlite":
		svc, err := sqlite.Open(context.Background(), "runs.db", sqlite.Config{})
		if err != nil {
			return 0, err
		}
		n, err := ours.ManyRuns(svc, true, sessions, iterations)
		return n, errors.Join(err, svc.Close())
	}
	return 0, fmt.Errorf("unknown kind of runs %q", args[0])
}
