// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// bwrapBase begins each command line of bubblewrap. What is not bound afterwards does not exist for the program. The settings of the kernel
// are bound again, because bubblewrap lets root change them.
var bwrapBase = []string{"--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
	"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--dev", "/dev", "--proc", "/proc",
	"--ro-bind-try", "/proc/sys", "/proc/sys", "--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger", "--ro-bind-try", "/proc/irq", "/proc/irq",
	"--ro-bind-try", "/proc/bus", "/proc/bus", "--tmpfs", "/tmp"}

// CheckBubblewrap returns an [ErrUnsupported] if bubblewrap is missing, or cannot limit a program on this machine.
func CheckBubblewrap() error {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return fmt.Errorf("%w: bubblewrap is missing; install it, such as with apt-get install bubblewrap", ErrUnsupported)
	}
	return bwrapWorks(path)
}

// bwrapWorks tries bubblewrap, and remembers those that work.
func bwrapWorks(path string) error {
	if _, known := working.Load(path); known {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	args := slices.Concat(bwrapBase, systemLinks(), []string{"--", "/usr/bin/env", "true"})
	if out, err := exec.CommandContext(ctx, path, args...).CombinedOutput(); err != nil {
		why, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%w: bubblewrap (%s) fails: %s; does the machine permit user namespaces?", ErrUnsupported, path, cmp.Or(why, err.Error()))
	}
	working.Store(path, true)
	return nil
}

var working sync.Map // the files of bubblewraps that work

// systemLinks binds the folders of the system beside /usr, or makes the links that they are.
func systemLinks() (args []string) {
	for _, path := range systemReads {
		if target, err := os.Readlink(path); err == nil {
			args = append(args, "--symlink", target, path)
		} else if path != "/usr" && path != "/proc" {
			args = append(args, "--ro-bind-try", path, path)
		}
	}
	return args
}

// hidden covers the secrets in /etc.
func hidden() (args []string) {
	for _, name := range slices.Concat(secretSettings, []string{"ssl/private"}) {
		path := filepath.Join("/etc", name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			args = append(args, "--tmpfs", path)
		} else if err == nil {
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	return args
}

// wrap changes a command so that bubblewrap starts the program. program is its absolute path.
func (r Rules) wrap(cmd *exec.Cmd, program string) error {
	if err := CheckBubblewrap(); err != nil {
		return err
	}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"bwrap"}, bwrapBase, systemLinks(), hidden())
	if r.NoNetwork {
		args = append(args, "--unshare-net")
	}
	if os.Geteuid() == 0 { // as dropCapabilities
		args = append(args, "--cap-drop", "ALL")
		for _, name := range []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"} {
			args = append(args, "--cap-add", "CAP_"+name)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		args = append(args, "--tmpfs", home)
	}
	type bind struct{ option, path string }
	var binds []bind
	for _, path := range slices.Concat(r.Read, Reads(os.Getenv), programFiles(program)) {
		binds = append(binds, bind{"--ro-bind-try", path})
	}
	for _, path := range r.Write {
		binds = append(binds, bind{"--bind-try", path})
	}
	slices.SortStableFunc(binds, func(a, b bind) int { return cmp.Compare(len(a.path), len(b.path)) }) // a folder before what is below it
	for _, b := range binds {
		args = append(args, b.option, b.path, b.path)
	}
	if cmd.Dir != "" {
		args = append(args, "--chdir", cmd.Dir)
	}
	args = append(args, "--setenv", "IS_SANDBOX", "1", "--", program) // by the variable, Claude Code works for root
	cmd.Args = slices.Concat(args, cmd.Args[1:])
	cmd.Path = bwrap
	return nil
}
