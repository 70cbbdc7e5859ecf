// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// T6: what is written to an output reaches it without what commands a terminal,
// however it is cut into pieces; what another program reads is left as it is.
func TestOutputsAreReadable(t *testing.T) {
	const text = "a\x1b[31m\u009b31m\u202eb\té🙂\r\x07\n\xffz"
	for size := 1; size <= len(text); size++ {
		var got bytes.Buffer
		w := newReadable(&got)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if m, err := w.Write([]byte(rest[:n])); err != nil || m != n {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if want := "a[31m31mb\té🙂\n\uFFFDz"; got.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, got.String(), want)
		}
	}
	var got bytes.Buffer
	if _, err := exactly(newReadable(&got)).Write([]byte(text)); err != nil || got.String() != text {
		t.Errorf("exactly: %q, %v", got.String(), err)
	}
}

// The names of conditions come from the file, whoever has written it.
func TestShowOfAHostileFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "loop.yaml", "name: a\ntype: loop\nmax_iterations: 1\nsub_agents: [{name: b, text: hi}]\n")
	var out, say bytes.Buffer
	if code := run(context.Background(), strings.Fields("run loop.yaml --record run.jsonl"), func(string) string { return "" }, strings.NewReader(""), &out, &say); code != exitOK {
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
		run(context.Background(), []string{verb, "evil.jsonl"}, func(string) string { return "" }, strings.NewReader(""), &out, &say)
		if all := out.String() + say.String(); strings.ContainsAny(all, "\x1b\u009b\u202e") || all == "" {
			t.Errorf("%s: %q", verb, all)
		}
	}
}
