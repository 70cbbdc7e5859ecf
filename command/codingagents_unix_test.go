// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/internal/testkit/standin"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// mendLoop asks a coding agent until three tests pass. Its parts that differ are the agent's step and the policy.
const mendLoop = `
name: mend
workspace: {protect: ["**/*_test.go"], result: {branch: "refrain/{{run}}"}}
score: {key: passed, target: 3}
%s
sub_agents:
  - name: coder
    prompt: "Pass {{iteration}}. Make go test pass. {{tested?}}"
    timeout: 2m
    retry: 2
    result_key: asked
%s
  - {name: tests, command: [go, test, -v, ./...], ok_exit_codes: [0, 1], output_key: tested}
  - {name: passed, value: "size(state.tested.split('--- PASS')) - 1", output_key: passed}
`

// mendFiles is the repository: each function is one short.
var mendFiles = map[string]string{
	"go.mod": "module mend\n\ngo 1.26\n", ".gitignore": ".refrain/\n",
	"one.go": "package mend\n\nfunc one() int { return 0 }\n", "two.go": "package mend\n\nfunc two() int { return 1 }\n",
	"three.go": "package mend\n\nfunc three() int { return 2 }\n",
	"mend_test.go": `package mend

import "testing"

func check(t *testing.T, got, want int) {
	if got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestOne(t *testing.T)   { check(t, one(), 1) }
func TestTwo(t *testing.T)   { check(t, two(), 2) }
func TestThree(t *testing.T) { check(t, three(), 3) }
`,
}

// K7, E4, G7: a real coding agent works on a repository whose tests fail, three times. In the second iteration it does
// harm; the whole process is killed in the middle of that. The branch has the files of the best iteration, what was
// used counts once, and nothing else in the user's repository has changed. See .ci/clis.
func TestLoopOfARealCodingAgent(t *testing.T) {
	longtest.WithoutRace(t)
	bin := os.Getenv("REFRAIN_CLIS")
	if bin == "" {
		t.Skip("REFRAIN_CLIS is not set: no loop of a real coding agent is tried; see make clis")
	}
	good := func(name string, n int) (string, string) {
		return name + ".go", fmt.Sprintf("package mend\n\nfunc %s() int { return %d }\n", name, n)
	}
	for _, tt := range []struct {
		program, policy, step string
		write                 func(dir, file, content string) []standin.Answer
		stop                  loop.StopReason
		exit, best            int // exit code, iteration
		scores                []float64
	}{
		// What is worse is undone, and the third iteration goes on from the first.
		{"claude", "max_iterations: 5\non_regression: rollback", "    cli: claude", func(dir, file, content string) []standin.Answer {
			path := filepath.Join(dir, file)
			return []standin.Answer{{Tool: "Read", Input: map[string]any{"file_path": path}}, standin.Write(path, content)}
		}, loop.ReasonTarget, 0, 3, []float64{2, 1, 3}},
		// What is worse stays, and the first is handed back.
		{"codex", "max_iterations: 3\nprices: {codex: {input: 1, output: 10}}", "    cli: codex\n    args: [-m, gpt-5]", func(_, file, content string) []standin.Answer {
			return []standin.Answer{standin.Shell(fmt.Sprintf("cat >%s <<'EOF'\n%sEOF\n", file, content))}
		}, loop.ReasonMaxIterations, term.ExitLimit, 1, []float64{2, 1, 1}},
	} {
		t.Run(tt.program, func(t *testing.T) {
			t.Parallel()
			w := newMending(t, bin)
			w.put(w.repo, mendFiles)
			w.git("init", "-q", "-b", "main")
			w.git("add", "-A")
			w.git("commit", "-qm", "first")
			const id = "r_feed0001"
			tree := w.tree(id)

			right, text := good("one", 1)
			other, more := good("two", 2)
			wrong, harm := good("one", -1)
			first := append(tt.write(tree, right, text), tt.write(tree, other, more)...)
			second := append(tt.write(tree, wrong, harm), tt.write(tree, "junk.go", "package mend\n")...)
			third := tt.write(tree, "three.go", "package mend\n\nfunc three() int { return 3 }\n")
			want := maps.Clone(mendFiles)
			want[right], want[other] = text, more
			if tt.best == 3 {
				want["three.go"] = "package mend\n\nfunc three() int { return 3 }\n"
			} else {
				third = tt.write(tree, wrong, harm)
			}
			var script []standin.Answer
			script = append(append(script, first...), standin.Say("one and two"))
			script = append(append(script, second...), standin.Answer{Hang: true}) // killed here
			killedAt := len(script)
			script = append(append(script, second...), standin.Say("junk"))
			script = append(append(script, third...), standin.Say("done"))
			server := standin.New(script...)
			defer server.Close()
			w.serve(server.URL)
			w.put(w.dir, map[string]string{"mend.yaml": fmt.Sprintf(mendLoop, tt.policy, tt.step)})

			before := w.sums(filepath.Join(w.repo, ".git"))
			run := w.start("run", "../mend.yaml", "--session", id)
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			for len(server.Asked()) < killedAt {
				select {
				case err := <-ended:
					t.Fatalf("it has ended before it was killed: %v\n%s", err, w.said)
				case <-time.After(10 * time.Millisecond):
				}
			}
			_ = run.Process.Signal(syscall.SIGKILL)
			<-ended
			resumed := w.start("resume", id)
			_ = resumed.Wait()
			if got := resumed.ProcessState.ExitCode(); got != tt.exit {
				t.Fatalf("resume: exit code %d, want %d\n%s", got, tt.exit, w.said)
			}

			// The branch has the best tree, byte by byte.
			got := make(map[string]string)
			for name := range strings.Lines(w.git("ls-tree", "-r", "--name-only", "refrain/"+id)) {
				name = strings.TrimSuffix(name, "\n")
				got[name] = w.git("show", "refrain/"+id+":"+name)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("the branch (-want +got):\n%s", diff)
			}
			w.onlyNew(before, w.sums(filepath.Join(w.repo, ".git")))
			w.nobodyLeft()

			// Each answer counts once, but those of the agent that was killed: it has not said what it used.
			stop, scores := w.log(id, 100*int64(len(script)-len(second)-1))
			if stop.Reason != tt.stop || stop.BestIteration != tt.best {
				t.Errorf("it stopped because of %s, and the best iteration is %d: %+v", stop.Reason, stop.BestIteration, stop)
			}
			if !slices.Equal(scores, tt.scores) {
				t.Errorf("the scores are %v, want %v", scores, tt.scores)
			}
			if n := len(server.Asked()); n != len(script) {
				t.Errorf("the model was asked %d times, want %d", n, len(script))
			}
		})
	}
}

// K7: the template fix-tests works with the real Claude Code as it is, also where that is not allowed to run something.
func TestTemplateOfARealCodingAgent(t *testing.T) {
	longtest.WithoutRace(t)
	bin := os.Getenv("REFRAIN_CLIS")
	if bin == "" {
		t.Skip("REFRAIN_CLIS is not set: no template is tried with a real coding agent; see make clis")
	}
	w := newMending(t, bin)
	w.put(w.repo, mendFiles)
	w.git("init", "-q", "-b", "main")
	w.git("add", "-A")
	w.git("commit", "-qm", "first")
	const id = "r_feed0002"
	var script []standin.Answer
	tree := w.tree(id)
	for i, name := range []string{"one", "two", "three"} {
		path := filepath.Join(tree, name+".go")
		script = append(script, standin.Answer{Tool: "Bash", Input: map[string]any{"command": "touch ran; go test ./...", "description": "Run the tests"}},
			standin.Answer{Tool: "Read", Input: map[string]any{"file_path": path}},
			standin.Write(path, fmt.Sprintf("package mend\n\nfunc %s() int { return %d }\n", name, i+1)), standin.Say("mended "+name))
	}
	server := standin.New(script...)
	defer server.Close()
	w.serve(server.URL)
	made := exec.Command("refrain", "init", "fix-tests")
	made.Dir, made.Env = w.repo, w.env
	if out, err := made.CombinedOutput(); err != nil || bytes.Contains(out, []byte("cannot run yet")) {
		t.Fatalf("init: %v\n%s", err, out)
	}
	if err := w.start("run", "fix-tests.yaml", "--session", id).Wait(); err != nil {
		t.Fatalf("run: %v\n%s", err, w.said)
	}
	if want := "stop_reason=condition iterations=3 best=3 score=3 result=best"; !strings.Contains(w.said.String(), want) {
		t.Errorf("it does not say %s:\n%s", want, w.said)
	}
	for i, name := range []string{"one", "two", "three"} {
		if got := w.git("show", "refrain/"+id+":"+name+".go"); !strings.Contains(got, fmt.Sprintf("return %d ", i+1)) {
			t.Errorf("%s.go of the branch is %q", name, got)
		}
	}
	if got := w.git("ls-tree", "-r", "--name-only", "refrain/"+id); strings.Contains(got, "ran\n") {
		t.Errorf("what was not allowed has run: %q", got)
	}
	w.nobodyLeft()
}

// mending is a repository, and the programs that work on it.
type mending struct {
	*testing.T
	dir, repo string
	folder    string // of the repository, in which refrain is started; empty means its root
	env       []string
	said      *bytes.Buffer // stderr of the last process
}

func newMending(t *testing.T, bin string) *mending {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	w := &mending{T: t, dir: dir, repo: filepath.Join(dir, "repo")}
	w.env = append(os.Environ(), "HOME="+home, "GOCACHE="+buildCache(), "GOFLAGS=",
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k",
		"CLAUDE_CODE_MAX_RETRIES=0", "GORACE=atexit_sleep_ms=0", "REFRAIN_PROGRESS=", "REFRAIN_STORE=", "REFRAIN_MODEL=",
		"GIT_AUTHOR_NAME=ana", "GIT_AUTHOR_EMAIL=ana@example.com", "GIT_COMMITTER_NAME=ana", "GIT_COMMITTER_EMAIL=ana@example.com")
	w.put(home, nil)
	return w
}

// serve says to the programs where their models are.
func (w *mending) serve(url string) {
	home := standin.OutsideOfTemp(w, "codex")
	w.env = append(w.env, "ANTHROPIC_BASE_URL="+url, "CODEX_HOME="+home)
	w.put(home, map[string]string{"config.toml": `model_provider = "stub"

[model_providers.stub]
name = "stub"
base_url = "` + url + `/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`})
}

func (w *mending) put(dir string, files map[string]string) {
	w.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
	}
}

// start starts refrain in the repository.
func (w *mending) start(args ...string) *exec.Cmd {
	w.Helper()
	w.said = new(bytes.Buffer)
	cmd := exec.Command("refrain", append(args, "--progress", "plain")...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Join(w.repo, w.folder), w.env, w.said, w.said
	cmd.WaitDelay = time.Second // survivors of a kill hold the output
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	return cmd
}

// tree makes the folder of a run's copy before the run, in the place of older versions, where the run finds it.
func (w *mending) tree(id string) string {
	dir := filepath.Join(w.repo, ".refrain/files/runs", id, "tree")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	return dir
}

func (w *mending) git(args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.repo, w.env
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// sums are the contents of all files below dir.
func (w *mending) sums(dir string) map[string]string {
	w.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(data)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// onlyNew demands that the repository has a branch and its objects more than before, and is else as it was.
func (w *mending) onlyNew(before, after map[string]string) {
	w.Helper()
	for name, text := range after {
		old, was := before[name]
		if !was && (strings.HasPrefix(name, "objects/") || strings.HasPrefix(name, "refs/heads/refrain/") || strings.HasPrefix(name, "logs/refs/heads/refrain/")) {
			continue
		}
		if !was || old != text {
			w.Errorf("the run has written .git/%s", name)
		}
	}
	for name := range before {
		if _, is := after[name]; !is {
			w.Errorf("the run has removed .git/%s", name)
		}
	}
}

// nobodyLeft demands that no program of the run is alive, where that can be asked.
func (w *mending) nobodyLeft() {
	w.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte("HOME="+filepath.Join(w.dir, "home")+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			w.Errorf("%s survives: %q", filepath.Dir(path), line)
		}
	}
}

// log reads how the run ended, and demands that it counts what the agents report: each of them once.
func (w *mending) log(id string, input int64) (stop loop.StopRecord, scores []float64) {
	w.Helper()
	e := &term.Env{Getenv: func(string) string { return "" }, Stderr: os.Stderr}
	store, closeStore, err := runstore.MakeService(context.Background(), e, "sqlite:"+filepath.Join(w.repo, ".refrain", "refrain.db"))
	if err != nil {
		w.Fatal(err)
	}
	defer closeStore()
	got, err := store.Get(context.Background(), &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
	if err != nil {
		w.Fatal(err)
	}
	var cost, tokens float64
	for ev := range session.ViewOf(got.Session).Events().All() {
		if asked, ok := ev.Actions.StateDelta["asked"].(map[string]any); ok && ev.Author == "coder" { // and not of a rollback
			c, _ := asked["cost"].(float64)
			n, _ := asked["input_tokens"].(float64)
			cost, tokens = cost+c, tokens+n
		}
		switch {
		case ev.Mark == nil:
		case ev.Mark.Kind == mark.KindIterationFinished:
			scores = append(scores, *decodeMark[loop.IterationRecord](w, ev).Score)
		case ev.Mark.Kind == mark.KindLoopStopped:
			stop = decodeMark[loop.StopRecord](w, ev)
		}
	}
	cmd := exec.Command("refrain", "show", id, "--json")
	cmd.Dir, cmd.Env = w.repo, w.env
	out, err := cmd.Output()
	var shown struct{ Usage progress.Usage }
	if err := cmp.Or(err, json.Unmarshal(out, &shown)); err != nil {
		w.Fatal(err)
	}
	if u := shown.Usage; u.InputTokens != input || tokens != float64(input) {
		w.Errorf("%d tokens of input are counted, and the agents report %v, want %d", u.InputTokens, tokens, input)
	} else if cost == 0 || math.Abs(u.Cost-cost) > 1e-9 || !u.Unknown {
		w.Errorf("the cost is %v, and unknown beyond: %t; the agents report %v", u.Cost, u.Unknown, cost)
	}
	return stop, scores
}
