// SPDX-License-Identifier: Apache-2.0

// Refrain-temporal is the command refrain with the SDK of Temporal linked in, for what needs it:
//
//	refrain-temporal worker --temporal localhost:7233 --store postgres://user@host/refrain
//	refrain-temporal run loop.yaml --temporal localhost:7233 --store postgres://user@host/refrain
//
// Refrain starts it by itself where it is beside refrain, or on the PATH.
package main

import (
	"os"

	"github.com/refrain-dev/refrain/command"
	"github.com/refrain-dev/refrain/temporal/cluster"
)

func main() { os.Exit(command.Main(command.Config{Cluster: cluster.Temporal{}})) }
