// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/internal/testkit/programtest"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
)

// movedProgram is one of testdata/adk: what its model answers, what is typed, and what it prints.
type movedProgram struct {
	answers     []scripted.Answer
	args, typed string
	want        string
}

func call(name string, args map[string]any) []scripted.Call {
	return []scripted.Call{{Name: name, Args: args}}
}

var movedPrograms = map[string]movedProgram{
	"quickstart": {
		answers: []scripted.Answer{{Calls: call("weather", map[string]any{"name": "Oslo"})}, {MatchRequest: "cloudy over Oslo", Text: "Cloudy."}},
		want:    "[weatherman] calls weather\n[weatherman] weather answers map[sky:cloudy over Oslo]\n[weatherman] Cloudy.\n",
	},
	"loop": {
		answers: []scripted.Answer{
			{Agent: "writer", Text: "A cat."}, {Agent: "critic", MatchRequest: "Judge: A cat", Text: "Give it a name."},
			{Agent: "writer", MatchRequest: "Improve: A cat", Text: "Mimi."}, {Agent: "critic", MatchRequest: "Judge: Mimi", Calls: call("exit_loop", nil)},
		},
		want: "[writer] A cat.\n[critic] Give it a name.\n[writer] Mimi.\n[critic] calls exit_loop\n[critic] exit_loop answers map[]\n" +
			"draft: Mimi. passes: II\n",
	},
	"sequence": {
		answers: []scripted.Answer{{Agent: "writer", Text: "A cat."}, {Agent: "translator", MatchRequest: "Translate: A cat", Text: "Eine Katze."}},
		want:    "[writer] A cat.\n[translator] Eine Katze.\n",
	},
	"parallel": {
		answers: []scripted.Answer{{Agent: "left", Text: "west"}, {Agent: "right", Text: "east"},
			{Agent: "judge", MatchRequest: "Compare west and east", Text: "Go back."}},
		want: "both.left left: west\nboth.right right: east\n judge: Go back.\n",
	},
	"custom": {
		answers: []scripted.Answer{{Agent: "yes", Text: "Of course."}, {Agent: "no", Text: "Never."}},
		want: "[router] I ask yes\n[yes] Of course.\n[router] that was router\n[router] I ask no\n[no] Never.\n[router] that was router\n" +
			"asked: no events: 8\n",
	},
	"memory": {
		answers: []scripted.Answer{
			{Agent: "writer", Calls: call("save", map[string]any{"text": "Mimi"})}, {Agent: "writer", MatchRequest: "version", Text: "Noted."},
			{Agent: "writer", Match: "Read", Calls: call("load_artifacts", map[string]any{"artifact_names": []any{"note.txt"}})},
			{Agent: "writer", Text: "It says Mimi."},
			{Agent: "reader", MatchRequest: "(?s)My cat is called Mimi", Calls: call("load_memory", map[string]any{"query": "cat"})},
			{Agent: "reader", Text: "Mimi!"},
		},
		want: "[writer] calls save\n[writer] save answers map[version:1]\n[writer] Noted.\n[writer] calls load_artifacts\n" +
			"[writer] load_artifacts answers map[artifact_names:[note.txt]]\n[writer] It says Mimi.\nfile: Mimi\n[reader] calls load_memory\n" +
			"[reader] load_memory answers …\n[reader] Mimi!\n",
	},
	"mcp": {
		answers: []scripted.Answer{{Calls: call("find", map[string]any{"title": "Emma"})}, {MatchRequest: "shelf", Text: "On shelf 4."}},
		want:    "[librarian] calls find\n[librarian] find answers map[shelf:4]\n[librarian] On shelf 4.\n",
	},
	"confirmation": {
		answers: []scripted.Answer{
			{Calls: call("remove", map[string]any{"name": "a.txt"})}, {Text: "Then not."},
			{Calls: call("remove", map[string]any{"name": "a.txt"})}, {MatchRequest: "done", Text: "It is gone."},
		},
		want: "[cleaner] calls remove\n…[cleaner] calls adk_request_confirmation\nasked about remove a.txt and answered false\n" +
			"…[cleaner] Then not.\n[cleaner] calls remove\n…[cleaner] calls adk_request_confirmation\n" +
			"asked about remove a.txt and answered true\nremoved a.txt\n[cleaner] remove answers map[result:done]\n[cleaner] It is gone.\n",
	},
	"transfer": {
		answers: []scripted.Answer{
			{Agent: "greeter", Calls: call("transfer_to_agent", map[string]any{"agent_name": "bills"})}, {Agent: "bills", Text: "It is right."},
			{Agent: "bills", Text: "That one is wrong."},
		},
		want: "[greeter] calls transfer_to_agent\n[greeter] transfer_to_agent answers map[]\n[bills] It is right.\n[bills] That one is wrong.\n",
	},
	"plugin": {
		answers: []scripted.Answer{{Calls: call("clock", nil)}, {MatchRequest: "noon", Text: "It is noon."}},
		want: "message: time?\nbegins: timer\nasks: What time is it?\nevent of timer\n[timer] calls clock\nevent of timer\n" +
			"[timer] clock answers map[from:clock of the plugin time:noon]\nasks: What time is it?\nevent of timer\n[timer] It is noon.\nends\n",
	},
	"console": {
		answers: []scripted.Answer{{Match: "Hello", Text: "Good day."}, {MatchRequest: "Good day", Text: "Goodbye."}},
		args:    "console -streaming_mode none", typed: "Hello\nAnd now?\n",
		want: "helper> Good day.\nhelper> Goodbye.\n",
	},
}

// A7, A8, A12, A13: programs of each kind, as they are written for both versions of ADK, build and answer after refrain adk move.
func TestMovedProgramsOfADK(t *testing.T) {
	longtest.WithoutRace(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/adk")); err != nil {
		t.Fatal(err)
	}
	for kind := range movedPrograms {
		secondVersion(t, dir, kind)
	}
	secondVersion(t, dir, "say")
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, []string{"adk", "move", dir, "--write"}, os.Getenv, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &errs)
	}
	binary := programtest.Build(t, "programs", "..", oneProgram(t, dir))
	for name, p := range movedPrograms {
		for _, name := range []string{name, name + "2"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				srv := modeltest.GeminiServer(t, scripted.Script{Answers: p.answers})
				cmd := exec.CommandContext(t.Context(), binary, append([]string{name}, strings.Fields(p.args)...)...)
				cmd.Dir = t.TempDir()
				cmd.Env = []string{"GOOGLE_API_KEY=key", "GOOGLE_GEMINI_BASE_URL=" + srv.BaseURL, "HOME=" + cmd.Dir, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
				var out, errs bytes.Buffer
				cmd.Stdin, cmd.Stdout, cmd.Stderr = io.Reader(strings.NewReader(p.typed)), &out, &errs
				err := cmd.Run()
				got := regexp.MustCompile(`(load_memory answers ).*`).ReplaceAllString(out.String(), "$1…")
				got = regexp.MustCompile(`\[cleaner\] remove answers map\[error:.*\n`).ReplaceAllString(got, "…") // texts of errors differ
				if diff := cmp.Diff(p.want, got); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s%s", err, diff, &errs)
				}
				if n := len(srv.Requests()); n != len(p.answers) {
					t.Errorf("the model was asked %d times, want %d", n, len(p.answers))
				}
			})
		}
	}
}

// oneProgram makes the programs in the folders of dir packages of one program, whose first argument is the name of a
// folder, because linking takes longest. It returns dir.
func oneProgram(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "main.go"))
	if err != nil || len(files) != 2*len(movedPrograms) {
		t.Fatalf("%d programs, %v", len(files), err)
	}
	var imports, calls strings.Builder
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		fmt.Fprintf(&imports, "\tp%d \"example.com/programs/%s\"\n", i, name)
		fmt.Fprintf(&calls, "\t\t%q: p%d.Main,\n", name, i)
		part := strings.NewReplacer("\npackage main\n", "\npackage program\n", "\nfunc main() {", "\nfunc Main() {").Replace(string(text))
		if err := os.WriteFile(file, []byte(part), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf("package main\n\nimport (\n\t\"os\"\n\n%s)\n\nfunc main() {\n\tname := os.Args[1]\n\tos.Args = os.Args[1:]\n"+
		"\tmap[string]func(){\n%s\t}[name]()\n}\n", &imports, &calls)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// secondVersion adds to the program of a folder, which is written for ADK v1, the same one for v2.
func secondVersion(t *testing.T, dir, name string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, name, "*.go"))
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, name+"2"), 0o700)
	}
	for _, file := range files {
		var text []byte
		if text, err = os.ReadFile(file); err == nil {
			v2 := strings.NewReplacer("google.golang.org/adk/", "google.golang.org/adk/v2/", "programs/say", "programs/say2", "agent.CallbackContext",
				"agent.Context", "agent.ToolContext", "agent.Context", "session.NewEvent(", "session.NewEvent(ctx, ").Replace(string(text))
			err = os.WriteFile(filepath.Join(dir, name+"2", filepath.Base(file)), []byte(v2), 0o600)
		}
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
}
