// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/limited"
)

// command is a server that is started for each session.
type command struct {
	args, env []string
	secrets   *credential.Secrets // that it could say
	dir       string
}

func newCommand(cfg *Config) *command {
	return &command{args: slices.Clone(cfg.Command), dir: cfg.Dir, secrets: child.Secrets(cfg.Env),
		env: append(child.Inheritance{Clean: !cfg.InheritEnv}.Environ(), cfg.Env...)}
}

func (c *command) String() string { return fmt.Sprintf("MCP server %q", strings.Join(c.args, " ")) }
func (c *command) close()         {}

func (c *command) transport() (mcp.Transport, func() string) {
	cmd := exec.Command(c.args[0], c.args[1:]...)
	said := &limited.Tail{Most: tailKept}
	cmd.Env, cmd.Dir, cmd.Stderr = c.env, c.dir, said
	cmd.WaitDelay = time.Second // if something that it started keeps stderr open
	return &striking{&mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}, c.secrets}, func() string {
		return brief.EndBytes(strings.TrimSpace(c.secrets.Strike(said.String())), tailSize)
	}
}

// tailSize is how many bytes of what a server says on stderr are told. More are kept, so that a secret at the front is whole.
const (
	tailSize = 1000
	tailKept = 8 * tailSize
)
