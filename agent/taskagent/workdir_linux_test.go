// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refrain-dev/refrain/agent/taskagent"
)

// A command starts in the folder that was checked, and its report is read and removed there, also while another program replaces the
// folder by a link to one outside of the root.
func TestTheWorkingDirectoryIsTheFolderThatWasChecked(t *testing.T) {
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside, link := filepath.Join(temp, "root"), filepath.Join(temp, "outside"), filepath.Join(temp, "link")
	for _, dir := range []string{filepath.Join(root, "in"), outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	precious := filepath.Join(outside, "report.xml")
	if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "in"), unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	ran, through, removed := 0, 0, 0
	for i := range 1500 {
		report := ""
		if i%3 == 0 {
			report = "report.xml"
		}
		got := command(t, taskagent.CommandConfig{Args: []string{"pwd", "-P"}, Root: root, Dir: "in", Tests: report}, nil)
		if _, err := os.Stat(precious); err != nil {
			removed++
			if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got.err != nil && strings.Contains(got.err.Error(), "escapes") {
			continue
		}
		ran++
		if said, _ := got.state["out"].(string); said == outside {
			through++
		}
	}
	close(quit)
	<-done
	if through > 0 || removed > 0 || ran == 0 {
		t.Errorf("of %d commands %d worked outside, and %d files outside were removed", ran, through, removed)
	}
}

// A command that gets a file or a folder open reads the one that was checked, also while another program replaces its path by a
// link out of the root.
func TestAnOpenFileIsTheOneThatWasChecked(t *testing.T) {
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, secret := filepath.Join(temp, "root"), filepath.Join(temp, "secret")
	for name, text := range map[string]string{"root/in/a.txt": "mine", "secret/a.txt": "secret"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(temp, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(temp, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range [][2]string{{filepath.Join(secret, "a.txt"), "file"}, {secret, "folder"}} {
		if err := os.Symlink(link[0], filepath.Join(temp, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []struct {
		shape           taskagent.ShapeType
		path, cat, link string
	}{{taskagent.ShapeFile, "in/a.txt", "$1", "file"}, {taskagent.ShapeFolder, "in", "$1/a.txt", "folder"}} {
		t.Run(string(kind.shape), func(t *testing.T) {
			quit, done := make(chan struct{}), make(chan struct{})
			defer func() { close(quit); <-done }()
			go func() {
				defer close(done)
				for i := 0; ; i++ {
					select {
					case <-quit:
						if i%2 == 0 { // the path is as it was
							return
						}
					default:
					}
					err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, kind.path), unix.AT_FDCWD, filepath.Join(temp, kind.link), unix.RENAME_EXCHANGE)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(200 * time.Microsecond)
				}
			}()
			ran := 0
			for range 300 {
				got := command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", `cat "` + kind.cat + `"`, "sh", "{{f}}"}, Root: root,
					Shapes: map[string]taskagent.Shape{"f": {Type: kind.shape}}, Open: []string{"f"}}, map[string]any{"f": kind.path})
				switch out := got.state["out"]; {
				case got.err == nil && out == "mine":
					ran++
				case got.err == nil || !strings.Contains(got.err.Error(), "must exist inside the root"):
					t.Fatalf("the command has read %q, %v", out, got.err)
				}
			}
			if ran == 0 {
				t.Error("no command has read the file")
			}
		})
	}
}

// Programs need the path of their file, so a command gets the open file only if its definition asks for that: sed -i puts a new file
// in the place of the old one, and what grep prints names the file to a model.
func TestProgramsNeedTheirPath(t *testing.T) {
	for _, c := range []struct {
		args       []string
		want, text string
	}{
		{[]string{"grep", "-H", "two", "{{f}}"}, "./in/a.txt:two", "one\ntwo\n"},
		{[]string{"sed", "-i", "s/two/three/", "{{f}}"}, "", "one\nthree\n"},
	} {
		for _, open := range [][]string{nil, {"f"}} {
			root := t.TempDir()
			file := filepath.Join(root, "in", "a.txt")
			if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("one\ntwo\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			got := command(t, taskagent.CommandConfig{Args: c.args, Root: root, Shapes: map[string]taskagent.Shape{"f": {Type: taskagent.ShapeFile}},
				Open: open}, map[string]any{"f": "in/a.txt"})
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out, _ := got.state["out"].(string)
			if works := got.err == nil && strings.TrimSpace(out) == c.want && string(text) == c.text; works != (open == nil) {
				t.Errorf("%v, open %v: %v, %q, and the file has %q", c.args, open, got.err, out, text)
			}
		}
	}
}

// What a command has read from a path that leads out of the root by now does not get into the run.
func TestAReplacedPathFailsTheStep(t *testing.T) {
	temp := t.TempDir()
	root, secret := filepath.Join(temp, "root"), filepath.Join(temp, "secret")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(root, "a.txt"), secret} {
		if err := os.WriteFile(name, []byte(filepath.Base(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(script string) *ran {
		return command(t, taskagent.CommandConfig{Args: []string{"sh", "-c", script, "sh", "{{f}}"}, Root: root,
			Shapes: map[string]taskagent.Shape{"f": {Type: taskagent.ShapeFile}}}, map[string]any{"f": "a.txt"})
	}
	if g := run(`cat "$1"; mv "$1" b.txt; mv b.txt "$1"`); g.err != nil || g.state["out"] != "a.txt" {
		t.Errorf("a file that its command writes: %v, %v", g.state, g.err)
	}
	g := run(`ln -sf ` + secret + ` "$1"; cat "$1"`)
	if g.err == nil || !strings.Contains(g.err.Error(), `"./a.txt"`) || g.state["out"] != nil {
		t.Errorf("a file that became a link out of the root: %v, %v", g.state, g.err)
	}
}

// Names in Open that open nothing are mistakes.
func TestOpenNeedsAPath(t *testing.T) {
	for want, cfg := range map[string]taskagent.CommandConfig{
		`Open[0]: "f" is not the path`: {Args: []string{"cat", "{{f}}"}, Shapes: map[string]taskagent.Shape{"f": {Type: taskagent.ShapeInt}}},
		`Open[0]: no argument`:         {Args: []string{"cat"}, Shapes: map[string]taskagent.Shape{"f": {Type: taskagent.ShapeFile}}, Stdin: "{{f}}"},
		`Open[0]: an unsafe command`:   {Args: []string{"cat", "{{f}}"}, Unsafe: true},
		`Open: a CLI does not have it`: {CLI: &taskagent.CLI{Program: "claude"}, Stdin: "hi"},
	} {
		cfg.Name, cfg.Open = "c", []string{"f"}
		if _, err := taskagent.NewCommand(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, not %q", err, want)
		}
	}
}
