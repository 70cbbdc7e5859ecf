// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcptoolset

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// 12k: what a server says on stderr before it ends is told without the keys in its
// environment, also where the text is cut in the middle of one.
func TestStderrHasNoKeys(t *testing.T) {
	const key = "sk-SECRETKEY1234567890"
	c := newCommand(&Config{Command: []string{"server"}, Env: []string{"SHELF_TOKEN=" + key}})
	for _, more := range []int{0, tailSize - len(key)/2, tailSize - 1} {
		server, said := c.transport()
		text := server.(*mcp.CommandTransport).Command.Stderr
		for _, piece := range []string{"bad key: sk-SEC", "RETKEY1234567890" + strings.Repeat("x", more)} {
			if _, err := text.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
		}
		if got := said(); strings.Contains(got, "RETKEY") || strings.Contains(got, "567890") || len(got) > tailSize {
			t.Errorf("%d more: %.60q", more, got)
		}
	}
}
