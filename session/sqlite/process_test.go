// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// The test binary plays another process where roleVar is one of children.
const (
	roleVar = "REFRAIN_TEST_ROLE"
	pathVar = "REFRAIN_TEST_PATH"
)

func TestMain(m *testing.M) {
	if role := children[os.Getenv(roleVar)]; role != nil {
		if err := role(os.Getenv(pathVar)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}

var children = map[string]func(path string) error{
	"write":   writeForEver,
	"compete": compete,
	"use":     use,
	"hold":    hold,
}

// hold opens the database, appends an event for each line of its standard input, says what came of it, and closes the
// database at the end of the input.
func hold(path string) error {
	svc, s, err := openChild(path)
	if err != nil {
		return err
	}
	fmt.Println("open")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(svc.AppendEvent(context.Background(), s, numbered(s.Events().Len()+1)))
	}
	return svc.Close()
}

// child is this program again, in a role.
func child(ctx context.Context, role, path string) *osexec.Cmd {
	cmd := osexec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path)
	return cmd
}

func openChild(path string) (*sqlite.Service, session.Session, error) {
	svc, err := sqlite.Open(context.Background(), path, sqlite.Config{})
	if err != nil {
		return nil, nil, err
	}
	resp, err := svc.Get(context.Background(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
	if err != nil {
		return nil, nil, err
	}
	return svc, resp.Session, nil
}

// writeForEver appends, and prints the number of each event once it is accepted.
func writeForEver(path string) error {
	svc, s, err := openChild(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for {
		ev := numbered(s.Events().Len() + 1)
		if err := svc.AppendEvent(context.Background(), s, ev); err != nil {
			return err
		}
		fmt.Fprintln(out, ev.Seq)
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

// compete appends until it has won a hundred times, and prints the numbers.
func compete(path string) error {
	svc, _, err := openChild(path)
	if err != nil {
		return err
	}
	defer svc.Close()
	for won := 0; won < 100; {
		resp, err := svc.Get(context.Background(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1", NumRecentEvents: 1})
		if err != nil {
			return err
		}
		ev := &session.Event{Author: strconv.Itoa(os.Getpid())}
		switch err := svc.AppendEvent(context.Background(), resp.Session, ev); {
		case err == nil:
			won++
			fmt.Println(ev.Seq)
		case !errors.Is(err, session.ErrConflict):
			return err
		}
	}
	return nil
}

// use opens the database and appends once.
func use(path string) error {
	svc, s, err := openChild(path)
	if err != nil {
		return err
	}
	defer svc.Close()
	return svc.AppendEvent(context.Background(), s, numbered(s.Events().Len()+1))
}

// numbers reads what a child printed; the last line may be torn.
func numbers(t *testing.T, out string) (seqs []int64) {
	t.Helper()
	for line := range strings.Lines(out) {
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if !strings.HasSuffix(line, "\n") {
			break
		}
		if err != nil {
			t.Fatalf("a child printed %q", line)
		}
		seqs = append(seqs, n)
	}
	return seqs
}

// G8, E4: kill -9 loses nothing that was accepted, and leaves no half of it.
func TestKilledWriterLosesNothing(t *testing.T) {
	const kills = 20
	path := written(t, 0)
	accepted, unsaid := 0, 0
	for range kills {
		cmd := child(t.Context(), "write", path)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		said := new(strings.Builder)
		cmd.Stderr = said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 1)
		if _, err := io.ReadFull(stdout, first); err != nil { // it writes
			t.Fatalf("the child wrote nothing: %v\n%s", err, said)
		}
		time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		rest, _ := io.ReadAll(stdout)
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed")
		}
		seqs := numbers(t, string(first)+string(rest))
		if len(seqs) > 0 {
			accepted = int(seqs[len(seqs)-1])
		}

		svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := get(t, svc, "s1")
		n := s.Events().Len()
		if n < accepted || n > accepted+1 {
			t.Errorf("%d events were accepted, and one more may be under way, got %d", accepted, n)
		}
		wantCount(t, s, n)
		unsaid += n - accepted
		accepted = n
		if err := svc.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var ok string
	if err := raw(t, path).QueryRow("PRAGMA integrity_check").Scan(&ok); err != nil || ok != "ok" {
		t.Errorf("integrity_check says %q, %v", ok, err)
	}
	t.Logf("%d events after %d kills; %d times one was stored and its writer never told", accepted, kills, unsaid)
}

// E4: of two processes that append to one session, one wins each number.
func TestTwoProcessesWriteOneSession(t *testing.T) {
	path := written(t, 0)
	var out [2][]byte
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			cmd := child(t.Context(), "compete", path)
			cmd.Stderr = os.Stderr
			var err error
			if out[i], err = cmd.Output(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	winner := make(map[int64]int)
	for i := range out {
		for _, seq := range numbers(t, string(out[i])) {
			if _, twice := winner[seq]; twice {
				t.Errorf("both processes were told that they wrote event %d", seq)
			}
			winner[seq] = i
		}
	}
	s := get(t, open(t, path, sqlite.Config{}), "s1")
	if n := s.Events().Len(); n != 200 || len(winner) != 200 {
		t.Errorf("each process appended 100 events: got %d, of which %d are accounted for", n, len(winner))
	}
	changes, last := 0, ""
	for ev := range s.Events().All() {
		if ev.Author != last {
			changes, last = changes+1, ev.Author
		}
	}
	t.Logf("the writer changed %d times in 200 events", changes)
}

// Twenty runs at once on one file all finish.
func TestTwentyWritersOnOneFile(t *testing.T) {
	const writers, each = 20, 100
	path := filepath.Join(t.TempDir(), "refrain.db")
	services := []session.Service{open(t, path, sqlite.Config{}), open(t, path, sqlite.Config{})}
	var wg sync.WaitGroup
	for i := range writers {
		svc := services[i%2]
		s := create(t, svc, "s"+strconv.Itoa(i))
		wg.Go(func() { appendN(t, svc, s, each) })
	}
	wg.Wait()
	for i := range writers {
		wantCount(t, get(t, services[0], "s"+strconv.Itoa(i)), each)
	}
}
