// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/web/page"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/telemetry"
	"github.com/refrain-dev/refrain/telemetry/metrics"
)

// serveFlags are the flags of refrain serve.
type serveFlags struct {
	servedFlags
	peopleFlags
	clusters.Flags
	addr, token string
	basePath    string
	keep        runstore.KeepFlags
	hosts       []string
	open        bool

	maxBody                           string
	maxConns, maxStreams, maxSessions int
	bodyTime, pieceTime, idleTime     time.Duration
}

// servedFlags are the flags that refrain serve and refrain mcp share: what they serve, and what clients may do.
type servedFlags struct {
	dir, store string
	grace      time.Duration
	stateLimit string
	logLimit   string

	maxRuns, maxClientRuns, maxQueued int

	commands, private bool
	ownOnly           bool
	secretEnv         []string
	notify            []string
	sandbox           string
}

const defaultAddr = "127.0.0.1:8080"

func NewServe(e *term.Env) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run definitions and watch runs over HTTP",
		Long: `Serve the definitions of a folder and the runs of a store over HTTP: a web page, an API
for scripts, ADK's API, the definitions as agents for A2A clients below /a2a, and as
tools for MCP clients at /mcp. A run goes on when its client disconnects. doc/server.md
describes these interfaces.

The server listens on 127.0.0.1:8080. Another address needs a token, which clients send as
Authorization: Bearer TOKEN; give it in the environment as REFRAIN_TOKEN, where other
users cannot see it. For several people, --tokens names a file that refrain token makes,
in which each has a token and a role. Or a proxy before the server names the person in a
header (--trust-proxy-header), which counts only from its addresses (--trust-proxy).

Definitions in the folder may do anything, as with refrain run; for clients of MCP see
refrain help mcp. Definitions that clients send start no programs unless you give --allow-commands, and agents reach no loopback,
link-local or private addresses unless you give --allow-private.

With --keep the server removes runs that ended long ago, with their files; see first what would go
with refrain rm --keep. doc/server.md says which runs stay.

With --temporal the workers of a Temporal cluster drive the runs that start here, also those
of schedules; see refrain worker. They drive them as those of refrain run --temporal: only the
server's own runs have its limits. The server itself drives the runs of definitions that
clients send, and of definitions with a workspace.

At the first Ctrl-C the server waits for running steps to end, and pauses their runs. The
runs go on when the server is started again. The second Ctrl-C cuts the steps off.`,
		Example: `  refrain serve
  refrain serve --dir loops --open
  REFRAIN_TOKEN=$(openssl rand -hex 20) refrain serve --addr 0.0.0.0:8080
  refrain serve --tokens ~/.config/refrain/tokens.json --host loops.example.org`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if err := f.Here(cmd.Context(), e, cmd.Flags()); err != nil {
				return err
			}
			return serve(cmd.Context(), e, f)
		},
	}
	fl := cmd.Flags()
	f.servedFlags.add(fl, "clients send", "the server stops")
	f.Add(fl, "`host:port` of the Temporal server whose workers drive the runs; the variables TEMPORAL_* set the rest")
	f.AddQueue(fl)
	f.AddHeartbeat(fl)
	fl.StringVar(&f.addr, "addr", defaultAddr, "`host:port` to listen on; port 0 is any free one")
	fl.StringVar(&f.token, "token", "", "`secret` that clients have to send (env REFRAIN_TOKEN, or a file that REFRAIN_TOKEN_FILE names)")
	fl.StringVar(&f.tokens, "tokens", "", "`file` of people with roles and tokens, as refrain token makes it")
	fl.StringArrayVar(&f.proxies, "trust-proxy", nil, "`address` or network of a proxy whose X-Forwarded-For names the client; repeat the flag for more")
	fl.StringVar(&f.header, "trust-proxy-header", "", "`header` in which this proxy names the person, such as X-Forwarded-User")
	fl.StringVar(&f.forRest, "proxy-role", "", "`role` of people whom the proxy names and --tokens does not have; without it they are refused")
	fl.StringArrayVar(&f.hosts, "host", nil, "additional host `name` by which browsers reach the server; repeat the flag for "+
		"more names")
	fl.StringVar(&f.basePath, "base-path", "", "`path` below which a proxy shows the server, such as /refrain")
	f.keep.Add(fl, "remove")
	fl.BoolVar(&f.open, "open", false, "open the page in a browser")
	sizeFlag(fl, &f.maxBody, &operations.BoundOfBody, "largest `size` of the body of a request")
	countFlag(fl, &f.maxConns, &operations.BoundOfConns, "keep at most this many connections, half of them for one client")
	countFlag(fl, &f.maxStreams, &operations.BoundOfStreams, "serve at most this many streams of events, half of them to one client")
	countFlag(fl, &f.maxSessions, &operations.BoundOfSessions, "keep at most this many sessions of ADK's clients in which nothing has run; 0 means no limit")
	timeFlag(fl, &f.bodyTime, &operations.BoundOfReading)
	timeFlag(fl, &f.pieceTime, &operations.BoundOfWriting)
	timeFlag(fl, &f.idleTime, &operations.BoundOfIdling)
	fl.BoolVar(&f.ownOnly, "own-only", false, "serve only the definitions and agents of the program, not the definitions in the folder")
	return cmd
}

func serve(ctx context.Context, e *term.Env, f serveFlags) error {
	child.Shield()
	f.token = cmp.Or(f.token, e.Getenv("REFRAIN_TOKEN"))
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return fmt.Errorf("--addr %q: write host:port, such as %s", f.addr, defaultAddr)
	}
	any, local := listens(host)
	if !local && f.token == "" && !f.needed() {
		return fmt.Errorf("--addr %s: others can reach this address, so the server needs a token: set REFRAIN_TOKEN or REFRAIN_TOKEN_FILE, "+
			"such as to the output of: openssl rand -hex 20; for several people, see refrain token", f.addr)
	}
	if f.tokens != "" { // the folder changes to --dir
		if f.tokens, err = filepath.Abs(f.tokens); err != nil {
			return err
		}
	}
	var workers cluster.Client
	if f.On {
		if err := clusters.SharedStore(e, f.store); err != nil {
			return err
		}
		if workers, err = f.Dial(ctx, e); err != nil {
			return err
		}
		defer workers.Close()
	}
	s, err := runstore.MakeStock(ctx, e, f.store, "")
	if err != nil {
		return err
	}
	defer s.Close()
	cfg, err := f.config(e, s)
	if err != nil {
		return err
	}
	if f.On {
		cfg.Cluster, cfg.Driver = workers, f.Driver()
	}
	cfg.Token, cfg.Hosts, cfg.AnyAddress = f.token, names(host, any, f.hosts), any
	if err := f.set(&cfg); err != nil {
		return err
	}
	to, err := notifyOf(e, f.notify)
	if err != nil {
		return err
	}
	where := "" // is set before the server drives a run
	notifier := s.Notifier(e, to, true, "", func(ctx context.Context, id string) string { return pagesBelow(where)(ctx, id) })
	defer closeNotifier(ctx, notifier)
	counts := metrics.New(metrics.Config{Version: term.ShortVersion()})
	cfg.Metrics, cfg.Refused = counts.Handler(), counts.Refused
	cfg.Observe = func(sup *supervisor.Config) {
		counts.Observe(sup)
		e.Telemetry.Observe(sup)
		notifier.Observe(sup)
	}
	if cfg.Keep, err = f.keep.Rule(); err != nil {
		return term.UsageError(err)
	}
	cfg.Schedules = !f.ownOnly
	cfg.BasePath = strings.TrimSuffix(f.basePath, "/")
	cfg.Page = webui.HandlerBelow(cfg.BasePath, webui.Files())
	cfg.ReadTimeout, cfg.WriteTimeout, cfg.IdleTimeout = f.bodyTime, f.pieceTime, f.idleTime
	cfg.MaxConns, cfg.MaxStreams, cfg.MaxSessions = f.maxConns, f.maxStreams, orNone(f.maxSessions)
	if cfg.MaxBody, err = limitOf(&operations.BoundOfBody, f.maxBody); err != nil {
		return err
	}
	if cfg.MaxBody < 0 {
		return term.UsageError(errors.New("--max-body none: a request needs a limit; give a size such as 16MiB"))
	}
	var wrong error
	if wrap := e.Around; wrap != nil {
		traces := cfg.Around
		cfg.Around = func(h http.Handler) http.Handler {
			if h, wrong = wrap(h); wrong == nil && traces != nil {
				h = traces(h)
			}
			return h
		}
	}
	srv, err := server.New(cfg)
	if err != nil {
		return term.Failure(err)
	}
	if wrong != nil {
		return errors.Join(term.UsageError(wrong), srv.Shutdown(ctx))
	}
	counts.Watch(srv.Supervisor())
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		return errors.Join(term.Failure(fmt.Errorf("--addr: %w", err)), srv.Shutdown(ctx))
	}
	here := "http://" + browseAddress(l.Addr().String(), any)
	where = cmp.Or(e.Getenv("REFRAIN_URL"), here+cfg.BasePath)
	silence, err := s.Announce(e, here)
	if err != nil {
		term.PrintError(e.Stderr, err)
	}
	defer silence()
	if err := srv.Recover(ctx); err != nil {
		term.PrintError(e.Stderr, err) // the other runs go on
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	here += cfg.BasePath
	notifier.Later()
	fmt.Fprintf(e.Stderr, "refrain serves %s\n", here)
	if f.On {
		fmt.Fprintf(e.Stderr, "Workers of Temporal at %s, task queue %s, drive the runs.\n", workers.Where(), f.Queue)
	}
	if e.Began != nil {
		e.Began(here)
	}
	if f.open {
		term.OpenOrSay(e, here)
	}
	return untilStopped(ctx, e, srv, served, f.grace)
}

// add adds the flags. sends and ends complete the help texts: who sends definitions, and when the command ends.
func (f *servedFlags) add(fl *pflag.FlagSet, sends, ends string) {
	fl.StringVar(&f.dir, "dir", ".", "`folder` of the definitions, in which their commands run")
	runstore.Flag(fl, &f.store)
	countFlag(fl, &f.maxRuns, &operations.BoundOfRuns, "drive at most this many runs at once; others wait; 0 means no limit")
	countFlag(fl, &f.maxClientRuns, &operations.BoundOfClientRuns,
		"of the definitions that "+sends+", drive at most this many runs at once; others wait; 0 means no limit")
	countFlag(fl, &f.maxQueued, &operations.BoundOfQueue, "let at most this many of these runs wait; 0 means no limit")
	sizeFlag(fl, &f.stateLimit, &operations.BoundOfState, "largest `size` of a run's state, whatever the definition says; none for no limit")
	sizeFlag(fl, &f.logLimit, &operations.BoundOfLog, "largest `size` of the log of a run of the definitions that "+sends+"; none for no limit")
	fl.BoolVar(&f.commands, "allow-commands", false, "let definitions that "+sends+" start programs")
	fl.StringArrayVar(&f.secretEnv, "allow-secret-env", nil,
		"let definitions that "+sends+" use the secret variable of this `name`; repeat the flag for more")
	fl.BoolVar(&f.private, "allow-private", false, "let agents reach loopback, link-local and private addresses")
	notifyFlag(fl, &f.notify, "all runs")
	fl.StringVar(&f.sandbox, "sandbox", "none", "limit the commands and coding agents that have no sandbox of their own, on Linux, by `level`: "+
		strings.Join(taskagent.SandboxLevels(), ", ")+" or none")
	term.DurationFlag(fl, &f.grace, "grace", defaultGrace, "time that running steps have to end when "+ends)
}

// The flags of bounds: numbers, sizes and times.
func countFlag(fl *pflag.FlagSet, n *int, b *operations.Bound, usage string) {
	fl.IntVar(n, b.Flag, int(b.Default), usage)
}

func sizeFlag(fl *pflag.FlagSet, text *string, b *operations.Bound, usage string) {
	fl.StringVar(text, b.Flag, b.String(), usage)
}

func timeFlag(fl *pflag.FlagSet, d *time.Duration, b *operations.Bound) {
	term.DurationFlag(fl, d, b.Flag, time.Duration(b.Default), b.Of)
}

// check reports flags that have no sense.
func (f *serveFlags) check() error {
	for b, n := range map[*operations.Bound]int{&operations.BoundOfConns: f.maxConns, &operations.BoundOfStreams: f.maxStreams} {
		if n < 1 {
			return fmt.Errorf("--%s %d: give a number of at least 1", b.Flag, n)
		}
	}
	if f.maxSessions < 0 {
		return fmt.Errorf("--max-sessions %d: give a number of sessions, or 0 for no limit", f.maxSessions)
	}
	switch {
	case f.Address == "":
	case f.sandbox != "none":
		return errors.New("--sandbox and --temporal: workers drive the runs, and not this process; write the sandbox into the definitions")
	case len(f.notify) > 0:
		return errors.New("--notify and --temporal: workers drive the runs, and not this process; write notify into the definitions, and set its variables for the workers")
	}
	if err := f.CheckHeartbeat(); err != nil {
		return err
	}
	return f.servedFlags.check()
}

func (f *servedFlags) check() error {
	for b, n := range map[*operations.Bound]int{&operations.BoundOfRuns: f.maxRuns, &operations.BoundOfClientRuns: f.maxClientRuns,
		&operations.BoundOfQueue: f.maxQueued} {
		if n < 0 {
			return fmt.Errorf("--%s %d: give a number of runs, or 0 for no limit", b.Flag, n)
		}
	}
	if f.sandbox != "none" {
		if !slices.Contains(taskagent.SandboxLevels(), f.sandbox) {
			return fmt.Errorf("--sandbox %s: give %s or none", f.sandbox, strings.Join(taskagent.SandboxLevels(), ", "))
		}
		if err := taskagent.SandboxCheck(f.sandbox); err != nil && f.sandbox != taskagent.SandboxBestEffort {
			return fmt.Errorf("--sandbox %s: %w", f.sandbox, err)
		}
	}
	return checkGrace(f.grace)
}

// limitOf reads a size; -1 if the flag says none.
func limitOf(b *operations.Bound, text string) (int64, error) {
	if text == "none" {
		return -1, nil
	}
	limit, ok := definition.ParseSize(text)
	if !ok {
		return 0, term.UsageError(fmt.Errorf("--%s %q: give a size such as %s or 1GB, or none", b.Flag, text, b))
	}
	return limit, nil
}

// orNone is a number as a config has it, in which 0 means the default.
func orNone(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// config changes to the folder of the definitions, because their paths are relative to it, and returns the config of the
// server.
func (f *servedFlags) config(e *term.Env, s *runstore.Stock) (server.Config, error) {
	storeName := s.Name(e)
	beside, err := s.Beside(e)
	if err != nil {
		return server.Config{}, term.Failure(err)
	}
	if err := os.Chdir(f.dir); err != nil {
		return server.Config{}, term.UsageError(fmt.Errorf("--dir: %w", err))
	}
	cfg := server.Config{Config: operations.Config{
		Service: s.Service, StoreName: storeName, Copies: trust.Copies(e.Getenv), AppName: runstore.AppName, UserID: runstore.UserName,
		ArtifactService: s.Files, MemoryService: s.Memory, Beside: beside, PluginConfig: e.Keeps.Plugins,
		Leases: supervisor.Leases{LeaseTTL: runstore.LeaseTTL}, Getenv: e.Getenv, Code: e.Code,
		Capacity: operations.Capacity{MaxClientRuns: orNone(f.maxClientRuns), MaxQueued: orNone(f.maxQueued)},
	}}
	if cfg.StateLimit, err = limitOf(&operations.BoundOfState, f.stateLimit); err != nil {
		return server.Config{}, err
	}
	if cfg.LogLimit, err = limitOf(&operations.BoundOfLog, f.logLimit); err != nil {
		return server.Config{}, err
	}
	cfg.LogLimitName = "the limit --" + operations.BoundOfLog.Flag
	cfg.OwnOnly = f.ownOnly
	cfg.Dir, cfg.AllowCommands, cfg.AllowPrivate, cfg.MaxRuns = ".", f.commands, f.private, f.maxRuns
	cfg.AllowSecretEnv = f.secretEnv
	if f.sandbox != "none" {
		cfg.Sandbox = &taskagent.Sandbox{Level: f.sandbox}
	}
	cfg.Accepts = func(hash string) bool {
		k, err := trust.Open(e.Getenv)
		return err == nil && k.Accepts(hash)
	}
	cfg.Version, cfg.Log = term.Version(), slog.New(slog.NewTextHandler(e.Stderr, nil))
	if o := e.Telemetry.Observer(); o != nil {
		cfg.Observe, cfg.Around = e.Telemetry.Observe, o.Handler
		cfg.Log = slog.New(telemetry.LogHandler(cfg.Log.Handler()))
	}
	e.Telemetry.Live()
	return cfg, nil
}

// untilStopped waits for a signal, or until the server has stopped serving, and then stops the server in order.
func untilStopped(ctx context.Context, e *term.Env, srv *server.Server, served <-chan error, grace time.Duration) error {
	var err error
	stopped := false
	select {
	case err = <-served:
	case <-ctx.Done():
		stopped = true
		fmt.Fprintf(e.Stderr, "Pausing the runs after their running steps, within %s. Ctrl-C again cuts the steps off.\n", grace)
	}
	ctx, cut := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cut()
	release := term.OnInterrupt(ctx, func(os.Signal) { cut() })
	defer release()
	err = errors.Join(err, srv.Shutdown(ctx))
	if stopped {
		err = errors.Join(err, <-served)
	}
	if err != nil {
		return term.Failure(err)
	}
	if stopped {
		fmt.Fprintln(e.Stderr, "Stopped. The runs that are paused now go on when the server is started again.")
	}
	return nil
}

// listens reports whether the host of an address stands for all addresses of the machine, and whether only the machine itself
// can reach it.
func listens(host string) (any, local bool) {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified(), host == "localhost" || ip != nil && ip.IsLoopback()
}

// names returns the host names by which browsers may reach the server.
func names(host string, any bool, given []string) []string {
	if !any {
		return append([]string{host}, given...)
	}
	if name, err := os.Hostname(); err == nil {
		given = append(given, name)
	}
	return given
}

// browseAddress returns the address that a browser on this machine uses.
func browseAddress(addr string, any bool) string {
	_, port, err := net.SplitHostPort(addr)
	if !any || err != nil {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", port)
}

func NewMCP(e *term.Env) *cobra.Command {
	var f servedFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Run definitions as tools of a coding agent (MCP)",
		Long: `Serve the definitions of a folder and the runs of a store to one client of the Model
Context Protocol, over standard input and output. Clients such as coding agents start this
command themselves. doc/server.md lists the tools. refrain serve offers the same at /mcp.

Definitions that are in the folder at the start may do anything, as with refrain run. One
that is new or has changed since then, or whose commands name a file that has, starts
programs only when the user accepts it in the client, or with refrain trust FILE.
Definitions that the client sends start no programs unless you give --allow-commands, and agents reach no
loopback, link-local or private addresses unless you give --allow-private.

When the client disconnects, running steps end and their runs are paused. The runs go on
when refrain mcp or refrain serve is started again with the same store.`,
		Example: `  claude mcp add refrain -- refrain mcp --dir loops
  {"mcpServers": {"refrain": {"command": "refrain", "args": ["mcp", "--dir", "loops"]}}}`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return serveMCP(cmd.Context(), e, f)
		},
	}
	f.add(cmd.Flags(), "the client sends", "the client disconnects")
	return cmd
}

func serveMCP(ctx context.Context, e *term.Env, f servedFlags) error {
	child.Shield()
	s, err := runstore.MakeStock(ctx, e, f.store, "")
	if err != nil {
		return err
	}
	defer s.Close()
	cfg, err := f.config(e, s)
	if err != nil {
		return err
	}
	to, err := notifyOf(e, f.notify)
	if err != nil {
		return err
	}
	notifier := s.Notifier(e, to, true, "", func(ctx context.Context, id string) string { return s.Served(ctx, e, id) })
	defer closeNotifier(ctx, notifier)
	cfg.Observe = observed(cfg.Observe, notifier.Observe)
	srv, err := server.New(cfg)
	if err != nil {
		return term.Failure(err)
	}
	if err := srv.Recover(ctx); err != nil {
		term.PrintError(e.Stderr, err) // the other runs go on
	}
	notifier.Later()
	if in, ok := e.Stdin.(*os.File); ok && term.IsTerminal(in) {
		fmt.Fprintln(e.Stderr,
			"refrain mcp reads requests of the Model Context Protocol from stdin; a coding agent starts it by itself. Ctrl-D ends it.")
	}
	served := make(chan error, 1)
	go func() { served <- srv.ServeMCP(e.Stdin, term.Exactly(e.Stdout)) }()
	return untilStopped(ctx, e, srv, served, f.grace)
}
