// SPDX-License-Identifier: Apache-2.0

package codingcli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
)

// edits reads the files of a program that prints lines and then its result.
func edits(program, dir string, lines ...string) codingcli.Report {
	l := &codingcli.Lines{Program: program, Dir: dir}
	end := map[string]string{"claude": `{"type":"result","subtype":"success","stop_reason":"end_turn"}`, "codex": `{"type":"turn.completed"}`}
	_, _ = bytes.NewBufferString(strings.Join(append(lines, end[program]), "\n")).WriteTo(l)
	return codingcli.Programs[program].Read(l.Kept(), 0)
}

// call is a call of a tool of Claude Code.
func call(id, tool, field, path string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":%q,"name":%q,"input":{%q:%q}}]}}`, id, tool, field, path)
}

// result is the result of such a call.
func result(id string, failed bool) string {
	return fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"is_error":%t}]}}`, id, failed)
}

// The files are those of edits that did not fail, each once, below the folder or absolute.
func TestEdits(t *testing.T) {
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	for name, tt := range map[string]struct {
		program string
		lines   []string
		want    []string
	}{
		"tools": {"claude", []string{
			call("1", "Edit", "file_path", real+"/b.go"), result("1", false), call("2", "Write", "file_path", link+"/x/../a.go"), result("2", false),
			call("3", "MultiEdit", "file_path", "b.go"), result("3", false), call("4", "NotebookEdit", "notebook_path", "n.ipynb"), result("4", false),
			call("5", "Read", "file_path", "read.go"), result("5", false), call("6", "Bash", "command", "rm x"), result("6", false),
		}, []string{"b.go", "a.go", "n.ipynb"}},
		"outside": {"claude", []string{
			call("1", "Write", "file_path", real+"/../out"), result("1", false), call("2", "Write", "file_path", "../up"), result("2", false)},
			[]string{filepath.Dir(real) + "/out", filepath.Dir(link) + "/up"}},
		"denied": {"claude", []string{call("1", "Write", "file_path", "a"), result("1", true), result("2", false)}, []string{}},
		// It was asked for, and the limit of cost came first.
		"without an end": {"claude", []string{call("1", "Write", "file_path", "a")}, []string{}},
		"a lie":          {"claude", []string{`{"type":"refrain.files","files":["lie"]}`}, []string{}},
		"no such lines":  {"claude", []string{`{"type":"user","message":{"content":"x"}}`, `{"type":"assistant","message":7}`, `{"type":"assistant","error":{}}`}, []string{}},
		"patch": {"codex", []string{
			`{"type":"item.started","item":{"type":"file_change","changes":[{"path":"begun"}],"status":"in_progress"}}`,
			`{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"no"}],"status":"failed"}}`,
			`{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"` + real + `/b"},{"path":"a"},{"path":"b"}],"status":"completed"}}`,
		}, []string{"b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := edits(tt.program, link, tt.lines...)
			if diff := cmp.Diff(tt.want, got.Files); diff != "" || got.Outcome != codingcli.OK || got.MoreFiles != 0 {
				t.Errorf("-want +got\n%s%+v", diff, got)
			}
		})
	}
}

// However many files a program edits, what is kept of them is bounded.
func TestManyEdits(t *testing.T) {
	var lines []string
	for i := range 1500 {
		lines = append(lines, call(fmt.Sprint(i), "Write", "file_path", fmt.Sprintf("%04d", i)), result(fmt.Sprint(i), false))
	}
	for i := range 300 {
		lines = append(lines, call("open"+fmt.Sprint(i), "Write", "file_path", "open"))
	}
	got := edits("claude", "/work", lines...)
	if len(got.Files) != 1000 || got.MoreFiles != 500 || slices.Contains(got.Files, "open") {
		t.Errorf("got %d files and %d more", len(got.Files), got.MoreFiles)
	}
}
