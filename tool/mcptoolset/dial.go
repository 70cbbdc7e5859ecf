// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/process/interpreter"
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
		return nil, errors.New("give one of Command, URL and Transport")
	case cfg.Transport != nil:
		return fixedTransport{cfg.Transport}, nil
	case cfg.URL != "":
		return newEndpoint(cfg)
	case cfg.Command[0] == "":
		return nil, errors.New("the Command is empty")
	}
	if err := interpreter.ReadsCode(cfg.Command); err != nil {
		return nil, fmt.Errorf("the Command gets what a model says on its standard input: %w", err)
	}
	return newCommand(cfg), nil
}

// fixedTransport is a transport from the config.
type fixedTransport struct{ t mcp.Transport }

func (g fixedTransport) String() string                            { return fmt.Sprintf("MCP server by %T", g.t) }
func (g fixedTransport) transport() (mcp.Transport, func() string) { return g.t, silent }
func (g fixedTransport) close()                                    {}

func silent() string { return "" }
