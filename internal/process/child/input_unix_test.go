// SPDX-License-Identifier: Apache-2.0

//go:build unix

package child_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/refrain-dev/refrain/internal/process/child"
)

func Example() {
	cmd := exec.Command("tr", "a-z", "A-Z")
	done, err := child.Input(cmd, strings.NewReader("whole\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	out, err := cmd.Output()
	fmt.Print(string(out), err)
	// Output:
	// WHOLE
	// <nil>
}

// The command reads all of its input, and the file with it has no name by then.
func TestInputIsWholeAndHasNoName(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd := exec.Command("sh", "-c", `wc -c; ls "$TMPDIR"`)
	done, err := child.Input(cmd, strings.NewReader(strings.Repeat("x", 1_000_000)))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "1000000" {
		t.Errorf("read %q, %v", out, err)
	}
}

// Where there are no files in memory, the input is in the folder for temporary files.
func TestTemporaryInput(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, remove, err := child.Temporary()
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	defer f.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has the names %v, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "gone"))
	if _, _, err := child.Temporary(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v", err)
	}
}

// Input for which there is no space is an error before the command starts.
func TestInputWithoutSpace(t *testing.T) {
	if os.Getenv("CHILD_TEST_LIMITED") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInputWithoutSpace$", "-test.v")
		cmd.Env = append(os.Environ(), "CHILD_TEST_LIMITED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100_000, Max: 100_000}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("true")
	_, err := child.Input(cmd, strings.NewReader(strings.Repeat("x", 400_000)))
	if err == nil || cmd.Stdin != nil || !strings.HasPrefix(err.Error(), "store the standard input: ") {
		t.Errorf("got error %v", err)
	}
}
