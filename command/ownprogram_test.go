// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/internal/testkit/programtest"
)

// bakery is a program of one's own in a folder, whose runs are all in one store.
type bakery struct {
	*testing.T
	binary, dir string
}

// newBakery builds testdata/ownprogram as the module of its own that it is, from the module cache.
func newBakery(t *testing.T) *bakery {
	t.Helper()
	return &bakery{t, programtest.Build(t, "bakery", "..", "testdata/ownprogram"), t.TempDir()}
}

// command returns a call of a program in the folder.
func (b *bakery) command(program string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	b.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = b.dir
	return cmd
}

// does calls a program, and returns what it writes. It has to end with the code.
func (b *bakery) does(code int, program string, args ...string) (stdout, stderr string) {
	b.Helper()
	cmd := b.command(program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed || cmd.ProcessState.ExitCode() != code {
		b.Fatalf("%s %s: %v (%v), want exit code %d\n%s%s", program, args, err, exit, code, &out, &errs)
	}
	return out.String(), errs.String()
}

// has requires parts of a text.
func (b *bakery) has(text string, parts ...string) {
	b.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			b.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// kneaded returns what the tool of the program has written.
func (b *bakery) kneaded() string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "kneaded"))
	if err != nil {
		b.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// starts starts the program and returns the first submatch of the line of standard error that the pattern fits.
func (b *bakery) starts(cmd *exec.Cmd, pattern string) string {
	b.Helper()
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	line, all := regexp.MustCompile(pattern), ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); all += lines.Text() + "\n" {
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return m[1]
		}
	}
	b.Fatalf("%s ended before it said %s:\n%s", cmd, pattern, all)
	return ""
}

// A program of one's own is the whole command: a definition that it embeds runs with its Go tool, its Go agent and its
// models; the process is killed in the Go agent, and each verb works on what is there.
func TestProgramOfOnesOwn(t *testing.T) {
	longtest.WithoutRace(t)
	b := newBakery(t)

	held := b.command(b.binary, "run", "bake", "--session", "loaf")
	held.Env = append(os.Environ(), "BAKERY_HOLD=1")
	b.starts(held, "^(tasting)$")
	if err := held.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = held.Wait() // it was killed
	if got := b.kneaded(); got != "1 2" {
		t.Fatalf("before the kill the tool made %q", got)
	}

	t.Run("another program", func(t *testing.T) {
		b := &bakery{t, b.binary, b.dir}
		out, _ := b.does(0, "refrain", "show", "loaf")
		b.has(out, "Resume with: bakery resume loaf")
		_, errs := b.does(2, "refrain", "resume", "loaf")
		b.has(errs, `no provider is called "oven"`, "the program bakery started the run", "bakery resume")
		_, errs = b.does(2, "refrain", "show", "loaf", "--prompt", "baker")
		b.has(errs, "the program bakery started the run")
		serve := b.command("refrain", "serve", "--addr", "127.0.0.1:0")
		where := b.starts(serve, "^refrain serves (http://.*)$")
		res, err := http.Post(where+"/api/v1/runs/loaf:resume", "application/json", strings.NewReader("{}"))
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusUnprocessableEntity {
			b.Errorf("resume over HTTP: %v %v", res.Status, err)
		}
		b.has(string(text), "the program bakery started the run")
		if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
			b.Error(err)
		}
		_ = serve.Wait() // the test is about what it has answered
	})

	out, errs := b.does(0, b.binary, "resume", "loaf")
	b.has(out, "The loaf weighs 3.")
	b.has(errs, "run loaf resumed definition=bake", "bakery show loaf")
	if got := b.kneaded(); got != "1 2 3" {
		t.Errorf("the tool made %q: a step that had finished was done again", got)
	}

	t.Run("fork", func(t *testing.T) {
		b := &bakery{t, b.binary, b.dir}
		out, errs := b.does(0, b.binary, "fork", "loaf", "--at-iteration", "1")
		b.has(errs, "Resume with: bakery resume "+strings.TrimSpace(out))
		out, _ = b.does(0, b.binary, "resume", strings.TrimSpace(out))
		b.has(out, "The loaf weighs 3.")
		if got := b.kneaded(); got != "1 2 3 2 3" {
			t.Errorf("the tool made %q", got)
		}
	})
	t.Run("look at it", func(t *testing.T) {
		b := &bakery{t, b.binary, b.dir}
		out, _ := b.does(0, b.binary, "show", "loaf")
		b.has(out, "loaf  bake  completed", "taster")
		out, _ = b.does(0, b.binary, "show", "loaf", "--prompt", "baker")
		b.has(out, "add_dough", "Adds dough to the loaf.")
		out, _ = b.does(0, b.binary, "backtest", "loaf", "--set", "plan.max_iterations=2")
		b.has(out, "max_iterations")
	})
	t.Run("before it runs", func(t *testing.T) {
		b := &bakery{t, b.binary, b.dir}
		out, errs := b.does(0, b.binary, "check", "bake")
		b.has(out, "when state.weight >= state.wanted")
		if strings.Contains(errs, "has to give") {
			t.Errorf("the program has all that the definition names:\n%s", errs)
		}
		out, _ = b.does(0, b.binary, "graph", "bake")
		b.has(out, "taster (func)")
		out, errs = b.does(0, b.binary, "rehearse", "bake")
		b.has(out+errs, "Nothing goes wrong")
		b.does(0, b.binary, "validate", "bake", "taster")
	})
	t.Run("a Go agent by its name", func(t *testing.T) {
		b := &bakery{t, b.binary, b.dir}
		out, _ := b.does(0, b.binary, "run", "taster", "How is it?", "--session", "taste")
		b.has(out, "It tastes of")
		out, _ = b.does(0, b.binary, "show", "taste")
		b.has(out, "taste  taster  completed")
	})
	t.Run("names that it does not have", func(t *testing.T) {
		b := &bakery{t, b.binary, b.dir}
		_, errs := b.does(2, b.binary, "run", "bak")
		b.has(errs, `no definition "bak" (did you mean "bake"?)`)
		for text, want := range map[string]string{
			"name: x\nmodel: ovn/hot\ninstructions: Bake.\n":                      `did you mean "oven/hot"?`,
			"name: x\nmodel: oven/hot\ninstructions: Bake.\ntools: [add_douhg]\n": `did you mean "add_dough"?`,
			"name: x\ntype: func\nfunc: tasster\n":                                `did you mean "taster"?`,
			"name: x\ntext: Hm.\ncallbacks: {before_agent: [{func: tell}]}\n":     `there is no callback function "tell"`,
		} {
			write(t, filepath.Join(b.dir, "x.yaml"), text)
			_, errs := b.does(2, b.binary, "run", "x.yaml", "Bake.")
			b.has(errs, want)
		}
		if err := os.Remove(filepath.Join(b.dir, "x.yaml")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("over MCP", func(t *testing.T) { (&bakery{t, b.binary, b.dir}).overMCP() })
	t.Run("its page", func(t *testing.T) { (&bakery{t, b.binary, b.dir}).page() })
}

// overMCP runs the program's own definition as a client of the Model Context Protocol.
func (b *bakery) overMCP() {
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: b.command(b.binary, "mcp")}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	asked := func(tool string, args map[string]any) string {
		res, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || res.IsError {
			b.Fatalf("%s: %v %+v", tool, err, res)
		}
		var all strings.Builder
		for _, c := range res.Content {
			if text, ok := c.(*mcp.TextContent); ok {
				all.WriteString(text.Text)
			}
		}
		return all.String()
	}
	b.has(asked("list_definitions", nil), `bake: "Bakes until`, "taster")
	b.has(asked("run", map[string]any{"definition": "bake"}), "completed", "The loaf weighs 3.")
}

// page shows the run that was killed, and the program's own definition, in a browser.
func (b *bakery) page() {
	browsers := []string{"chromium", "chromium-browser", "google-chrome", "chrome"}
	i := slices.IndexFunc(browsers, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	switch {
	case i < 0 && os.Getenv("REFRAIN_CI") != "":
		b.Fatal("no Chromium: .ci/debian chromium chromium installs it")
	case i < 0:
		b.Skip("no Chromium on this machine; on Debian: apt-get install chromium")
	}
	serve := b.command(b.binary, "serve", "--addr", "127.0.0.1:0")
	where := b.starts(serve, "^bakery serves (http://.*)$")
	defer func() {
		if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
			b.Error(err)
		}
		if err := serve.Wait(); err != nil {
			b.Errorf("bakery serve: %v", err)
		}
	}()
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browsers[i]), chromedp.NoSandbox, chromedp.UserDataDir(b.TempDir()),
		chromedp.WSURLReadTimeout(2*time.Minute))...)
	defer cancelAlloc()
	tab, cancel := chromedp.NewContext(alloc)
	defer cancel()
	tab, late := context.WithTimeout(tab, 2*time.Minute)
	defer late()
	for path, want := range map[string]string{"/runs/loaf": "taster", "/definitions": "bake"} {
		_, err := chromedp.Run(tab, chromedp.Navigate(where+path))
		if err == nil {
			_, err = chromedp.Run(tab, chromedp.Poll[bool]("document.querySelector('main')?.innerText.includes('"+want+"')",
				chromedp.WithPollingTimeout(time.Minute)))
		}
		if err != nil {
			b.Errorf("%s does not show %q: %v", path, want, err)
		}
	}
	if err := chromedp.Cancel(tab); err != nil {
		b.Log(err)
	}
}
