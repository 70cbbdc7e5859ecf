// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// consoleFlags are the flags of refrain console.
type consoleFlags struct {
	store, session, model, streaming string
	sets                             []string
	grace                            time.Duration
	limits                           deffile.Limits
}

func NewConsole(e *term.Env) *cobra.Command {
	var f consoleFlags
	cmd := &cobra.Command{
		Use:   "console [FILE]",
		Short: "Talk with a definition or an agent",
		Long: `Talk with a definition or an agent of the program. Each line that you type is a request.
What the agents say goes to stdout. All requests of a console belong to one conversation.
The console also asks for the confirmations and answers that a run needs. The line /help
shows what you can type; /exit or Ctrl-D ends the console.

The first Ctrl-C pauses the run after the step that is running, the second cuts that step
off, and the third leaves at once. If the last console of this definition left a run
unfinished, for example because its process was killed, the next console continues it.`,
		Example: `  refrain console loop.yaml
  refrain console loop.yaml --session r_1f0c3a2b`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(deffile.WithOnly(e, args)) == 0 {
				return errors.New("no definition is given; write: refrain console FILE")
			}
			return term.Args(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch f.streaming {
			case "sse", "none":
			default:
				return fmt.Errorf("--streaming %q: use sse to see answers as they arrive, or none", f.streaming)
			}
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), e, deffile.WithOnly(e, args)[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.session, "session", "", "`ID` of the conversation to continue (default: the last console's if its run is "+
		"unfinished, otherwise a new one)")
	fl.StringVar(&f.model, "model", "", "`provider/name` of the model for all agents, in place of the definition's")
	addSets(fl, &f.sets)
	f.limits.Add(fl)
	fl.StringVar(&f.streaming, "streaming", "sse", "show answers of models as they arrive (sse) or whole (none)")
	graceFlag(fl, &f.grace)
	return cmd
}

func (f *consoleFlags) check() error {
	if f.session != "" {
		if err := runstore.CheckID(f.session); err != nil {
			return fmt.Errorf("--session: %w", err)
		}
	}
	return checkGrace(f.grace)
}

// console is a conversation with a definition: one session, with one run per request.
type console struct {
	*consoleFlags
	e    *term.Env
	s    *runstore.Stock
	file string
	p    *program.Program
	def  *definition.Definition
	set  map[string]any // inputs of each run
	id   string
	keys *keyboard
}

func (f *consoleFlags) run(ctx context.Context, e *term.Env, file string) error {
	c := &console{consoleFlags: f, e: e, file: file, id: f.session,
		keys: newKeyboard(e)}
	var err error
	if c.p, c.def, err = deffile.NewProgram(e, file, f.model, ".", &f.limits); err != nil {
		return err
	}
	set, err := deffile.ParseSets(f.sets)
	if err == nil {
		c.set, err = deffile.InitialState(c.def, set)
	}
	if err != nil {
		return term.UsageError(err)
	}
	c.p.Console, c.p.Streams = true, f.streaming == "sse"
	c.def.Warnings().Format(e.Stderr)
	if c.s, err = runstore.MakeStock(ctx, e, f.store, ""); err != nil {
		return err
	}
	defer c.s.Close()
	left, err := c.left(ctx)
	if err != nil {
		return err
	}
	if c.id == "" {
		c.id = supervisor.NewID()
	}
	var last error // of the last request
	if left {
		last, err = c.settle(ctx, c.goOn(ctx))
	}
	if term.KeyboardOf(e.Stdin) != nil {
		fmt.Fprintf(e.Stderr, "Talking with %s, run %s. /help shows what you can type.\n", brief.Clean(c.def.Name), c.id)
	}
	for err == nil {
		var line string
		if line, err = c.keys.ask(ctx, "user> "); err != nil {
			break
		}
		switch line {
		case "":
		case "/help":
			fmt.Fprintf(e.Stderr, consoleHelp, c.id)
		case "/exit":
			err = errNoMore
		default:
			last, err = c.settle(ctx, c.turn(ctx, line))
		}
	}
	if errors.Is(err, errNoMore) {
		err = nil
		if last != nil {
			err = &term.Exit{Code: term.ExitFailed, Err: errors.New("the last run of the console has failed; see refrain show last")}
		}
	}
	return err
}

const consoleHelp = `Each line that you type is a request. Besides:
  /help   this text
  /exit   leave; so does Ctrl-D
  Ctrl-C  pause the run after its step; again to cut that step off, and again to leave
This conversation is run %[1]s: continue it with --session %[1]s, see it with refrain show %[1]s.
`

// left looks for the run that the console continues: the unfinished run of its session or, if the console has no session yet,
// the unfinished run of the newest console. It reports whether there is one.
func (c *console) left(ctx context.Context) (bool, error) {
	sup, err := c.s.Supervise(c.e, nil)
	if err != nil {
		return false, err
	}
	defer sup.Close(ctx)
	open, err := sup.ListOpen(ctx)
	if err != nil && len(open) == 0 {
		return false, term.Failure(err)
	}
	var newest time.Time
	for _, info := range open {
		if c.session != "" && info.ID != c.session || !info.Run.Started.After(newest) {
			continue
		}
		ours, err := c.mine(ctx, sup, info)
		if err != nil {
			return false, err
		}
		if ours {
			c.id, newest = info.ID, info.Run.Started
		}
	}
	return !newest.IsZero(), nil
}

// mine reports whether the console may continue a run. The run must belong to a console of the same program and definition, or
// to the session of --session, and no other process may drive it.
func (c *console) mine(ctx context.Context, sup *supervisor.Supervisor, info supervisor.Info) (bool, error) {
	held, err := sup.Driver(ctx, info.ID)
	if err != nil {
		return false, term.Failure(err)
	}
	if held != nil && !lease.Dead(held.Owner) {
		return false, nil
	}
	if c.session != "" {
		return true, nil
	}
	view, _, err := c.s.View(ctx, info.ID)
	if err != nil {
		return false, term.Failure(err)
	}
	p, err := program.Of(view)
	return err == nil && p.Console && p.Program == c.p.Program && info.Run.Name == c.def.Name, nil
}

// turn starts a run for a request, and follows it to its end.
func (c *console) turn(ctx context.Context, input string) error {
	started, err := c.p.Started(c.def)
	if err != nil {
		return err
	}
	prog, err := deffile.Build(ctx, c.e, c.s.Name(c.e), c.p, c.def)
	if err != nil {
		return err
	}
	fo, err := live.NewFollower(c.e, c.s, term.Chat, c.def, live.Request{File: c.file, Session: c.id,
		Config: prog.RunConfig, Most: c.p.Most(c.def)}, c.grace)
	if err != nil {
		prog.Close()
		return err
	}
	return fo.Follow(ctx, func(ctx context.Context) (*supervisor.Run, error) {
		return fo.Supervisor.Start(ctx, supervisor.Request{SessionID: c.id, State: maps.Clone(c.set), Started: started, Program: prog,
			Message: genai.NewContentFromText(input, genai.RoleUser)})
	})
}

// goOn continues the run of the session, and follows the run to its end.
func (c *console) goOn(ctx context.Context) error {
	return resumeIn(ctx, c.e, c.s, resumeFlags{shown: term.Shown{Mode: term.Chat}, grace: c.grace}, c.id)
}

// settle asks the questions of a waiting run and continues the run, until the run waits no longer. failed is the error of a
// failed run; it is already printed, and the conversation goes on. err ends the console.
func (c *console) settle(ctx context.Context, end error) (failed, err error) {
	for {
		exit, ok := errors.AsType[*term.Exit](end)
		switch {
		case end == nil, ok && exit.Code == term.ExitLimit:
			return nil, nil
		case !ok || exit.Code == term.ExitInterrupted:
			return nil, end
		case exit.Code != term.ExitWaits:
			term.PrintError(c.e.Stderr, end)
			return end, nil
		}
		asked, err := c.keys.answerAll(ctx, c.s, c.id)
		if errors.Is(err, errNoMore) {
			fmt.Fprintln(c.e.Stderr, "(the run waits for the answer; the next console asks again)")
			return nil, &term.Exit{Code: term.ExitWaits}
		}
		if err != nil {
			return nil, err
		}
		if !asked { // somebody else has paused the run
			return nil, end
		}
		end = c.goOn(ctx)
	}
}

// leaves returns a context that the first Ctrl-C at a prompt ends.
func leaves(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := term.OnInterrupt(ctx, func(os.Signal) { cancel(term.ErrInterrupted) })
	return ctx, func() { release(); cancel(nil) }
}
