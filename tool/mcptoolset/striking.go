// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/process/credential"
)

// striking is a transport whose messages come without secrets.
type striking struct {
	mcp.Transport
	secrets *credential.Secrets
}

func (s *striking) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := s.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &struckConnection{conn, s.secrets}, nil
}

type struckConnection struct {
	mcp.Connection
	secrets *credential.Secrets
}

// Read strikes the secrets out of the texts in a message. Secrets of an environment contain a letter,
// so no number is struck out.
func (c *struckConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	switch m := msg.(type) {
	case *jsonrpc.Request:
		m.Params = c.strike(m.Params)
	case *jsonrpc.Response:
		m.Result, m.Error = c.strike(m.Result), c.secrets.Error(m.Error)
	}
	return msg, err
}

func (c *struckConnection) strike(raw json.RawMessage) json.RawMessage {
	if text := c.secrets.StrikeWhole(string(raw)); text != string(raw) {
		return json.RawMessage(text)
	}
	return raw
}
