// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// runFlags are the flags of refrain run.
type runFlags struct {
	set         map[string]string
	limits      limitFlags
	progress    string
	session     string
	root        string
	model       string
	record      string
	zeroOnLimit bool
}

func newRun(e *env) *cobra.Command {
	var f runFlags
	var sets []string
	cmd := &cobra.Command{
		Use:   "run FILE [INPUT]",
		Short: "Run a definition",
		Long: `Run a definition. INPUT is what the user asks, {{user_input}} in the definition;
"-" reads it from standard input. The answer goes to stdout, progress to stderr.

Exit codes: 0 completed, 1 failed, 2 wrong usage or invalid definition, 3 stopped
by a limit before its own criterion, 130 interrupted.

A model is named as provider/name, such as openai/gpt-5-mini; doc/models.md lists
the providers and the keys that they need.`,
		Example: `  refrain run loop.yaml "Write a document about a cat"
  refrain run examples/compress/loop.yaml --set file=README.md
  refrain run loop.yaml --max-iterations 3 --timeout 10m --progress json
  refrain run loop.yaml --budget-tokens 50000 --record run.jsonl
  refrain run examples/document/loop.yaml --model ollama/qwen3 "Write a document about a cat"
  cat brief.txt | refrain run loop.yaml -`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("progress") {
				if p := e.getenv("REFRAIN_PROGRESS"); p != "" {
					f.progress = p
				}
			}
			var err error
			if f.set, err = parseSets(sets); err != nil {
				return err
			}
			input, err := readInput(args[1:], e.stdin)
			if err != nil {
				return err
			}
			return runFile(cmd.Context(), e, f, args[0], input)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&sets, "set", nil, "set an input of the definition, as `key=value`; may be given again")
	f.limits.add(fl)
	fl.StringVar(&f.progress, "progress", "auto", "how to show progress: auto, plain, json or quiet (env REFRAIN_PROGRESS)")
	fl.StringVar(&f.model, "model", "", "`provider/name` of the model that all agents ask, whatever the definition says; env REFRAIN_MODEL is only for those for which it says nothing")
	fl.StringVar(&f.session, "session", "", "`ID` of the conversation thread; made up if not given")
	fl.StringVar(&f.record, "record", "", "write every event of the run to a new `FILE`, a line of JSON each, for refrain verify and refrain backtest")
	fl.StringVar(&f.root, "root", ".", "`directory` that commands may not leave")
	fl.BoolVar(&f.zeroOnLimit, "exit-zero-on-limit", false, "exit with 0 instead of 3 if a limit stopped the run")
	return cmd
}

func parseSets(sets []string) (map[string]string, error) {
	m := make(map[string]string, len(sets))
	for _, s := range sets {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--set %q: write it as key=value", s)
		}
		m[k] = v
	}
	return m, nil
}

// maxInput bounds what is read from standard input.
const maxInput = 10 << 20

func readInput(args []string, stdin io.Reader) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] != "-" {
		return args[0], nil
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(b) > maxInput {
		return "", fmt.Errorf("standard input is larger than %d MiB", maxInput>>20)
	}
	return strings.TrimRight(string(b), "\n"), nil
}

// runFile loads a definition and runs it to its end.
func runFile(ctx context.Context, e *env, f runFlags, file, input string) error {
	out, err := newOutput(e, f.progress)
	if err != nil {
		return err
	}
	def, err := definition.Load(file)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	def.Warnings().Format(e.stderr)
	state, err := def.InitialState(f.set)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	build, closeTools, err := buildConfig(ctx, e, f, def)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer closeTools()
	root, err := def.Build(ctx, build)
	if late, ok := errors.AsType[*definition.InitError](err); ok {
		return &exitError{exitFailed, late}
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	cfg := agent.RunConfig{Prices: def.Prices}
	if cfg.Budget, err = f.limits.budget(); err != nil {
		return err
	}
	if cfg.MaxLLMCalls, err = f.limits.maxModelCalls(def); err != nil {
		return err
	}
	store, closeStore, err := newStore(f.record)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer closeStore()
	r, err := runner.New(runner.Config{
		AppName: "refrain", Agent: root, Durable: true, AutoCreateSession: true,
		SessionService:  store,
		ArtifactService: artifact.InMemoryService(),
		MemoryService:   memory.InMemoryService(),
	})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if f.session == "" {
		f.session = "r_" + uuid.NewString()[:8]
	}
	return follow(ctx, r, out, request{
		file: file, definition: def.Name, session: f.session, input: input, state: state, config: cfg, zeroOnLimit: f.zeroOnLimit,
	})
}

// newStore is where the session is kept: in memory and, if it is to be recorded,
// in a file.
func newStore(record string) (session.Service, func() error, error) {
	store := session.InMemoryService()
	if record == "" {
		return store, func() error { return nil }, nil
	}
	r, err := newRecorder(store, record)
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

// request is what a run is asked to do.
type request struct {
	file, definition, session, input string
	state                            map[string]any
	config                           agent.RunConfig
	zeroOnLimit                      bool
}

// follow runs the request and shows what happens.
func follow(ctx context.Context, r *runner.Runner, out output, req request) error {
	if err := out.started(req); err != nil {
		return &exitError{exitFailed, err}
	}
	msg := genai.NewContentFromText(req.input, genai.RoleUser)
	var fold progress.Fold
	var diagnosis progress.Diagnosis
	var failed error
	var waiting []string
	for ev, err := range r.Run(ctx, "user", req.session, msg, req.config, runner.WithStateDelta(req.state)) {
		if err == nil {
			diagnosis.Add(ev)
			asked := questions(ev)
			waiting = append(waiting, asked...)
			err = out.event(ev, append(fold.Add(ev), asked...), &fold)
		}
		if err != nil {
			failed = hinted(err)
			break
		}
	}
	if failed == nil {
		failed = unanswered(waiting)
	}
	res := result{err: failed, answer: fold.Answer(), stop: fold.Stop(), findings: diagnosis.Findings()}
	res.code = exitCode(failed, fold.Stops(), req.zeroOnLimit)
	err := out.finished(req, res)
	switch {
	case res.code == exitFailed:
		return &exitError{res.code, failed}
	case err != nil:
		return &exitError{exitFailed, err}
	case res.code == exitOK:
		return nil
	}
	return &exitError{code: res.code}
}
