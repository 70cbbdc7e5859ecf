// SPDX-License-Identifier: Apache-2.0

// Package term is what every command has of the world outside.
package term

import (
	"context"
	"io"
	"runtime/debug"
	"strings"

	"github.com/refrain-dev/refrain/command/cluster"
	"github.com/refrain-dev/refrain/command/internal/otlp"
	"github.com/refrain-dev/refrain/program"
)

// Env is what a command has of the outside world.
type Env struct {
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Ctx            context.Context // of the process; nil has no signals
	Args           []string        // of the process, without its name
	Telemetry      *otlp.Sender    // nil sends none
	Cluster        cluster.Cluster // nil: refrain-temporal has it, if the program is refrain
	Code           program.Code    // of the program
}

// Version is the module's version, the commit it was built from if it is known,
// and the version of Go.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "refrain (unknown version)"
	}
	words := []string{"refrain", info.Main.Version}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			words = append(words, s.Value[:12])
		}
	}
	return strings.Join(append(words, info.GoVersion), " ")
}
