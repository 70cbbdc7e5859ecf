// SPDX-License-Identifier: Apache-2.0

// Package launcher starts a program of agents from its command line, with the names of Google's ADK for Go. A main that ends
// like this one is the whole command refrain, with its agents:
//
//	cfg := &launcher.Config{AgentLoader: agent.NewSingleLoader(root)}
//	l := full.NewLauncher()
//	if err := l.Execute(ctx, cfg, os.Args[1:]); err != nil {
//		log.Fatalf("%v\n\n%s", err, l.CommandLineSyntax())
//	}
//
// The first argument is a keyword of a launcher, such as console or web, or a verb of package command, such as resume, show
// or runs. Launchers start runs through that command too, so that a run of a console is a run like any other.
package launcher

import (
	"context"

	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry"
)

// Config has the agents of a program and the services that their runs use. A nil service means that of the command
// refrain, which keeps runs and their files in the folder .refrain, or where --store or REFRAIN_STORE says.
type Config struct {
	// SessionService keeps the runs, as sessions of the application refrain and the user user. With a store on a disk or in
	// a database, such as sqlite.Open, a run continues after its process was killed.
	SessionService session.Service
	// ArtifactService keeps the files of the runs.
	ArtifactService artifact.Service
	// MemoryService keeps what agents remember. If it is nil, it is kept in memory.
	MemoryService memory.Service
	// AgentLoader has the agents. Required.
	AgentLoader agent.Loader
	// A2AOptions must be empty, because the tasks of A2A clients are runs, whose store is SessionService: options for
	// another task store or executor would have no effect. The launcher a2a refuses them.
	A2AOptions []a2asrv.RequestHandlerOption
	// PluginConfig has plugins for all runs. The launcher closes them at its end.
	PluginConfig runner.PluginConfig
	// TelemetryOptions, if any, say where spans go: see telemetry.New.
	TelemetryOptions []telemetry.Option
}

// Launcher runs a program as its arguments say.
type Launcher interface {
	// Execute parses the arguments, without the name of the program, and runs the launcher that they name. It returns nil
	// when a person ends it, such as with Ctrl-C.
	Execute(ctx context.Context, config *Config, args []string) error
	// CommandLineSyntax explains the arguments.
	CommandLineSyntax() string
}

// SubLauncher is one way to run a program, which a keyword chooses.
type SubLauncher interface {
	// Keyword is the argument that chooses the launcher.
	Keyword() string
	// Parse reads the arguments behind the keyword, and returns those that it does not know.
	Parse(args []string) ([]string, error)
	// CommandLineSyntax explains its flags.
	CommandLineSyntax() string
	// SimpleDescription explains it in one line.
	SimpleDescription() string
	// Run runs the launcher with the parsed arguments, until ctx or a person ends it.
	Run(ctx context.Context, config *Config) error
}
