// SPDX-License-Identifier: Apache-2.0

// Package term gives commands access to the terminal and the process.
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
	"github.com/refrain-dev/refrain/command/internal/otlp"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// Env is the environment of a command: streams, arguments, variables, and what the program adds.
type Env struct {
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Ctx            context.Context // context of the process; nil ignores signals
	Args           []string        // arguments of the process, without its name
	Telemetry      *otlp.Sender    // nil sends no telemetry
	Cluster        cluster.Cluster // nil means that refrain-temporal connects to the cluster, if the program is refrain
	Code           program.Code    // what the program adds
	Keeps          Services        // services of the program

	// Commands gives the commands in a text, such as refrain show r_1, the name of the program and its --store; nil changes nothing.
	// It is applied to all of Stderr. What goes to Stdout is passed to Hint.
	Commands func(string) string

	// Around wraps the handler of the program's server, and Began gets its address when it listens; both may be nil.
	Around func(http.Handler) (http.Handler, error)
	Began  func(url string)
}

// Hint returns a text of the command's own with the commands in it as a person has to type them.
func (e *Env) Hint(text string) string {
	if e.Commands == nil {
		return text
	}
	return e.Commands(text)
}

// Services are the stores of a program's runs. A nil service means the command's own.
type Services struct {
	Sessions session.Service
	Files    artifact.Service
	Memory   memory.Service
	Plugins  runner.PluginConfig
}

// Lasts reports whether the program has its own store, and that store outlives the process.
func (s *Services) Lasts() bool {
	return s.Sessions != nil && reflect.TypeOf(s.Sessions) != reflect.TypeOf(session.InMemoryService())
}

// Version returns the version of the module, the commit from which it was built and the commit's day if known, and the version of Go.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "refrain (unknown version)"
	}
	return VersionOf(info)
}

// VersionOf returns the [Version] of a program. The version of a commit without a tag has the commit and the day in it.
func VersionOf(info *debug.BuildInfo) string {
	words := []string{"refrain", info.Main.Version}
	vcs := map[string]string{}
	for _, s := range info.Settings {
		vcs[s.Key] = s.Value
	}
	if commit := vcs["vcs.revision"]; len(commit) >= 12 && !strings.Contains(info.Main.Version, commit[:12]) {
		words = append(words, commit[:12])
		if day, _, ok := strings.Cut(vcs["vcs.time"], "T"); ok {
			words = append(words, day)
		}
	}
	return strings.Join(append(words, info.GoVersion), " ")
}

// ShortVersion returns [Version] without the program's name and the version of Go.
func ShortVersion() string {
	return strings.TrimSuffix(strings.TrimPrefix(Version(), "refrain "), " "+runtime.Version())
}
