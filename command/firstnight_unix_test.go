// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/internal/testkit/standin"
)

// K7: the first command of the README works at the first try with each real coding agent, with the defaults. The agent tries what it may
// not do, runs the tests, mends half of it in its first turn and the rest in its second one. It works in a folder of a monorepo, or in a
// sandbox in the whole of a repository.
func TestFirstNightOfARealCodingAgent(t *testing.T) {
	longtest.WithoutRace(t)
	bin := os.Getenv("REFRAIN_CLIS")
	if bin == "" {
		t.Skip("REFRAIN_CLIS is not set: the first command of the README is tried with no real coding agent; see make clis")
	}
	run := func(tool string) func(string) standin.Answer {
		return func(line string) standin.Answer {
			in := map[string]any{"command": line, "description": "x"}
			if tool == "run_shell_command" {
				in["is_background"] = false // Qwen requires it
			}
			return standin.Answer{Tool: tool, Input: in}
		}
	}
	read := func(tool, name string) func(string) standin.Answer {
		return func(path string) standin.Answer { return standin.Answer{Tool: tool, Input: map[string]any{name: path}} }
	}
	for _, tt := range []struct {
		program     string
		flags       []string
		shell, read func(string) standin.Answer
		write       func(path, text string) standin.Answer
		denied      bool // the program reports what it was not allowed to run
		files       map[string]string
		env         []string
		sandbox     string // of the agent and of the command; "" is none
		folder      string // begins each path, for tools that take absolute paths only
	}{
		{program: "claude", sandbox: taskagent.SandboxWorkspace, shell: run("Bash"), read: read("Read", "file_path"), write: standin.Write, denied: true},
		{program: "codex", sandbox: taskagent.SandboxWorkspace, flags: []string{"--cli", "codex"}, shell: standin.Shell, write: shellWrite},
		{program: "claude", sandbox: taskagent.SandboxBwrap, shell: run("Bash"), read: read("Read", "file_path"), write: standin.Write, denied: true},
		{program: "codex", sandbox: taskagent.SandboxBwrap, flags: []string{"--cli", "codex"}, shell: standin.Shell, write: shellWrite},
		{program: "claude", shell: run("Bash"), read: read("Read", "file_path"), write: standin.Write, denied: true},
		{program: "codex", flags: []string{"--cli", "codex"}, shell: standin.Shell, write: shellWrite},
		{program: "gemini", flags: []string{"--acp", "gemini --acp -m gemini-2.5-flash", "--inherit", "GEMINI_API_KEY", "--inherit", "GOOGLE_GEMINI_BASE_URL",
			"--inherit", "HTTP_PROXY", "--inherit", "HTTPS_PROXY", "--inherit", "NO_PROXY"},
			shell: run("run_shell_command"), denied: true, write: fileTool("write_file", "file_path"),
			files: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}},
				"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false, "maxAttempts": 1}}`},
			env: []string{"GEMINI_API_KEY=k", "GOOGLE_GEMINI_BASE_URL=SERVER", // a closed port takes what goes elsewhere
				"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1"}},
		{program: "qwen", flags: []string{"--acp", "qwen --acp --auth-type openai", "--inherit", "OPENAI_API_KEY", "--inherit", "OPENAI_BASE_URL", "--inherit", "OPENAI_MODEL"},
			shell: run("run_shell_command"), read: read("read_file", "file_path"), denied: true, write: fileTool("write_file", "file_path"), folder: "WORKDIR/",
			files: map[string]string{".qwen/settings.json": `{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`},
			env:   []string{"OPENAI_BASE_URL=SERVER/v1", "OPENAI_MODEL=stand-in"}},
		{program: "opencode", flags: []string{"--acp", "opencode acp", "--inherit", "OPENCODE_DISABLE_MODELS_FETCH", "--inherit", "OPENCODE_DISABLE_AUTOUPDATE"},
			shell: run("bash"), read: read("read", "filePath"), write: fileTool("write", "filePath"),
			files: map[string]string{".config/opencode/opencode.json": `{"autoupdate": false, "share": "disabled", "model": "stub/stub-1",
				"provider": {"stub": {"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": {"baseURL": "SERVER/v1", "apiKey": "k"},
				"models": {"stub-1": {"name": "stub-1", "limit": {"context": 100000, "output": 1000}}}}}}`},
			env: []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}},
	} {
		t.Run(tt.program+inSandbox(tt.sandbox), func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(bin, tt.program)); err != nil {
				t.Skipf("%s is not installed; ./.ci/clis all installs it", tt.program)
			}
			t.Parallel()
			w := newMending(t, bin)
			w.put(w.repo, map[string]string{".gitignore": ".refrain/\n"})
			if tt.sandbox == "" { // a folder of a monorepo, which needs the module beside it
				w.folder = "services/api"
				w.put(w.repo, map[string]string{"go.work": "go 1.26\n\nuse (\n\t./numbers\n\t./services/api\n)\n"})
				w.put(filepath.Join(w.repo, "numbers"), map[string]string{"go.mod": "module numbers\n\ngo 1.26\n",
					"two.go": "package numbers\n\nconst Two = 2\n"})
			}
			two := "func two() int { return 2 }"
			if tt.sandbox == "" {
				two = "import \"numbers\"\n\nfunc two() int { return numbers.Two }"
			}
			w.put(filepath.Join(w.repo, w.folder), map[string]string{
				"go.mod": "module mend\n\ngo 1.26\n", "two.go": "package mend\n\n" + two + "\n",
				"mend_test.go": "package mend\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif got := one(); got != 1 {\n\t\tt.Fatal(got)\n\t}\n}\n",
			})
			w.git("init", "-q", "-b", "main")
			w.git("add", "-A")
			w.git("commit", "-qm", "first")
			home := filepath.Join(w.dir, "home")
			w.put(home, map[string]string{"precious": "mine\n"})

			right := "package mend\n\nfunc one() int { return 1 }\n"
			script := []standin.Answer{
				tt.shell("rm -rf ~"), tt.shell("curl http://127.0.0.1:9/x"), tt.shell("git push"), tt.shell("go test ./..."),
				tt.write(tt.folder+"one.go", "package mend\n\nfunc one() int { return two() }\n"), tt.shell("go test ./... 2>&1 | tail -n 5"),
				standin.Say("I tried."), tt.shell("go test ./..."),
			}
			if tt.read != nil {
				script = append(script, tt.read(tt.folder+"one.go"))
			}
			script = append(script, tt.write(tt.folder+"one.go", right), standin.Say("done"))
			server := standin.New(script...)
			defer server.Close()
			w.serve(server.URL)
			for _, line := range tt.env {
				w.env = append(w.env, strings.ReplaceAll(line, "SERVER", server.URL))
			}
			for name, text := range tt.files {
				w.put(filepath.Dir(filepath.Join(home, name)), map[string]string{filepath.Base(name): strings.ReplaceAll(text, "SERVER", server.URL)})
			}
			before := w.sums(filepath.Join(w.repo, ".git"))
			args := append([]string{"loop", "Make the tests pass", "--until", "go test ./...", "--branch", "refrain/first", "--max", "10"}, tt.flags...)
			err := w.ends(tt.sandbox, args...)
			if err != nil {
				t.Fatalf("%v, after %d calls of the model\n%s", err, len(server.Asked()), w.said)
			}
			if said := w.said.String(); !strings.Contains(said, "stop_reason=exit_loop iterations=2") ||
				tt.denied && !strings.Contains(said, "was not allowed to run rm -rf ~, curl http://127.0.0.1:9/x, git push") {
				t.Errorf("it does not say what it did:\n%s", said)
			}
			if got := w.git("show", "refrain/first:"+filepath.Join(w.folder, "one.go")); got != right {
				t.Errorf("the branch has %q", got)
			}
			if _, err := os.Stat(filepath.Join(home, "precious")); err != nil {
				t.Error(err)
			}
			w.onlyNew(before, w.sums(filepath.Join(w.repo, ".git")))
			if asked := server.Asked(); len(asked) != len(script) || !strings.Contains(asked[0], "You may run it yourself") {
				t.Errorf("the model was asked %d times, want %d", len(asked), len(script))
			}
			w.nobodyLeft()
		})
	}
}

// inSandbox ends the name of a test in a sandbox.
func inSandbox(sandbox string) string {
	if sandbox == "" {
		return ""
	}
	return " in a sandbox: " + sandbox
}

// fileTool returns a call of a tool that writes a file.
func fileTool(tool, name string) func(path, text string) standin.Answer {
	return func(path, text string) standin.Answer {
		return standin.Answer{Tool: tool, Input: map[string]any{name: path, "content": text}}
	}
}

// ends starts refrain and returns with what it has ended, after eight minutes at most. A sandbox that the machine does not have skips the test.
func (w *mending) ends(sandbox string, args ...string) error {
	w.Helper()
	if sandbox != "" {
		if err := taskagent.SandboxCheck(sandbox); err != nil {
			w.Skip(err)
		}
		args = append(args, "--sandbox", sandbox)
	}
	cmd := w.start(args...)
	late := time.AfterFunc(8*time.Minute, func() { _ = cmd.Process.Signal(os.Interrupt) })
	defer late.Stop()
	return cmd.Wait()
}

// K7: four reviewers of a real coding agent, side by side, read what the loop has done, also in a sandbox, in which Codex makes none of its
// own. What they try to change stays as it is; the agent corrects what they find.
func TestReviewOfARealCodingAgent(t *testing.T) {
	longtest.WithoutRace(t)
	bin := os.Getenv("REFRAIN_CLIS")
	if bin == "" {
		t.Skip("REFRAIN_CLIS is not set: no real coding agent reviews anything; see make clis")
	}
	bash := func(line string) standin.Answer {
		return standin.Answer{Tool: "Bash", Input: map[string]any{"command": line, "description": "x"}}
	}
	for _, tt := range []struct {
		program string
		shell   func(string) standin.Answer
		write   func(path, text string) standin.Answer
		sandbox string
	}{
		{"claude", bash, standin.Write, ""}, {"claude", bash, standin.Write, taskagent.SandboxWorkspace},
		{"codex", standin.Shell, shellWrite, ""}, {"codex", standin.Shell, shellWrite, taskagent.SandboxWorkspace},
	} {
		t.Run(tt.program+inSandbox(tt.sandbox), func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(bin, tt.program)); err != nil {
				t.Skipf("%s is not installed; ./.ci/clis installs it", tt.program)
			}
			w := newMending(t, bin)
			w.put(w.repo, map[string]string{".gitignore": ".refrain/\n", "kept.txt": "as it was\n"})
			w.git("init", "-q", "-b", "main")
			w.git("add", "-A")
			w.git("commit", "-qm", "first")
			script := []standin.Answer{tt.write("new.txt", "first try\n"), standin.Say("I wrote it.")}
			for range 4 { // in any order: each reviewer goes on until it gets an answer that is a text
				script = append(script, tt.shell("cat new.txt; echo spoilt >kept.txt"))
			}
			for range 4 {
				script = append(script, standin.Say(`[{"file": "new.txt", "line": 1, "severity": "high", "problem": "It is a try."}]`))
			}
			script = append(script, tt.shell("cat new.txt"))
			if tt.program == "claude" { // which writes no file that it has not read with its own tool
				script[len(script)-1] = standin.Answer{Tool: "Read", Input: map[string]any{"file_path": "new.txt"}}
			}
			script = append(script, tt.write("new.txt", "corrected\n"), standin.Say("I corrected it."))
			for range 4 {
				script = append(script, standin.Say("[]"))
			}
			server := standin.New(script...)
			defer server.Close()
			w.serve(server.URL)
			args := []string{"loop", "Write it.", "--cli", tt.program, "--until", "test -e new.txt", "--branch", "refrain/reviewed", "--review"}
			err := w.ends(tt.sandbox, args...)
			asked := server.Asked()
			if err != nil || len(asked) != len(script) {
				t.Fatalf("%v, after %d of %d calls of the model\n%s", err, len(asked), len(script), w.said)
			}
			if got := w.git("show", "refrain/reviewed:new.txt") + w.git("show", "refrain/reviewed:kept.txt"); got != "corrected\nas it was\n" {
				t.Errorf("the branch has %q", got)
			}
			if all := strings.Join(asked, "\n"); tt.sandbox != "" && tt.program == "codex" && !strings.Contains(all, "ermission denied") {
				t.Errorf("no reviewer was told that it may not write:\n%s", all)
			}
			w.nobodyLeft()
		})
	}
}

// K7: a real coding agent works in a folder of --add-dir too, also in a sandbox, and in no folder beside it. The branch does not have its files.
func TestFurtherFolderOfARealCodingAgent(t *testing.T) {
	longtest.WithoutRace(t)
	bin := os.Getenv("REFRAIN_CLIS")
	if bin == "" {
		t.Skip("REFRAIN_CLIS is not set: no real coding agent works in a further folder; see make clis")
	}
	for _, tt := range []struct {
		program string
		write   func(path, text string) standin.Answer
		sandbox string
	}{
		{"claude", standin.Write, ""}, {"claude", standin.Write, taskagent.SandboxWorkspace},
		{"codex", shellWrite, ""}, {"codex", shellWrite, taskagent.SandboxWorkspace},
	} {
		t.Run(tt.program+inSandbox(tt.sandbox), func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(bin, tt.program)); err != nil {
				t.Skipf("%s is not installed; ./.ci/clis installs it", tt.program)
			}
			t.Parallel()
			w := newMending(t, bin)
			w.put(w.repo, map[string]string{".gitignore": ".refrain/\n", "a.txt": "a\n"})
			w.git("init", "-q", "-b", "main")
			w.git("add", "-A")
			w.git("commit", "-qm", "first")
			outside := standin.OutsideOfTemp(t, "further")
			further, beside := filepath.Join(outside, "further"), filepath.Join(outside, "beside")
			w.put(further, nil)
			w.put(beside, nil)
			server := standin.New(tt.write(filepath.Join(beside, "no.txt"), "no\n"), tt.write(filepath.Join(further, "yes.txt"), "yes\n"),
				tt.write("b.txt", "b\n"), standin.Say("I wrote them."))
			defer server.Close()
			w.serve(server.URL)
			err := w.ends(tt.sandbox, "loop", "Write them.", "--cli", tt.program, "--until", "cat "+further+"/yes.txt b.txt", "--add-dir", further, "--branch", "refrain/both")
			if err != nil {
				t.Fatalf("%v, after %d calls of the model\n%s", err, len(server.Asked()), w.said)
			}
			if text, err := os.ReadFile(filepath.Join(further, "yes.txt")); err != nil || string(text) != "yes\n" {
				t.Errorf("the further folder has %q, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(beside, "no.txt")); err == nil {
				t.Error("the agent has written beside the folder")
			}
			if got := w.git("ls-tree", "-r", "--name-only", "refrain/both"); got != ".gitignore\na.txt\nb.txt\n" {
				t.Errorf("the branch has %q", got)
			}
			w.nobodyLeft()
		})
	}
}

// shellWrite returns a command of Codex that writes a file.
func shellWrite(path, text string) standin.Answer {
	return standin.Shell("cat >" + path + " <<'EOF'\n" + text + "EOF\n")
}
