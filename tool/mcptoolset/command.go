// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// command is a server that is started for each session.
type command struct {
	args, env []string
	dir       string
}

// basics are the environment variables without which programs do not work.
var basics = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "TEMP", "TMP",
}

func newCommand(cfg *Config) *command {
	c := &command{args: slices.Clone(cfg.Command), dir: cfg.Dir, env: os.Environ()}
	if !cfg.InheritEnv {
		c.env = slices.DeleteFunc(c.env, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return !slices.Contains(basics, strings.ToUpper(name))
		})
	}
	c.env = append(c.env, cfg.Env...)
	return c
}

func (c *command) String() string { return fmt.Sprintf("MCP server %q", strings.Join(c.args, " ")) }
func (c *command) close()         {}

func (c *command) transport() (mcp.Transport, func() string) {
	cmd := exec.Command(c.args[0], c.args[1:]...)
	said := new(tail)
	cmd.Env, cmd.Dir, cmd.Stderr = c.env, c.dir, said
	cmd.WaitDelay = time.Second // if something that it started keeps stderr open
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}, said.String
}

// tail keeps the end of what a server says on stderr.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 1000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text); n > tailSize {
		t.text = append(t.text[:0], t.text[n-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), ""))
}
