// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/process/interpreter"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

// dialer makes a transport for each session.
type dialer interface {
	fmt.Stringer
	// transport returns a new transport and a function that returns the end of the server's stderr.
	transport() (mcp.Transport, func() string)
	close()
}

func newDialer(cfg *Config) (dialer, error) {
	ways := 0
	for _, given := range []bool{len(cfg.Command) > 0, cfg.URL != "", cfg.Transport != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return nil, fielderror.Whole("give one of %s, %s and %s", fielderror.Name("Command"), fielderror.Name("URL"), fielderror.Name("Transport"))
	case cfg.Transport != nil:
		return fixedTransport{cfg.Transport}, nil
	case cfg.URL != "":
		return newEndpoint(cfg)
	case cfg.Command[0] == "":
		return nil, fielderror.Whole("the %s is empty", fielderror.Name("Command"))
	}
	if err := interpreter.ReadsCode(cfg.Command); err != nil {
		return nil, fielderror.Whole("the %s gets what a model says on its standard input: %w", fielderror.Name("Command"), err)
	}
	return newCommand(cfg), nil
}

// fixedTransport is a transport from the config.
type fixedTransport struct{ t mcp.Transport }

func (g fixedTransport) String() string                            { return fmt.Sprintf("MCP server by %T", g.t) }
func (g fixedTransport) transport() (mcp.Transport, func() string) { return g.t, silent }
func (g fixedTransport) close()                                    {}

func silent() string { return "" }
