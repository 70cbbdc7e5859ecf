// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pinned has the settings of every git command on a store. They override the settings in files.
var pinned = []string{
	"core.hooksPath=" + os.DevNull, "core.attributesFile=" + os.DevNull, "core.excludesFile=" + os.DevNull,
	"core.fsmonitor=false", "core.autocrlf=false", "core.eol=lf", "core.safecrlf=false", "core.fileMode=true",
	"core.untrackedCache=false", "core.splitIndex=false", "core.sparseCheckout=false", "core.quotePath=false",
	"core.ignoreStat=false", "core.trustctime=true", "core.checkStat=default", "core.logAllRefUpdates=false",
	"core.fsync=all", "core.fsyncMethod=batch", "core.loosecompression=1", "gc.auto=0", "maintenance.auto=false",
	"advice.addEmbeddedRepo=false", "commit.gpgSign=false", "protocol.allow=never", "submodule.recurse=false",
}

// git runs git commands with a fixed environment.
type git struct {
	bin    string
	config []string // NAME=VALUE for -c
	env    []string // besides the fixed variables
	lock   *os.File // inherited, so that the lock lives as long as the command; may be nil
	dir    string
	seal   *seal // of the store; nil for other repositories
	user   bool  // with the user's own configuration, without its programs
	// programs are those of the configuration; nil for a store, which has none.
	programs *programs
	all      []string // the variables of which git inherits some; nil means those of this process
}

var versionWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d+)\.(\d+)`) })

// CheckGit returns an error that wraps [ErrNoGit] if there is no git binary that is new enough.
func CheckGit(ctx context.Context) error {
	_, err := findGit(ctx)
	return err
}

// CheckRepository returns a [*RefusedError] if a folder is not in a git repository, so that it cannot get a branch.
func CheckRepository(ctx context.Context, dir string) error {
	bin, err := findGit(ctx)
	if err != nil {
		return err
	}
	if inside, err := ofUser(bin, dir, nil, nil).word(ctx, "rev-parse", "--is-inside-work-tree"); err != nil || inside != "true" {
		return noRepository(dir)
	}
	return nil
}

// noRepository returns the error for a folder that cannot get a branch.
func noRepository(dir string) error {
	return &RefusedError{dir, "it is no git repository, so it cannot get a branch: " +
		"make it one with git init, git add -A and git commit -m start, " +
		"or use patch or apply in place of branch (with refrain loop, leave out --branch)"}
}

// findGit returns the path of a git binary that is new enough.
func findGit(ctx context.Context) (string, error) {
	bin, err := exec.LookPath("git")
	if err != nil {
		return "", ErrNoGit
	}
	out, err := exec.CommandContext(ctx, bin, "version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", bin, err)
	}
	m := versionWord().FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s calls itself %q: %w", bin, out, ErrNoGit)
	}
	major, _ := strconv.Atoi(string(m[1]))
	minor, _ := strconv.Atoi(string(m[2]))
	if major < 2 || major == 2 && minor < 36 {
		return "", fmt.Errorf("%s has the version %s: %w", bin, m[0], ErrNoGit)
	}
	return bin, nil
}

// inherited lists the variables that git inherits.
var inherited = []string{"PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "COMSPEC", "PATHEXT"}

// kept lists the variables of git itself that the user's git inherits.
var kept = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}

func (g *git) environ() []string {
	// GIT_ALLOW_PROTOCOL permits none, also where the configuration permits one: a partial clone would fetch missing objects,
	// with a program that its remote names.
	env := []string{"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "GIT_PAGER=cat", "LC_ALL=C",
		"GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1"}
	if !g.user {
		env = append(env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull,
			"GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "HOME="+os.DevNull, "XDG_CONFIG_HOME="+os.DevNull)
	}
	all := g.all
	if all == nil {
		all = os.Environ()
	}
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if g.user && (!strings.HasPrefix(name, "GIT_") || slices.Contains(kept, name)) || slices.Contains(inherited, name) {
			env = append(env, v)
		}
	}
	return append(env, g.env...)
}

// with returns a copy of g with further variables.
func (g *git) with(env ...string) *git {
	c := *g
	c.env = append(slices.Clone(g.env), env...)
	return &c
}

// run runs git and returns its output.
func (g *git) run(ctx context.Context, args ...string) ([]byte, error) {
	return g.feed(ctx, nil, args...)
}

// word runs git and returns its output without the line end.
func (g *git) word(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// feed runs git with a standard input.
func (g *git) feed(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := g.pipe(ctx, in, &out, args...)
	return out.Bytes(), err
}

// pipe runs git with a standard input, and writes its output to out.
func (g *git) pipe(ctx context.Context, in []byte, out io.Writer, args ...string) error {
	if g.seal != nil {
		if err := g.seal.put(); err != nil {
			return err
		}
	}
	env := g.environ()
	if g.programs != nil {
		off, err := g.programs.environ(ctx, g, args[0])
		if err != nil {
			return err
		}
		env = append(env, off...)
	}
	full := make([]string, 0, 2*len(g.config)+len(args))
	for _, c := range g.config {
		full = append(full, "-c", c)
	}
	cmd := exec.CommandContext(ctx, g.bin, append(full, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout = g.dir, env, out
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if in != nil {
		cmd.Stdin = bytes.NewReader(in)
	}
	inherit(cmd, g.lock)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text := strings.TrimSpace(stderr.String())
		return &GitError{Args: args, Stderr: text[max(0, len(text)-2000):], Err: err}
	}
	return nil
}

// code returns the exit code of a git command that failed, -1 if the error is another one.
func code(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return -1
}

// ofUser returns a git that reads the repository around a folder, with the user's own configuration. It takes no locks,
// fetches nothing, and starts no program but git and the filters that are permitted.
func ofUser(bin, folder string, environ, filters []string) *git {
	return &git{bin: bin, dir: folder, user: true, all: environ, config: quiet, programs: &programs{permitted: filters}}
}

// list splits the NUL-terminated list that git prints with -z.
func list(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// lines joins names to a NUL-terminated list, for -z --stdin.
func lines(names []string) []byte {
	if len(names) == 0 {
		return []byte{}
	}
	return []byte(strings.Join(names, "\x00") + "\x00")
}
