// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/process/sandbox"
)

// Sandbox limits what a command, and all that it starts, may do with files and with the network. It needs Linux
// with Landlock 3 or newer, or bubblewrap, which [SandboxCheck] finds out.
//
// The command may change the files of its workspace, or without one those of Dir if it is set, and a private folder for its
// temporary files and caches, whose variables (TMPDIR, XDG_CACHE_HOME, GOCACHE, npm_config_cache) it gets. It may read the
// system, the toolchains and module caches in the home folder, and git's settings there. It cannot signal other processes or
// read their memory. It cannot read other files of the home folder, such as keys, nor change the contents of the repository
// that a workspace was copied from. Landlock does not limit changes of permissions, owners and times of files.
//
// A coding agent may also use the folders of its own settings and conversations. With the permission to read only, it may read the
// files of the workspace and not change them. Codex's own sandbox is off, because no sandbox can be made inside.
type Sandbox struct {
	// Level is [SandboxWorkspace] (the default), which fails a step that this machine cannot limit, or [SandboxBestEffort], which limits
	// it as far as the machine can. [SandboxBwrap] limits it by the program bwrap in place of Landlock: other files do not even exist for the
	// command, it sees no other processes, and it is ended without grace. Ports are not for it.
	Level string
	// Write has further files and folders that the command may change, and Read further ones that it may read. A path is absolute or
	// begins with "~/". A path that does not exist is ignored.
	Write, Read []string
	// Network is [NetworkAny] (the default) or [NetworkNone], which forbids TCP connections except to Ports, and listening.
	Network string
	// Ports are TCP ports, of any machine, to which the command may connect in spite of NetworkNone.
	Ports []int
}

// The values of [Sandbox].Level and [Sandbox].Network.
const (
	SandboxWorkspace  = "workspace"
	SandboxBestEffort = "best_effort"
	SandboxBwrap      = "bwrap"

	NetworkAny  = "any"
	NetworkNone = "none"
)

// SandboxLevels returns the levels that a [Sandbox] can have.
func SandboxLevels() []string { return []string{SandboxWorkspace, SandboxBestEffort, SandboxBwrap} }

// SandboxCheck returns an error that says why this machine cannot enforce a [Sandbox] of a level; nil if it can.
func SandboxCheck(level string) error {
	if level == SandboxBwrap {
		return sandbox.CheckBubblewrap()
	}
	_, err := sandbox.Check()
	return err
}

// Supported returns an error that says why this machine cannot enforce the sandbox; nil if it can.
func (b *Sandbox) Supported() error {
	if b.Network == NetworkNone && b.Level != SandboxBwrap {
		return sandbox.CheckNetwork()
	}
	return SandboxCheck(b.Level)
}

// Missing returns the paths of Write and Read that do not exist on this machine.
func (b *Sandbox) Missing() (missing []string) {
	for _, path := range atHome(slices.Concat(b.Write, b.Read)) {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, path)
		}
	}
	return missing
}

// Folder is where [CommandConfig].Around runs a command.
type Folder struct {
	// Path replaces Root.
	Path string
	// Env has further environment variables, as NAME=value.
	Env []string
	// Access returns the folders that a command in a [Sandbox] may change and those that it may read, and a folder for its temporary
	// files and caches, which is made when it is needed. Nil means none, and a folder that is deleted after the command.
	Access func() (write, read []string, private string, err error)
}

// check adds the mistakes in a sandbox to s.
func (b *Sandbox) check(s *source) {
	if b.Level != "" && !slices.Contains(SandboxLevels(), b.Level) {
		s.report("Sandbox", "the level is one of %s, got %q", strings.Join(SandboxLevels(), ", "), b.Level)
	}
	if b.Level == SandboxBwrap && len(b.Ports) > 0 {
		s.report("Sandbox", "ports are not for the level %s, which forbids all of the network or none", SandboxBwrap)
	}
	if b.Network != "" && b.Network != NetworkAny && b.Network != NetworkNone {
		s.report("Sandbox", "the network is %s or %s, got %q", NetworkAny, NetworkNone, b.Network)
	}
	if len(b.Ports) > 0 && b.Network != NetworkNone {
		s.report("Sandbox", "ports need the network %s", NetworkNone)
	}
	for _, path := range slices.Concat(b.Write, b.Read) {
		if !filepath.IsAbs(path) && path != "~" && !strings.HasPrefix(path, "~/") {
			s.report("Sandbox", "the path %q is neither absolute nor begins with ~/; files of the workspace, or below dir, need no entry", path)
		}
	}
	for _, port := range b.Ports {
		if port < 1 || port > math.MaxUint16 {
			s.report("Sandbox", "%d is no port", port)
		}
	}
}

// box is a sandbox that is ready for one run of a command.
type box struct {
	rules sandbox.Rules
	env   []string
	done  func() // deletes the temporary folder
}

// makeBox prepares the sandbox of a process that runs in dir; without a sandbox its env is nil and its done does nothing.
func (p *process) makeBox(dir string) (box, error) {
	b := p.Sandbox
	if b == nil {
		return box{done: func() {}}, nil
	}
	made := box{done: func() {}}
	var write, read []string
	private := ""
	if p.folder.Access != nil {
		var err error
		if write, read, private, err = p.folder.Access(); err != nil {
			return box{}, err
		}
	}
	if private == "" {
		temporary, err := os.MkdirTemp("", "refrain-private-*")
		if err != nil {
			return box{}, fmt.Errorf("make the private folder of the sandbox: %w", err)
		}
		private, made.done = temporary, func() { os.RemoveAll(temporary) }
		if p.Dir != "" && p.Dir != "." {
			write = append(write, dir)
		}
	}
	if p.boxReads {
		write, read = nil, append(read, write...)
	}
	temp, cache := filepath.Join(private, "tmp"), filepath.Join(private, "cache")
	for _, folder := range []string{temp, cache} {
		if info, err := os.Lstat(folder); err == nil && !info.IsDir() {
			os.Remove(folder) // an earlier command has put something else in its place
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			made.done()
			return box{}, fmt.Errorf("make the private folder of the sandbox: %w", err)
		}
	}
	made.env = []string{"TMPDIR=" + temp, "TMP=" + temp, "TEMP=" + temp, "XDG_CACHE_HOME=" + cache,
		"GOCACHE=" + filepath.Join(cache, "go-build"), "npm_config_cache=" + filepath.Join(cache, "npm")}
	made.rules = sandbox.Rules{
		Write:     slices.Concat(write, []string{private}, atHome(b.Write), atHome(p.boxWrite)),
		Read:      slices.Concat([]string{dir}, read, atHome(b.Read)),
		NoNetwork: b.Network == NetworkNone, BestEffort: b.Level == SandboxBestEffort,
		Bubblewrap: b.Level == SandboxBwrap,
	}
	for _, port := range b.Ports {
		made.rules.Ports = append(made.rules.Ports, uint16(port))
	}
	return made, nil
}

// apply limits a command that has not started.
func (b *box) apply(cmd *exec.Cmd) error {
	if b.env == nil {
		return nil
	}
	if err := b.rules.Apply(cmd); err != nil && b.rules.Bubblewrap {
		return fmt.Errorf("run command %q in a sandbox: %w", cmd.Args[0], err)
	} else if err != nil {
		return fmt.Errorf("run command %q in a sandbox: %w; write sandbox: %s to run it without what is missing", cmd.Args[0], err, SandboxBestEffort)
	}
	return nil
}

// atHome replaces "~" at the beginning of paths by the home folder.
func atHome(paths []string) []string {
	home, err := os.UserHomeDir()
	var list []string
	for _, path := range paths {
		rest, below := strings.CutPrefix(path, "~")
		if below && err != nil {
			continue
		}
		if below {
			path = filepath.Join(home, rest)
		}
		list = append(list, path)
	}
	return list
}
