// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/codingloop"
	"github.com/refrain-dev/refrain/command/internal/plan"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
)

// refrain is the program of the steps that are hidden commands. A definition with it runs wherever this program is: see
// definition.BuildConfig.
const refrain = "refrain"

// planStepName is the name of the hidden command whose verbs are steps of a plan.
const planStepName = "plan-step"

// NewPlanStep makes the hidden command whose verbs are steps of the definition of refrain loop --plan. What a step decides is its
// output, so it is in the log of the run.
func NewPlanStep(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use: planStepName + " next|tick|mark|end [PLAN COPY]", Hidden: true, Short: "Do a step of refrain loop --plan",
		Args: cobra.RangeArgs(1, 3),
		RunE: func(_ *cobra.Command, args []string) error {
			out, err := planVerb(e, args)
			if err != nil {
				return term.Failure(err)
			}
			return json.NewEncoder(e.Stdout).Encode(out)
		},
	}
}

func planVerb(e *term.Env, args []string) (any, error) {
	var ticked plan.Ticked
	if text := os.Getenv("INPUT_TICKED"); text != "" {
		if err := json.Unmarshal([]byte(text), &ticked); err != nil {
			return nil, fmt.Errorf("read the progress of the plan: %w", err)
		}
	}
	if args[0] == "end" {
		if ticked.Over && len(ticked.Failed) > 0 {
			return nil, fmt.Errorf("%d of %d tasks failed: %s", len(ticked.Failed), ticked.Total, strings.Join(ticked.Failed, "; "))
		}
		return ticked.Open, nil
	}
	if len(args) != 3 {
		return nil, errors.New("give the file of the plan, and the file of its copy")
	}
	p, err := readPlan(args[1])
	if err != nil {
		return nil, err
	}
	s := planStep{getenv: os.Getenv, plan: p}
	switch args[0] {
	case "mark":
		return nil, s.write(args[2], ticked.Progress)
	case "next":
		return s.next(args[2], ticked.Progress)
	case "tick":
		return s.tick(e.Stdin, args[2])
	}
	return nil, fmt.Errorf("there is no step %q; give next, tick, mark or end", args[0])
}

// planStep is a step, with its plan.
type planStep struct {
	getenv func(string) string
	plan   *plan.Plan
}

// readPlan reads the plan in a file.
func readPlan(file string) (*plan.Plan, error) {
	info, err := os.Stat(file)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > plan.MostText) {
		err = fmt.Errorf("%s is no file of text with at most %d bytes", file, plan.MostText)
	}
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = isText(string(text))
	}
	if err != nil {
		return nil, fmt.Errorf("read the plan %s: %w", file, err)
	}
	p, err := plan.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// next returns the task to work on, and writes the plan into the copy, with the boxes of the tasks that are done.
func (s *planStep) next(file string, g plan.Progress) (any, error) {
	n := s.plan.Next(g, s.getenv("INPUT_UNTIL"), filesBefore(s.getenv("INPUT_FILES")))
	if n.Key != "" && n.Command == "" {
		return nil, noCommand(n.Title)
	}
	return n, s.write(file, g)
}

// filesBefore returns the value of [runfiles.Work].Restore for the files of a state: their tree, and the edits in it after a space.
func filesBefore(text string) string {
	if strings.HasPrefix(text, " ") { // the state has no tree before a step has changed it
		return runfiles.StartFiles + text
	}
	return cmp.Or(text, runfiles.StartFiles)
}

// noCommand is the error for a task that no command decides.
func noCommand(title string) error {
	return fmt.Errorf("no command finds out whether the task %q is done; give --until, or add the section "+
		"\"## Validation Commands\" to the plan", title)
}

// tick decides with the exit code of the task's command whether the task is done.
func (s *planStep) tick(stdin io.Reader, file string) (any, error) {
	next := plan.Next{Key: s.getenv("INPUT_KEY"), Title: s.getenv("INPUT_TITLE")}
	if err := json.Unmarshal([]byte(s.getenv("INPUT_PROGRESS")), &next.State); err != nil {
		return nil, fmt.Errorf("read the task of the plan: %w", err)
	}
	said, err := io.ReadAll(stdin)
	if err != nil {
		return nil, err
	}
	tries, err := strconv.Atoi(s.getenv("INPUT_TRIES"))
	if err != nil {
		return nil, fmt.Errorf("read the number of tries: %w", err)
	}
	t := s.plan.Tick(next, plan.Outcome{Succeeded: s.getenv("INPUT_CODE") == "0", Output: string(said), Tries: tries,
		Stop: s.getenv("INPUT_ON_FAILURE") == "stop"})
	return t, s.write(file, t.Progress)
}

// write writes the plan with its boxes into the copy.
func (s *planStep) write(file string, g plan.Progress) error {
	root, err := os.OpenRoot(".")
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	defer root.Close()
	text := s.plan.Marked(s.plan.Marks(g))
	if known, err := root.ReadFile(file); err == nil && string(known) == text {
		return nil
	}
	if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // the agent may have made it a link
		return fmt.Errorf("write the plan: %w", err)
	}
	if err := root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if err := root.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// tries is how often the command of a task may fail.
const tries = 3

// tasks reads the plan of --plan, and chooses the branch and the number of iterations if no flag does.
func (f *loopFlags) tasks() (*codingloop.Plan, error) {
	file, err := filepath.Abs(f.plan)
	if err != nil {
		return nil, wrong("--plan: %w", err)
	}
	root, err := filepath.Abs(f.run.root)
	if err != nil {
		return nil, wrong("--plan: %w", err)
	}
	name, err := filepath.Rel(root, file)
	if err != nil || !filepath.IsLocal(name) {
		return nil, wrong("--plan: %s is not below the folder %s, so the branch cannot have it; move it", f.plan, root)
	}
	p, err := readPlan(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, wrong("--plan: there is no file %s; write tasks into it, such as \"- [ ] Add a flag for the port\", a line each", f.plan)
	}
	if err != nil {
		return nil, wrong("--plan: %w", err)
	}
	next := p.Next(plan.Progress{}, f.until, "")
	if f.planOver = next.Open == 0; !f.bounded {
		f.most = max(1, tries*next.Open)
	}
	out := &codingloop.Plan{Step: []string{refrain, planStepName}, File: file, Copy: filepath.ToSlash(name), Tries: tries, OnFailure: f.onTaskFailure}
	marks := p.Marks(plan.Progress{})
	for _, t := range p.Tasks {
		script := cmp.Or(t.Check, p.Check)
		if marks[t.Key] == plan.Open && script == "" && f.until == "" {
			return nil, fmt.Errorf("--plan: %w", noCommand(t.Title))
		}
		for line := range strings.Lines(script) {
			if line = strings.TrimSpace(line); line != "" && !slices.Contains(out.Commands, line) {
				out.Commands = append(out.Commands, line)
			}
		}
	}
	f.branch = cmp.Or(f.branch, p.BranchOf(file))
	return out, nil
}
