// SPDX-License-Identifier: Apache-2.0

package codingcli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
)

// A transcript has the messages, the calls and the results that the recorded programs have printed.
func TestTranscripts(t *testing.T) {
	for _, tt := range []struct{ program, recording, want string }{
		{"claude", "claude-2.1.197/denied.jsonl", "> Write {\"file_path\":\"/work/a.txt\",\"content\":\"hi\"}\n\n" +
			"  failed: Claude requested permissions to write to /work/a.txt, but you haven't granted it yet.\n\ndone"},
		{"codex", "codex-0.169.0/ok.jsonl", "> shell /bin/bash -lc 'echo hi > b.txt'\n\ndone"},
		{"codex", "codex-0.169.0/patch.jsonl", "> patch "},
	} {
		data, err := os.ReadFile("testdata/" + tt.recording)
		if err != nil {
			t.Fatal(err)
		}
		l := &codingcli.Lines{Program: tt.program, Dir: t.TempDir()}
		_, _ = l.Write(data)
		l.Kept()
		if got := l.Script.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.recording, got, tt.want)
		}
	}
}

// A transcript keeps its beginning and its end, and the ends of long results, and says what is left out.
func TestTranscriptIsLimited(t *testing.T) {
	var s codingcli.Transcript
	s.Says("I beg", true)
	s.Says("in.", true)
	s.Calls("Bash", strings.Repeat("x", 20_000))
	s.Gets("", false)
	if got := s.String(); !strings.HasPrefix(got, "I begin.\n\n> Bash xx") || !strings.Contains(got, "bytes are left out)") || len(got) > 9000 {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
	for range 400 {
		s.Gets(strings.Repeat("é\n", 2000), false)
	}
	s.Says("The end.", false)
	got := s.String()
	if len(got) > 600<<10 || !strings.HasPrefix(got, "I begin.") || !strings.HasSuffix(got, "The end.") || !strings.Contains(got, " bytes are left out here)") {
		t.Errorf("%d bytes: %.50q … %q", len(got), got, got[len(got)-50:])
	}
	var none *codingcli.Transcript
	none.Says("x", false)
	none.Calls("x", "")
	none.Gets("x", true)
	if none.String() != "" {
		t.Error("a nil transcript keeps something")
	}
}
