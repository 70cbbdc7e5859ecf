// SPDX-License-Identifier: Apache-2.0

//go:build unix

package taskagent_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
)

func command(t *testing.T, cfg taskagent.CommandConfig, state map[string]any) *ran {
	t.Helper()
	if cfg.Name == "" {
		cfg.Config = taskagent.Config{Name: "c", OutputKey: "out", ResultKey: "all"}
	}
	return run(t.Context(), t, must(taskagent.NewCommand(cfg)), state)
}

// D1, D2, D4: a command's output is its words and its result.
func TestCommandOutputIsSaidAndKept(t *testing.T) {
	got := command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", `echo "two lines"; echo; echo oops >&2`}}, nil)
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "words", []string{"two lines"}, got.words())
	equal(t, "state", map[string]any{
		"out": "two lines",
		"all": map[string]any{"exit_code": 0.0, "stdout": "two lines\n\n", "stderr": "oops\n"},
	}, got.state)
	equal(t, "author", "c", got.events[0].Author)
}

// D1: an empty output replaces an older one, and nobody says it.
func TestEmptyOutputReplacesAnOlderOne(t *testing.T) {
	got := command(t, taskagent.CommandConfig{Args: []string{"true"}}, map[string]any{"out": "old"})
	if got.err != nil || got.words() != nil {
		t.Errorf("words %q, error %v", got.words(), got.err)
	}
	equal(t, "out", any(""), got.state["out"])
}

// D4: a value is one argument, whatever is in it; single braces are the author's.
func TestValueIsOneArgument(t *testing.T) {
	evil := "a b'; echo \"$HOME\" `id` $(id) *\n{{draft}} {draft}"
	cfg := taskagent.CommandConfig{
		Args:   []string{"sh", "-c", `for a; do printf '<%s>' "$a"; done`, "sh", "x={{draft}}", "{{draft}}", "{draft}", "${HOME}", "{{none?}}"},
		Shapes: map[string]taskagent.Shape{"draft": {Pattern: "(?s).*"}, "none": {Type: taskagent.ShapeInt}},
	}
	got := command(t, cfg, map[string]any{"draft": evil})
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "out", any("<x="+evil+"><"+evil+"><{draft}><${HOME}><>"), got.state["out"])
	cfg.Shapes, cfg.Unsafe = nil, true
	equal(t, "out, unsafe", got.state["out"], command(t, cfg, map[string]any{"draft": evil}).state["out"])
	has(t, command(t, cfg, map[string]any{"draft": "a\x00b"}).err, "Args[4]", "zero byte")
}

// D4: a value that is not of its shape fails the step, which a retry would not help, and nothing is run. The error names the
// placeholder, what is declared and what the value is.
func TestValueOfAnotherShapeFailsTheStep(t *testing.T) {
	root := t.TempDir()
	for _, link := range [][2]string{{"/etc", "out"}, {"../..", "up"}, {"sub", "in"}} {
		if err := os.Symlink(link[0], filepath.Join(root, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("sh", "-c", "cd '"+root+"' && mkdir sub head theirs theirs/deep bare && mkdir -p theirs/.git bare/objects && touch sub/a.txt ./-a bare/HEAD && "+
		"mkfifo pipe && ln -s theirs/deep link").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	shapes := map[string]taskagent.Shape{
		"n": {Type: taskagent.ShapeNumber}, "mode": {Choices: []string{"fast", "-x"}}, "word": {Pattern: "[-a-z]+"}, "file": {Type: taskagent.ShapeFile},
		"folder": {Type: taskagent.ShapeFolder},
	}
	for _, tt := range []struct {
		arg   string
		state map[string]any
		want  string // "" if it runs
	}{
		{"{{n}}", map[string]any{"n": -3}, ""},
		{"--n={{n}}", map[string]any{"n": "touch x"}, `Args[3]: {{n}} must be a number, got "touch x"`},
		{"{{n}}", map[string]any{"n": []any{"--help"}}, "{{n}} must be a number"},
		{"{{n}}", nil, ""}, // LOOP 25: nothing is not a value of another shape
		{"{{mode}}", map[string]any{"mode": "-x"}, ""},
		{"{{mode}}", map[string]any{"mode": "slow"}, `{{mode}} must be one of fast, -x, got "slow"`},
		{"{{word}}", map[string]any{"word": "-rf"}, `{{word}} must be text that matches [-a-z]+, got "-rf": it begins with -`},
		{"a{{word}}", map[string]any{"word": "-rf"}, ""},
		{"{{#n}}{{/n}}{{word}}", map[string]any{"word": "-rf"}, "it begins with -"},
		{"{{#word}}{{.}}{{/word}}", map[string]any{"word": "A"}, "{{word}} must be text"},
		{"{{#word}}{{.}}{{/word}}", map[string]any{"word": []any{"a"}}, "{{word}} must be text"},
		{"{{file}}", map[string]any{"file": "sub/a.txt"}, ""},
		{"{{file}}", map[string]any{"file": "./in/a.txt"}, ""},
		{"--file={{file}}", map[string]any{"file": "-a"}, ""},
		{"{{#file}}--file={{.}}{{/file}}", map[string]any{"file": "-a"}, ""},
		{"{{file}}", map[string]any{"file": "sub/new.txt"}, `file "./sub/new.txt" must exist inside the root`},
		{"{{file}}", map[string]any{"file": "sub"}, `"./sub" is a folder: declare the value with type: folder`},
		{"{{file}}", map[string]any{"file": "pipe"}, `"./pipe" is not a regular file`},
		{"{{file}}", map[string]any{"file": "a';touch ran;'"}, "a program may read a part of it as code"},
		{"{{folder}}", map[string]any{"folder": "in"}, ""},
		{"{{folder}}", map[string]any{"folder": "."}, ""},
		{"{{folder}}", map[string]any{"folder": "head"}, ""},
		{"--dir={{folder}}", map[string]any{"folder": "-a"}, `folder "./-a" must exist inside the root`},
		{"{{folder}}", map[string]any{"folder": "up"}, `folder "./up" must exist inside the root`},
		{"{{folder}}", map[string]any{"folder": "theirs"}, "is in a repository of its own"},
		{"{{folder}}", map[string]any{"folder": "theirs/deep"}, "is in a repository of its own"},
		{"{{folder}}", map[string]any{"folder": "link"}, "is in a repository of its own"},
		{"{{folder}}", map[string]any{"folder": "bare"}, "is in a repository of its own"},
		{"{{file}}", map[string]any{"file": "../x"}, "{{file}} must be a path inside the root"},
		{"{{file}}", map[string]any{"file": "out/passwd"}, "must exist inside the root"},
		{"{{file}}", map[string]any{"file": "up"}, "must exist inside the root"},
		{"{{^n}}out/{{file}}{{/n}}", map[string]any{"file": "passwd"}, "a path is a whole argument"},
		{"{{^n}}{{file}}.bak{{/n}}", map[string]any{"file": "-a"}, "a path is a whole argument"},
	} {
		got := command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", "touch ran", tt.arg}, Shapes: shapes, Root: root}, tt.state)
		_, err := os.Stat(filepath.Join(root, "ran"))
		switch ran := err == nil; {
		case tt.want == "" && (got.err != nil || !ran):
			t.Errorf("%s %v: %v", tt.arg, tt.state, got.err)
		case tt.want != "" && (got.err == nil || !strings.Contains(got.err.Error(), tt.want) || ran):
			t.Errorf("%s %v: %v, ran is %t, want %q", tt.arg, tt.state, got.err, ran, tt.want)
		}
		if value, ok := errors.AsType[*taskagent.ValueError](got.err); ok && (!value.Permanent() || value.Name == "") {
			t.Errorf("%s: %+v", tt.arg, value)
		}
		os.Remove(filepath.Join(root, "ran"))
	}
	got := command(t, taskagent.CommandConfig{Args: []string{"env"}, Env: map[string]string{"LEVEL": "{{n}}"}, Shapes: shapes}, map[string]any{"n": "x"})
	has(t, got.err, `Env["LEVEL"]: {{n}} must be a number`)
}

// D4: stdin and environment are templates.
func TestStdinAndEnv(t *testing.T) {
	t.Setenv("TASK_SECRET", "inherited")
	cfg := taskagent.CommandConfig{
		Args:  []string{"sh", "-c", `cat; echo "|$TASK_SECRET|$INPUT_STYLE|$MORE|${PATH:+path}"`},
		Stdin: "{{draft}}",
		Env:   map[string]string{"INPUT_STYLE": "{{style}}", "MORE": "a=b"},
	}
	state := map[string]any{"draft": strings.Repeat("x", 200_000), "style": "terse; $HOME"}
	got := command(t, cfg, state)
	equal(t, "out", any(state["draft"].(string)+"|inherited|terse; $HOME|a=b|path"), got.state["out"])
	cfg.CleanEnv = true
	got = command(t, cfg, state)
	equal(t, "clean", any(state["draft"].(string)+"||terse; $HOME|a=b|path"), got.state["out"])

	// A command that does not read its input is none the worse for it.
	cfg.Args = []string{"true"}
	if got = command(t, cfg, state); got.err != nil {
		t.Error(got.err)
	}
}

// A command gets no variable of Refrain's own and no key of a model unless it names it, and no other
// that it withholds.
func TestInheritedEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"REFRAIN_TOKEN": "a", "OPENAI_API_KEY": "b", "TEMPORAL_API_KEY": "c", "OTEL_EXPORTER_OTLP_HEADERS": "d", "PGPASSWORD": "e", "HOOK_KEY": "f", "SHELF": "g",
	} {
		t.Setenv(name, value)
	}
	cfg := taskagent.CommandConfig{
		Args: []string{"sh", "-c", `echo "$REFRAIN_TOKEN|$OPENAI_API_KEY|$TEMPORAL_API_KEY|$OTEL_EXPORTER_OTLP_HEADERS|$PGPASSWORD|$HOOK_KEY|$SHELF|${REFRAIN_CALL_ID:+id}"`},
	}
	for _, tt := range []struct {
		clean             bool
		inherit, withhold []string
		want              string
	}{
		{want: "|||||f|g|id"},
		{withhold: []string{"HOOK_KEY"}, want: "||||||g|id"},
		{inherit: []string{"OPENAI_API_KEY", "HOOK_KEY"}, withhold: []string{"HOOK_KEY"}, want: "|b||||f|g|id"},
		{clean: true, want: "|||||||id"},
		{clean: true, inherit: []string{"SHELF", "REFRAIN_TOKEN"}, want: "a||||||g|id"},
	} {
		cfg.CleanEnv, cfg.Inherit, cfg.Withhold = tt.clean, tt.inherit, tt.withhold
		equal(t, "environment", any(tt.want), command(t, cfg, nil).state["out"])
	}
}

// A command that says a key says it to nobody, be it a key of its own, one that it has inherited, or
// one that it was not given and has found. What is no key stays.
func TestOutputHasNoKeys(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-inherited1")
	t.Setenv("DB_PASSWORD", "postgres")
	script := `printf %s "$INPUT_TOKEN, $OPENAI_API_KEY, sk-; "; printf sk-inher; sleep 0.05; printf %s "ited1, true, postgres, $STYLE, sk-inherite"`
	for _, code := range []string{"0", "1"} {
		got := command(t, taskagent.CommandConfig{
			Args: []string{"sh", "-c", "say() { " + script + "; }; say; say >&2; exit " + code},
			Env:  map[string]string{"INPUT_TOKEN": "{{token}}", "STYLE": "brief-style"}, Inherit: []string{"OPENAI_API_KEY"},
		}, map[string]any{"token": "tk-4711-4711"})
		const want = "[secret], [secret], sk-; [secret], true, postgres, brief-style, sk-inherite"
		all := got.state["all"].(map[string]any)
		equal(t, "stdout", any(want), all["stdout"])
		equal(t, "stderr", any(want), all["stderr"])
		if code == "1" {
			has(t, got.err, want)
		}
	}
}

// G2: an exit code is an error, and what there was is kept for the next step.
func TestExitCode(t *testing.T) {
	fail := []string{"sh", "-c", `echo out; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "line $i" >&2; done; exit 3`}
	got := command(t, taskagent.CommandConfig{Args: fail}, map[string]any{"out": "old"})
	failed, ok := errors.AsType[*taskagent.ExitError](got.err)
	if !ok || failed.Code != 3 || failed.Command != "sh" {
		t.Fatalf("the error is %v, want an ExitError", got.err)
	}
	has(t, got.err, `run command "sh": exit status 3`, "line 3\n", "line 12")
	if strings.Contains(failed.Stderr, "line 2\n") {
		t.Errorf("Stderr has more than 10 lines: %q", failed.Stderr)
	}
	all := got.state["all"].(map[string]any)
	equal(t, "exit code", any(3.0), all["exit_code"])
	equal(t, "stdout", any("out\n"), all["stdout"])
	equal(t, "output key", any("old"), got.state["out"])
	equal(t, "words", 0, len(got.words()))

	got = command(t, taskagent.CommandConfig{Args: fail, OKExitCodes: []int{0, 3}}, nil)
	if got.err != nil {
		t.Error(got.err)
	}
	equal(t, "out", any("out"), got.state["out"])

	got = command(t, taskagent.CommandConfig{Args: []string{"true"}, OKExitCodes: []int{3}}, nil)
	has(t, got.err, "exit status 0")

	got = command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", "kill -9 $$"}}, nil)
	has(t, got.err, "signal: killed")
	equal(t, "exit code of a signal", any(-1.0), got.state["all"].(map[string]any)["exit_code"])
}

// D18: JSON is read, and numbers stay what they are.
func TestCommandJSON(t *testing.T) {
	json := func(text string) *ran {
		return command(t, taskagent.CommandConfig{Args: []string{"cat"}, Stdin: "{{text}}", JSON: true}, map[string]any{"text": text})
	}
	got := json(`{"id": 9007199254740993, "score": 7.5, "big": 1e3, "list": [1, null, "x"]}`)
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := map[string]any{"id": int64(9007199254740993), "score": 7.5, "big": 1000.0, "list": []any{1.0, nil, "x"}}
	equal(t, "out", any(want), got.state["out"])
	equal(t, "json", any(want), got.state["all"].(map[string]any)["json"])

	for text, why := range map[string]string{
		"":        "the text is empty",
		"{} {}":   "there is more",
		"[1e999]": "out of range",
		"score 7": "invalid character",
	} {
		got := json(text)
		has(t, got.err, `read the output of command "cat" as JSON`, why)
		equal(t, "kept", any(text), got.state["all"].(map[string]any)["stdout"])
	}
}

// Text that is not UTF-8 becomes text that can be stored.
func TestOutputIsMadeUTF8(t *testing.T) {
	got := command(t, taskagent.CommandConfig{Args: []string{"printf", `caf\351`}}, nil)
	equal(t, "out", any("caf\uFFFD"), got.state["out"])
}

// D4, F11: ten megabytes are too many, on both streams.
func TestOutputLimit(t *testing.T) {
	for _, stream := range []string{"stdout", "stderr"} {
		script := "head -c 10000000 /dev/zero"
		if stream == "stderr" {
			script += " >&2"
		}
		got := command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", script + "; sleep 100"}}, nil)
		limit, ok := errors.AsType[*taskagent.LimitError](got.err)
		if !ok || limit.Stream != stream || limit.Limit != 1<<20 {
			t.Errorf("%s: the error is %v, want a LimitError", stream, got.err)
		}
		has(t, got.err, stream+" is longer than the limit of 1048576 bytes", "raise the output limit")
		equal(t, "state", map[string]any{}, got.state)
	}
	got := command(t, taskagent.CommandConfig{Args: []string{"head", "-c", "3000000", "/dev/zero"}, OutputLimit: 3_000_000}, nil)
	if got.err != nil {
		t.Errorf("as much as allowed: %v", got.err)
	}
}

// F4, G5: a program that does not exist is an error that can be told apart.
func TestUnknownProgram(t *testing.T) {
	got := command(t, taskagent.CommandConfig{Args: []string{"no-such-program"}}, nil)
	if !errors.Is(got.err, exec.ErrNotFound) {
		t.Errorf("the error is %v", got.err)
	}
	has(t, got.err, `run command "no-such-program"`)
}

// D4: the working directory stays below the root.
func TestWorkingDirectory(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "a", "b"), 0o755),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o644),
		os.Symlink(outside, filepath.Join(root, "out")),
		os.Symlink("..", filepath.Join(root, "up")),
		os.Symlink("a", filepath.Join(root, "in")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ dir, want, err string }{
		{"", "", ""},
		{"a/b", "/a/b", ""},
		{"a/../in", "/a", ""},
		{"..", "", "is outside the root"},
		{"a/../../x", "", "is outside the root"},
		{outside, "", "is outside the root"},
		{"out", "", "escapes"},
		{"up", "", "escapes"},
		{"a/none", "", "no such file"},
		{"file", "", "is not a directory"},
	} {
		got := command(t, taskagent.CommandConfig{Args: []string{"pwd", "-P"}, Root: root, Dir: "{{dir}}", Unsafe: true}, map[string]any{"dir": tt.dir})
		if tt.err != "" {
			has(t, got.err, "working directory", strconv.Quote(tt.dir), tt.err)
			continue
		}
		real, err := filepath.EvalSymlinks(root)
		if err != nil || got.err != nil {
			t.Fatal(err, got.err)
		}
		equal(t, tt.dir, any(real+tt.want), got.state["out"])
	}
}

// A program may run what it finds in its folder, such as the settings of a repository: text chooses a folder only where
// its shape is declared.
func TestFolderOfADeclaredShape(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := taskagent.CommandConfig{Args: []string{"sh", "-c", "basename \"$PWD\""}, Root: root, Dir: "a/{{dir}}"}
	_, err := taskagent.NewCommand(cfg)
	if shape, ok := errors.AsType[*taskagent.ShapeError](err); !ok || shape.Field != "Dir" || shape.Name != "dir" {
		t.Errorf("free text: %v", err)
	}
	cfg.Shapes = map[string]taskagent.Shape{"dir": {Type: taskagent.ShapeFile}}
	_, err = taskagent.NewCommand(cfg)
	has(t, err, "declare it with type: folder")
	if err := os.MkdirAll(filepath.Join(root, "a", "theirs", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.Shapes = map[string]taskagent.Shape{"dir": {Pattern: "[a-z]+"}}
	has(t, command(t, cfg, map[string]any{"dir": "theirs"}).err, "is in a repository of its own")
	cfg.Shapes = map[string]taskagent.Shape{"dir": {Type: taskagent.ShapeFolder}}
	has(t, command(t, cfg, map[string]any{"dir": "theirs"}).err, "is in a repository of its own")
	equal(t, "a folder", any("b"), command(t, cfg, map[string]any{"dir": "b"}).state["out"])
	has(t, command(t, cfg, map[string]any{"dir": "../x"}).err, "Dir", "{{dir}}", "../x")
}

// T20, F4: cancelling, or a timeout, kills the command and what it started.
func TestCommandIsKilledWithItsGroup(t *testing.T) {
	because := errors.New("Ana pressed stop")
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		want    error
		text    string
	}{
		{name: "cancel", want: because},
		{name: "timeout", timeout: 2 * time.Second, want: context.DeadlineExceeded, text: `run command "sh": it did not end in its timeout of 2s`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fifo := newFIFO(t)
			a := must(taskagent.NewCommand(taskagent.CommandConfig{
				Config:  taskagent.Config{Name: "c", ResultKey: "all"},
				Args:    []string{"sh", "-c", `exec 3>"$1"; sleep 1000 & echo $! >&3; wait`, "sh", fifo},
				Timeout: tt.timeout,
			}))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan *ran)
			go func() { done <- run(ctx, t, a, nil) }()
			pid := readFIFO(t, fifo, func() {
				if tt.timeout == 0 {
					cancel(because)
				}
			})
			got := <-done
			if !errors.Is(got.err, tt.want) {
				t.Errorf("the error is %v, want %v", got.err, tt.want)
			}
			has(t, got.err, tt.text)
			equal(t, "state", map[string]any{}, got.state)
			isGone(t, pid)
		})
	}
}

// F4: something in the background that keeps the output open does not keep the
// step, and does not outlive it.
func TestBackgroundProcessDoesNotKeepTheStep(t *testing.T) {
	fifo := newFIFO(t)
	done := make(chan *ran)
	go func() {
		done <- command(t, taskagent.CommandConfig{
			Args: []string{"sh", "-c", `exec 3>"$1"; sleep 1000 & echo $! >&3; echo started`, "sh", fifo},
		}, nil)
	}()
	pid := readFIFO(t, fifo, nil)
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "out", any("started"), got.state["out"])
	isGone(t, pid)
}

func newFIFO(t *testing.T) string {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return fifo
}

// readFIFO reads a process number from a FIFO, calls then, and waits until all
// who have the FIFO open for writing are gone.
func readFIFO(t *testing.T, fifo string, then func()) (pid int) {
	t.Helper()
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		var b [1]byte
		if _, err := io.ReadFull(f, b[:]); err != nil {
			t.Fatal(err)
		}
		line = append(line, b[0])
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(line))); err != nil {
		t.Fatal(err)
	}
	if then != nil {
		then()
	}
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Fatal(err)
	}
	return pid
}

// isGone waits until a process that has closed its files is dead.
func isGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d, started by the command, is alive", pid)
		}
	}
}

// alive reports whether a process is there and not just waiting to be noticed
// as dead.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// Around gives a command its root and variables, and adds to what the command sets; a failed command sets nothing.
func TestAroundRunsTheCommand(t *testing.T) {
	root := t.TempDir()
	calls := 0
	around := func(_ agent.InvocationContext, run func(taskagent.Folder) error) (map[string]any, error) {
		calls++
		if err := run(taskagent.Folder{Path: root, Env: []string{"A=around", "B=around"}}); err != nil {
			return nil, err
		}
		return map[string]any{"files": "h1"}, nil
	}
	got := command(t, taskagent.CommandConfig{
		Config: taskagent.Config{Name: "c", OutputKey: "out", ExitWhen: `state.files == "h1"`},
		Args:   []string{"sh", "-c", "pwd; echo $A $B"}, Env: map[string]string{"B": "own"}, Around: around,
	}, nil)
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "state", map[string]any{"out": real + "\naround own", "files": "h1"}, got.state)
	if calls != 1 || !got.events[0].Actions.Escalate {
		t.Errorf("%d calls; the exit condition does not see what was set", calls)
	}
	got = command(t, taskagent.CommandConfig{Args: []string{"false"}, Around: around}, nil)
	if _, ok := errors.AsType[*taskagent.ExitError](got.err); !ok || got.state["files"] != nil {
		t.Errorf("a failed command: %v, state %v", got.err, got.state)
	}
	broken := errors.New("no snapshot")
	around = func(_ agent.InvocationContext, run func(taskagent.Folder) error) (map[string]any, error) {
		return nil, errors.Join(run(taskagent.Folder{Path: root}), broken)
	}
	got = command(t, taskagent.CommandConfig{Args: []string{"true"}, Around: around}, map[string]any{"out": "old"})
	if !errors.Is(got.err, broken) || got.state["out"] != "old" {
		t.Errorf("a snapshot that fails: %v, state %v", got.err, got.state)
	}
}
