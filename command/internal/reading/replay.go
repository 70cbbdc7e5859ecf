// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/replay"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// replayFlags are the flags of refrain replay.
type replayFlags struct {
	store, file, match string
	live               []string
	json               bool
}

// The values of --match.
const (
	matchOrder = "order"
	matchExact = "exact"
)

// NewReplay returns refrain replay, which plays recorded runs again.
func NewReplay(e *term.Env) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay RUN|FILE...",
		Short: "Play runs again with their recorded answers, also under a changed definition",
		Long: `Play runs again. The answers of models, commands, HTTP servers, other agents and people
come from the log, so that no model is asked and no process started. A run is one of
the store, or a file that refrain export or refrain run --record has written.

A replay fails if the run comes to another end: another reason, other iterations,
another result or another state. It also fails if an agent asks its model more or less
often, is offered other tools, or calls tools otherwise. With --definition the run is
played through a changed definition, and each request to a model that the change
alters is shown, word by word. With --match exact such a request fails the replay.
The query, the state and the defaults of inputs are those of the changed definition;
what a person or client gave the run stays.

With --live the model of an agent is asked for real, and all other answers come from
the log. Then the result and the state may differ.

Exit codes: 0 the same end, 1 another end, 2 a run that cannot be replayed.`,
		Example: `  refrain replay last --definition loop.yaml
  refrain replay testdata/*.jsonl --definition loop.yaml --match exact
  refrain replay last --live critic`,
		RunE: func(cmd *cobra.Command, args []string) error { return runReplay(cmd.Context(), e, &f, args) },
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.file, "definition", "", "play the runs through the definition in `FILE`")
	_ = cmd.MarkFlagFilename("definition", "yaml", "yml")
	fl.StringVar(&f.match, "match", matchOrder, "`order` shows requests that have changed, exact fails because of them")
	fl.StringArrayVar(&f.live, "live", nil, "ask the real model of this `agent`; repeat the flag for more agents")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	return cmd
}

func runReplay(ctx context.Context, e *term.Env, f *replayFlags, names []string) error {
	if f.match != matchOrder && f.match != matchExact {
		return term.UsageError(fmt.Errorf("--match %s: give order or exact", f.match))
	}
	cfg := replay.Config{Code: e.Code, Exact: f.match == matchExact, Live: make(map[string]bool),
		Model: func(ctx context.Context, name string) (model.LLM, error) { return provider.Open(ctx, name, e.Getenv) }}
	for _, name := range f.live {
		cfg.Live[name] = true
	}
	if f.file != "" {
		var err error
		if cfg.Definition, err = deffile.Load(e, f.file); err != nil {
			return term.UsageError(err)
		}
	}
	all := []*replay.Report{}
	same := true
	for _, name := range names {
		rep, err := replayOne(ctx, e, f, cfg, name)
		if err != nil {
			return err
		}
		all, same = append(all, rep), same && rep.Same()
		if f.json {
			continue
		}
		if err := term.Report(e, false, nil, rep.WriteText); err != nil {
			return err
		}
	}
	if f.json {
		if err := term.Report(e, true, map[string]any{"runs": all}, func(io.Writer) error { return nil }); err != nil {
			return err
		}
	}
	if !same {
		return &term.Exit{Code: term.ExitFailed}
	}
	return nil
}

// replayOne replays a run.
func replayOne(ctx context.Context, e *term.Env, f *replayFlags, cfg replay.Config, name string) (*replay.Report, error) {
	run, err := runstore.Open(ctx, e, f.store, name)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	if run.Len() == 0 {
		return nil, term.UsageError(fmt.Errorf("%s: there are no events", name))
	}
	rec, err := replay.Read(run.Run, &e.Code)
	if err == nil {
		err = knows(cfg, rec)
	}
	var rep *replay.Report
	if err == nil {
		rep, err = rec.Replay(ctx, cfg)
	}
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, term.UsageError(fmt.Errorf("%s: cannot be replayed: %w", name, err))
	}
	return rep, nil
}

// knows returns an error for an agent of --live that asks no model.
func knows(cfg replay.Config, rec *replay.Recording) error {
	def := rec.Definition
	if cfg.Definition != nil {
		def = cfg.Definition
	}
	var asking []string
	for a := range def.Root.All {
		if a.Type == definition.TypeLLM {
			asking = append(asking, a.Name)
		}
	}
	for name := range cfg.Live {
		if !slices.Contains(asking, name) {
			return fmt.Errorf("--live %s: no agent of this name asks a model; they are: %q", name, asking)
		}
	}
	return nil
}
