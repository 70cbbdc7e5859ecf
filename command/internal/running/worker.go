// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/stephost"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/telemetry/metrics"
)

// workerFlags are the flags of refrain worker.
type workerFlags struct {
	clusters.Flags
	store, dir, steps string
	maxRuns           int
	grace             time.Duration
	metrics           string
}

const (
	workerRuns  = 50
	workerGrace = 30 * time.Second
)

func NewWorker(e *term.Env) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Drive runs of a Temporal cluster",
		Long: `Drive the runs of a Temporal task queue. Start as many workers as you like, on any
machines; all workers need the same store, in PostgreSQL. If a worker dies, another worker
continues its runs at the first step that has not ended. See doc/temporal.md.

The worker connects to the server of --temporal, or else of TEMPORAL_ADDRESS, or else to
localhost:7233. TEMPORAL_TLS, TEMPORAL_API_KEY and the other variables of Temporal's
programs apply, as does their configuration file.

Workers need what definitions need: programs, API keys of models, files, and the variables
of notify. The programs of a run work in the folder in which the run was started. A worker
without this folder uses the folder of --dir; without --dir the worker pauses a run that
starts programs. If steps of a run share files, all workers need a shared folder.

With --steps the worker only does steps whose definition has this task_queue, for runs
that other workers drive. Such a worker needs no store. Commands run in the folder of
--dir, with the programs, keys and network of this machine.

At Ctrl-C or SIGTERM the worker waits for running steps to end, for at most --grace, and
hands its runs over to other workers. The second signal ends the worker at once; other
workers then repeat the steps that were running.`,
		Example: `  refrain worker --temporal localhost:7233 --store postgres://user@host/refrain
  REFRAIN_STORE=postgres://user@host/refrain refrain worker --dir /srv/loops --max-runs 20
  refrain worker --steps gpu --temporal localhost:7233 --dir /srv/work`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			if f.steps == "" {
				if err := clusters.SharedStore(e, f.store); err != nil {
					return err
				}
			}
			if e.Cluster == nil {
				return clusters.HandOver(cmd.Context(), e)
			}
			return f.run(cmd.Context(), e)
		},
	}
	fl := cmd.Flags()
	f.Add(fl, "`host:port` of the Temporal server (env TEMPORAL_ADDRESS; default localhost:7233)")
	f.AddQueue(fl)
	fl.StringVar(&f.store, "store", "", "store of the runs, which all workers share: `postgres:DSN` (env REFRAIN_STORE)")
	fl.StringVar(&f.dir, "dir", "", "`folder` for runs whose own folder is not on this machine")
	fl.StringVar(&f.steps, "steps", "", "only do steps whose definition has this `name` as task_queue")
	fl.IntVar(&f.maxRuns, "max-runs", workerRuns, "drive at most this many runs at once; with --steps, do at most this many steps at once")
	f.AddHeartbeat(fl)
	term.DurationFlag(fl, &f.grace, "grace", workerGrace, "time that running steps have to end when the worker stops")
	fl.StringVar(&f.metrics, "metrics", "", "serve /metrics for Prometheus at this `host:port`, without a token; \"\" serves no metrics")
	return cmd
}

func (f *workerFlags) check(fl *pflag.FlagSet) error {
	for _, name := range []string{"store", "task-queue", "heartbeat", "metrics"} {
		if f.steps != "" && fl.Changed(name) {
			return fmt.Errorf("--%s and --steps: a worker for steps drives no runs; leave out one of the two flags",
				name)
		}
	}
	for _, name := range []string{"temporal", "namespace", "task-queue", "dir", "steps"} {
		if fl.Changed(name) && fl.Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s: give a value", name)
		}
	}
	if f.maxRuns < 1 {
		return fmt.Errorf("--max-runs %d: give at least 1", f.maxRuns)
	}
	if err := f.CheckHeartbeat(); err != nil {
		return err
	}
	return checkGrace(f.grace)
}

// run works until a signal arrives.
func (f *workerFlags) run(ctx context.Context, e *term.Env) error {
	child.Shield()
	if f.dir != "" {
		dir, err := filepath.Abs(f.dir)
		if err == nil {
			err = os.Chdir(dir) // models and cards in files have paths relative to this folder
		}
		if err != nil {
			return term.UsageError(fmt.Errorf("--dir: %w", err))
		}
		f.dir = dir
	}
	c, err := f.Dial(ctx, e)
	if err != nil {
		return err
	}
	defer c.Close()
	if f.steps != "" {
		return f.doSteps(ctx, e, c)
	}
	s, err := runstore.MakeWorkerStock(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer s.Close()
	log := slog.New(slog.NewTextHandler(e.Stderr, nil))
	cfg := s.Supervising(e)
	e.Telemetry.Live()
	env := program.Env{Code: e.Code, Getenv: e.Getenv, Check: f.place,
		Report: func(err error) { log.Warn("a run reports", "error", err) }}
	cfg.Driver, cfg.OnEvent = f.Driver(), func(id string, ev *session.Event) { tell(log, id, ev) }
	counts := metrics.New(metrics.Config{Version: term.ShortVersion()})
	if f.metrics != "" {
		counts.Observe(&cfg)
		stop, err := serveMetrics(f.metrics, counts, log)
		if err != nil {
			return term.Failure(err)
		}
		defer stop()
	}
	page := func(ctx context.Context, id string) string { return s.Served(ctx, e, id) }
	if base := e.Getenv("REFRAIN_URL"); base != "" {
		page = pagesBelow(base)
	}
	notifier := s.Notifier(e, nil, true, "", page)
	defer closeNotifier(ctx, notifier)
	notifier.Observe(&cfg)
	notifier.Later()
	fmt.Fprintf(e.Stderr, "refrain drives runs of Temporal at %s, task queue %s, as %s\n", c.Where(), f.Queue, cfg.Owner)
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintf(e.Stderr, "Handing the runs over after their running steps, within %s.\n", f.grace)
	})()
	err = c.Work(ctx, cluster.Worker{Supervisor: cfg, Env: env, MaxRuns: f.maxRuns, Grace: f.grace, Log: log,
		Watch: counts.Watch})
	if err != nil {
		return term.Failure(err)
	}
	fmt.Fprintln(e.Stderr, "Stopped. Other workers continue the runs.")
	return nil
}

// doSteps does the steps of a task queue until a signal arrives.
func (f *workerFlags) doSteps(ctx context.Context, e *term.Env, c cluster.Client) error {
	fmt.Fprintf(e.Stderr, "refrain does steps of Temporal at %s, task queue %s\n", c.Where(), f.steps)
	defer context.AfterFunc(ctx, func() { fmt.Fprintf(e.Stderr, "Ending the running steps, within %s.\n", f.grace) })()
	err := c.Steps(ctx, cluster.Steps{Queue: f.steps, Host: stephost.Config{Getenv: e.Getenv}, MaxSteps: f.maxRuns,
		Grace: f.grace})
	if err != nil {
		return term.Failure(err)
	}
	fmt.Fprintln(e.Stderr, "Stopped.")
	return nil
}

// serveMetrics serves the metrics to Prometheus until stop is called.
func serveMetrics(addr string, counts *metrics.Collector, log *slog.Logger) (stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", counts.Handler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // Serve returns when the server is closed
	}()
	log.Info("tells Prometheus", "address", "http://"+l.Addr().String()+"/metrics")
	return func() { _ = srv.Close(); <-served }, nil
}

// place sets the folder of the run on this machine, if the run's agents start programs.
func (f *workerFlags) place(p *program.Program, def *definition.Definition) error {
	var missing error
	for _, dir := range []string{p.Dir, p.Root} {
		if missing = program.IsFolder(dir); missing != nil {
			break
		}
	}
	needed := false
	for a := range def.Root.All {
		field, _ := a.Starts()
		needed = needed || field != ""
	}
	switch {
	case missing == nil || !needed:
		return nil
	case f.dir == "":
		return fmt.Errorf("the run was started in a folder that the worker does not have: %w; share the folder under "+
			"this path, start the worker with --dir FOLDER, or give the run to the task queue of a machine that has the folder",
			missing)
	}
	return p.MoveTo(f.dir)
}

// tell logs what happens to a run.
func tell(log *slog.Logger, id string, ev *session.Event) {
	if ev.Mark == nil {
		return
	}
	switch ev.Mark.Kind {
	case mark.KindRunTaken:
		log.Info("takes a run", "run", id)
	case mark.KindRunPaused:
		var d mark.RunPaused
		_ = ev.Mark.Decode(&d)
		if len(d.Waits) > 0 {
			log.Info("leaves a run: it waits for a person", "run", id, "questions", len(d.Waits))
			return
		}
		say := "leaves a run: it is paused"
		if progress.Summarize([]*session.Event{ev}).HandOver {
			say = "hands a run over"
		}
		log.Info(say, "run", id, "by", runstore.OwnerText(d.By), "reason", d.Reason)
	case mark.KindRunEnded:
		var d mark.RunEnded
		_ = ev.Mark.Decode(&d)
		if d.Error != "" {
			log.Info("a run has ended", "run", id, "status", d.Status, "error", d.Error)
			return
		}
		log.Info("a run has ended", "run", id, "status", d.Status)
	}
}
