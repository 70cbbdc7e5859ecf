// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	xterm "github.com/charmbracelet/x/term"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// system reports the version of the program and the machine.
func (d *doctor) system() {
	d.add("system", "refrain", foundOK, "", "%s, on %s/%s with %d processors",
		strings.TrimPrefix(term.Version(), "refrain "), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if err := taskagent.SandboxCheck(taskagent.SandboxWorkspace); err != nil {
		d.add("system", "sandbox", foundNote, "", "%v", err)
	} else {
		d.add("system", "sandbox", foundOK, "", "this machine can limit steps with sandbox: %s", taskagent.SandboxWorkspace)
	}
	mode, err := term.Mode(d.Env, term.Auto)
	if err != nil {
		mode = err.Error()
	}
	screen := term.ScreenOf(d.Stderr)
	if screen == nil {
		d.add("system", "terminal", foundOK, "", "none on standard error; --progress auto is %s", mode)
		return
	}
	columns, lines, _ := xterm.GetSize(screen.Fd()) // term.ScreenOf has already asked for the size
	color := "colors"
	if d.Getenv("NO_COLOR") != "" {
		color = "NO_COLOR is set"
	}
	d.add("system", "terminal", foundOK, "", "%d×%d, TERM=%s, %s; --progress auto is %s", columns, lines,
		d.Getenv("TERM"), color, mode)
}

// command checks that the program of an agent exists.
func (d *doctor) command(a *definition.Agent) {
	if a.Command == nil {
		return
	}
	args := a.Command.Args
	if cli := a.Command.CLI; cli != nil {
		args = cli.Command()
	}
	if len(args) == 0 {
		return
	}
	program := args[0]
	if program == "refrain" && a.TaskQueue == "" && d.Code.Refrain != "" {
		return // this program is started, wherever it is
	}
	if _, _, tested := taskagent.CLIHelp(program); a.Type == definition.TypeCLI && tested != "" {
		d.cli(a, program)
		return
	}
	if _, own := a.Command.Env["PATH"]; own {
		return // the PATH is known only in the run
	}
	at := d.from.At(a.Position()).String() + " " + a.Name
	if strings.ContainsAny(program, `/\`) && !filepath.IsAbs(program) {
		if strings.Contains(a.Command.Dir, "{{") {
			return
		}
		program = filepath.Join(a.Command.Dir, program)
		if info, err := os.Stat(program); err != nil || info.IsDir() {
			d.add("commands", at, foundBroken, "run refrain in the folder of the program, or name that folder in the field dir",
				"there is no program %s here", program)
		}
		return
	}
	if _, err := exec.LookPath(program); err != nil {
		d.add("commands", at, foundBroken, "install it, or put its folder into PATH", "there is no program %q", program)
		return
	}
	d.add("commands", at, foundOK, "", "%s is installed", program)
}

// cli checks that a coding agent is installed, and asks for its version.
func (d *doctor) cli(a *definition.Agent, program string) {
	if _, own := a.Command.Env["PATH"]; own {
		return // the PATH is known only in the run
	}
	install, signIn, tested := taskagent.CLIHelp(program)
	at := d.from.At(a.Position()).String() + " " + a.Name
	if _, err := exec.LookPath(program); err != nil {
		d.add("commands", at, foundBroken, "install it with "+install+"; "+signIn, "there is no program %q", program)
		return
	}
	version, err := says(child.Inheritance{}.Environ(), program, "--version")
	switch {
	case err != nil && a.Command.CLI.ACP != nil:
		d.add("commands", at, foundNote, "", "%s does not report its version; %s was tested", program, tested)
	case err != nil:
		d.add("commands", at, foundBroken, "install it again with "+install, "%s does not report its version: %v", program, err)
	case !strings.Contains(version, tested):
		d.add("commands", at, foundNote, "", "%s is %s; %s was tested", program, brief.Clean(version), tested)
	default:
		d.add("commands", at, foundOK, "", "%s is %s", program, brief.Clean(version))
	}
	args, variables := taskagent.CLISignedIn(program)
	if args == nil || a.Command.CLI.ACP != nil || err != nil || slices.Compare(numbers(version), numbers(tested)) < 0 {
		return // the program has no such command, or might read the arguments as a prompt
	}
	env := child.Inheritance{Inherit: slices.Concat(variables, a.Command.Inherit)}.Environ()
	for _, name := range variables {
		if _, own := a.Command.Env[name]; own || name == "CODEX_API_KEY" && os.Getenv(name) != "" {
			return // the key is known only in the run, or codex login status does not check it
		}
	}
	_, err = says(env, program, args...)
	switch exit, ok := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		d.add("commands", at, foundOK, "", "%s is signed in", program)
	case ok && exit.ExitCode() == 1:
		d.add("commands", at, foundNote, signIn+", unless it uses another provider", "%s is not signed in", program)
	}
}

// conversation reports how a program that speaks the Agent Client Protocol continues its conversation.
func (d *doctor) conversation(a *definition.Agent) {
	if a.Type != definition.TypeCLI || len(a.Command.CLI.ACP) == 0 || a.Command.CLI.Conversation != taskagent.ConversationContinue {
		return
	}
	program := a.Command.CLI.ACP[0]
	d.add("commands", d.from.At(a.Position()).String()+" "+a.Name, foundNote, "", "%s %s", program, taskagent.ACPKeeps(program))
}

// says returns the first line that a program prints.
func says(env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.WaitDelay = env, time.Second
	out, err := cmd.Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return line, err
}

// numbers returns the numbers in a version.
func numbers(version string) (all []int) {
	for _, s := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(s)
		all = append(all, n)
	}
	return all
}

// sandbox reports whether this machine can limit a step with a sandbox.
func (d *doctor) sandbox(a *definition.Agent) {
	if a.Command == nil || a.Command.Sandbox == nil {
		return
	}
	name, err := d.from.At(a.Position()).String()+" "+a.Name, a.Command.Sandbox.Supported()
	for _, path := range a.Command.Sandbox.Missing() {
		d.add("commands", name, foundNote, "", "its sandbox names %s, which does not exist, so the command cannot use it", brief.Clean(path))
	}
	switch {
	case err == nil:
		d.add("commands", name, foundOK, "", "this machine can limit it with a sandbox")
	case a.Command.Sandbox.Level == taskagent.SandboxBestEffort:
		d.add("commands", name, foundNote, "", "it runs without a sandbox: %v", err)
	case a.Command.Sandbox.Level == taskagent.SandboxBwrap:
		d.add("commands", name, foundBroken, "install bubblewrap, or give sandbox: "+taskagent.SandboxWorkspace, "%v", err)
	default:
		d.add("commands", name, foundBroken, "run it on Linux 6.2 or newer, or give sandbox: "+taskagent.SandboxBestEffort, "%v", err)
	}
}
