// SPDX-License-Identifier: Apache-2.0

// Package term is what every command has of the world outside.
package term

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/command/cluster"
	"github.com/refrain-dev/refrain/command/internal/otlp"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
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
	Keeps          Services        // of the program

	// Around wraps the handler of the program's server, and Began gets its address when it listens; both may be nil.
	Around func(http.Handler) (http.Handler, error)
	Began  func(url string)
}

// Services are where a program keeps its runs. Each may be nil: then it is the command's own.
type Services struct {
	Sessions session.Service
	Files    artifact.Service
	Memory   memory.Service
	Plugins  runner.PluginConfig
}

// Lasts reports whether the program has a store of its own that outlives the process.
func (s *Services) Lasts() bool {
	return s.Sessions != nil && reflect.TypeOf(s.Sessions) != reflect.TypeOf(session.InMemoryService())
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

// ShortVersion is [Version] without the program's name and the version of Go.
func ShortVersion() string {
	return strings.TrimSuffix(strings.TrimPrefix(Version(), "refrain "), " "+runtime.Version())
}
