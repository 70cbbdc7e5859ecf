// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// quiet has the settings of every git command on the user's repository. They turn off the programs that every repository can
// name in its configuration: hooks and a file system monitor.
var quiet = []string{
	"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "core.quotePath=false", "core.splitIndex=false", "gc.auto=0",
	"maintenance.auto=false",
}

// programs turns off the programs that a configuration names under names of its own: filters, and hooks of git 2.54 and newer.
// Whoever made the repository has written its configuration, so git would start a stranger's program.
type programs struct {
	permitted []string // the filters that stay on

	mu    sync.Mutex
	known bool
	off   []string // the filters that are off
	env   []string // the settings that turn them and the hooks off
}

// startsNone lists the commands that start no filter and no hook, whatever the configuration says.
var startsNone = []string{"rev-parse", "config", "ls-files", "rev-list", "for-each-ref", "check-ref-format", "check-attr"}

// environ returns the settings for a command, as variables. The option -c cannot name a filter whose name contains "=".
func (p *programs) environ(ctx context.Context, g *git, command string) ([]string, error) {
	if slices.Contains(startsNone, command) {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.read(ctx, g)
	return p.env, err
}

// read reads the names of the configuration.
func (p *programs) read(ctx context.Context, g *git) error {
	if p.known {
		return nil
	}
	out, err := g.run(ctx, "config", "-z", "--name-only", "--get-regexp", `^(filter|hook)\..`)
	if err != nil && code(err) != 1 { // 1: there are none
		return fmt.Errorf("find the programs in the configuration of git: %w", err)
	}
	var settings [][2]string
	for _, key := range list(out) {
		kind, rest, _ := strings.Cut(key, ".")
		dot := strings.LastIndexByte(rest, '.')
		if dot < 0 {
			continue
		}
		switch name := rest[:dot]; {
		case kind == "hook":
			settings = append(settings, [2]string{"hook." + name + ".enabled", "false"})
		case !slices.Contains(p.permitted, name) && !slices.Contains(p.off, name):
			p.off = append(p.off, name)
			for _, s := range [][2]string{{"clean", ""}, {"smudge", ""}, {"process", ""}, {"required", "false"}} {
				settings = append(settings, [2]string{"filter." + name + "." + s[0], s[1]})
			}
		}
	}
	p.env = []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		p.env = append(p.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	p.known = true
	return nil
}

// filtered returns which of the files pass through a filter that is off, with the name of the filter. Git would change their
// contents before it stores or compares them.
func (g *git) filtered(ctx context.Context, names []string) (map[string]string, error) {
	g.programs.mu.Lock()
	err := g.programs.read(ctx, g)
	off := g.programs.off
	g.programs.mu.Unlock()
	if err != nil || len(off) == 0 || len(names) == 0 {
		return nil, err
	}
	out, err := g.feed(ctx, lines(names), "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	found := make(map[string]string)
	for part := range slices.Chunk(list(out), 3) { // the file, the attribute and its value
		if len(part) == 3 && slices.Contains(off, part[2]) {
			found[part[0]] = part[2]
		}
	}
	return found, nil
}

// FilterError reports that the result has changed a file that passes through a filter, a program that the configuration of git
// names and that [Config].Filters does not permit. Nothing was written.
type FilterError struct{ Path, Filter string }

func (e *FilterError) Error() string {
	return fmt.Sprintf("git changes %q with the filter %q, a program that is off: permit it with workspace: {filters: [%s]}, or hand the result over "+
		"as a patch", e.Path, e.Filter, e.Filter)
}
