// SPDX-License-Identifier: Apache-2.0

package term_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
)

// A process that is killed while it writes a file leaves nothing under the file's name, or what was there before.
func TestWriteFileKilled(t *testing.T) {
	if name := os.Getenv("REFRAIN_TEST_WRITES"); name != "" { // the process that is killed
		err := term.WriteFile(name, true, func(w io.Writer) error {
			fmt.Fprintln(w, "half")
			fmt.Println("half")
			select {}
		})
		t.Fatal(err)
	}
	for _, before := range []string{"", "all of it\n"} {
		name := filepath.Join(t.TempDir(), "run.jsonl")
		if before != "" {
			if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command(os.Args[0], "-test.run=^TestWriteFileKilled$")
		c.Env = append(os.Environ(), "REFRAIN_TEST_WRITES="+name)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "half\n" {
			t.Errorf("it writes %q, %v", line, err)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		got, err := os.ReadFile(name)
		if before == "" && !errors.Is(err, fs.ErrNotExist) || string(got) != before {
			t.Errorf("under its name are %q, %v", got, err)
		}
	}
}

// A file that is there is replaced only on demand, and a failure leaves no part behind.
func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	write := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error { fmt.Fprint(w, text); return err }
	}
	if err := term.WriteFile(name, false, write("one", nil)); err != nil {
		t.Fatal(err)
	}
	if err := term.WriteFile(name, false, write("two", nil)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("without replace: %v", err)
	}
	failure := errors.New("full")
	if err := term.WriteFile(name, true, write("three", failure)); !errors.Is(err, failure) {
		t.Errorf("a failure: %v", err)
	}
	all, _ := os.ReadDir(dir)
	if got, _ := os.ReadFile(name); string(got) != "one" || len(all) != 1 {
		t.Errorf("there are %q, and %d files", got, len(all))
	}
	if err := term.WriteFile(name, true, write("four", nil)); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(name); string(got) != "four" {
		t.Errorf("it has %q", got)
	}
}
