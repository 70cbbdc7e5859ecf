// SPDX-License-Identifier: Apache-2.0

// Refrain runs loops of agents that know when to stop, from a YAML file.
//
//	refrain run loop.yaml "Write a document about a cat"
//	refrain validate loop.yaml
//	refrain resume last
//	refrain run loop.yaml --record run.jsonl
//	refrain verify run.jsonl
//	refrain backtest run.jsonl --set plan.max_iterations=3
//
// The answer goes to stdout and everything else to stderr. Exit codes: 0 the
// run completed; 1 it failed; 2 wrong usage or an invalid definition; 3 a limit
// stopped it before its own criterion did; 4 it is paused, or waits for a person;
// 130 it was interrupted, and can be resumed.
package main

import (
	"os"

	"github.com/refrain-dev/refrain/command"
)

func main() { os.Exit(command.Main()) }
