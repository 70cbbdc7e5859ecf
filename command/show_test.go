// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
)

// The names of conditions come from the file, whoever has written it.
func TestShowOfAHostileFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "loop.yaml", "name: a\ntype: loop\nmax_iterations: 1\nsub_agents: [{name: b, text: hi}]\n")
	var out, say bytes.Buffer
	if code := run(context.Background(), nil, strings.Fields("run loop.yaml --record run.jsonl"), func(string) string { return "" },
		strings.NewReader(""), &out, &say); code != term.ExitOK {
		t.Fatal(code, say.String())
	}
	text, err := os.ReadFile("run.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	evil := strings.ReplaceAll(string(text), `"name":"max_iterations"`, `"name":"max\u001b[31m\u009b\u202e"`)
	if evil == string(text) {
		t.Fatal("the file names no condition")
	}
	write(t, "evil.jsonl", evil)
	for _, verb := range []string{"show", "events", "verify"} {
		out.Reset()
		say.Reset()
		run(context.Background(), nil, []string{verb, "evil.jsonl"}, func(string) string { return "" }, strings.NewReader(""), &out, &say)
		if all := out.String() + say.String(); strings.ContainsAny(all, "\x1b\u009b\u202e") || all == "" {
			t.Errorf("%s: %q", verb, all)
		}
	}
}
