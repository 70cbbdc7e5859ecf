// SPDX-License-Identifier: Apache-2.0

// Package door runs the command for a launcher, with the agents and services of the launcher's config.
//
//	err := door.Run(ctx, config, func(root string) []string { return []string{"console", root} }, command.Config{})
package door

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/command"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/telemetry"
)

// options returns the config as options of the command, whose arguments are those that args returns for the name of the root
// agent.
func options(cfg *launcher.Config, args func(root string) []string, to command.Config) ([]command.Option, error) {
	if cfg == nil {
		return nil, errors.New("the config is nil; give Execute a launcher.Config")
	}
	var code program.Code
	root, err := code.AddLoader(cfg.AgentLoader)
	if err != nil {
		return nil, err
	}
	to.Args, to.PluginConfig = args(root), cfg.PluginConfig
	to.SessionService, to.ArtifactService, to.MemoryService = cfg.SessionService, cfg.ArtifactService, cfg.MemoryService
	opts := []command.Option{to}
	for _, name := range cfg.AgentLoader.ListAgents() {
		a, err := cfg.AgentLoader.LoadAgent(name)
		if err != nil {
			return nil, fmt.Errorf("load agent %q: %w", name, err)
		}
		opts = append(opts, command.Agent(a))
	}
	return opts, nil
}

// open sets up the telemetry of a config. The function that it returns ends the telemetry, and closes the
// plugins.
func open(ctx context.Context, cfg *launcher.Config) (func() error, error) {
	end := func() error { return nil }
	if len(cfg.TelemetryOptions) > 0 {
		p, err := telemetry.New(ctx, cfg.TelemetryOptions...)
		if err != nil {
			return nil, err
		}
		p.SetGlobalOtelProviders()
		end = func() error { return p.Shutdown(context.WithoutCancel(ctx)) }
	}
	return func() error { return errors.Join(cfg.PluginConfig.Close(), end()) }, nil
}

// Run runs the command with the agents and services of a config, and the arguments that args returns for the name of the root
// agent. server has a handler around the server's, and who gets its address. Run returns nil if the command has succeeded, a
// person has ended it, or its run waits for a person.
func Run(ctx context.Context, cfg *launcher.Config, args func(root string) []string, server command.Config) error {
	opts, err := options(cfg, args, server)
	if err != nil {
		return err
	}
	end, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	err = command.Run(ctx, opts...)
	if exit, ok := errors.AsType[*command.ExitError](err); ok && exit.Code > 2 {
		err = nil
	}
	return errors.Join(err, end())
}

// Verb runs a verb of the command. If it does not succeed, the process ends with the exit code of the command.
func Verb(ctx context.Context, cfg *launcher.Config, args []string) error {
	opts, err := options(cfg, func(string) []string { return args }, command.Config{})
	if err != nil {
		return err
	}
	end, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	code := command.Main(opts...)
	if err = end(); code != 0 {
		os.Exit(code)
	}
	return err
}

// Flags is the part of a launcher that its flags make.
type Flags struct {
	Set   *flag.FlagSet
	about string
}

// NewFlags returns the flags of a launcher with a keyword, which about explains in one line.
func NewFlags(keyword, about string) Flags {
	return Flags{flag.NewFlagSet(keyword, flag.ContinueOnError), about}
}

// Keyword returns the argument that chooses the launcher.
func (f Flags) Keyword() string { return f.Set.Name() }

// SimpleDescription explains the launcher in one line.
func (f Flags) SimpleDescription() string { return f.about }

// CommandLineSyntax lists the flags.
func (f Flags) CommandLineSyntax() string {
	var b strings.Builder
	f.Set.VisitAll(func(f *flag.Flag) {
		what, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  -%s %s\n        %s", f.Name, what, usage)
		if f.DefValue != "" && f.DefValue != "false" {
			fmt.Fprintf(&b, " (default %s)", f.DefValue)
		}
		b.WriteByte('\n')
	})
	return b.String()
}

// Parse reads the flags, and returns the arguments behind them. Errors are not printed. It returns flag.ErrHelp for -h.
func (f Flags) Parse(args []string) ([]string, error) {
	f.Set.SetOutput(new(strings.Builder))
	if err := f.Set.Parse(args); err != nil {
		return nil, err
	}
	return f.Set.Args(), nil
}

var handlers sync.Map // of the servers whose routes a sublauncher of web adds, by the [*launcher.Config]

// Serve makes Served return the handler for a config, until end is called.
func Serve(cfg *launcher.Config, h http.Handler) (end func()) {
	handlers.Store(cfg, h)
	return func() { handlers.Delete(cfg) }
}

// Served returns the handler for a config. It fails outside of a launcher web.
func Served(cfg *launcher.Config) (http.Handler, error) {
	h, ok := handlers.Load(cfg)
	if !ok {
		return nil, errors.New("the launcher has no server; pass it to web.NewLauncher")
	}
	return h.(http.Handler), nil
}
