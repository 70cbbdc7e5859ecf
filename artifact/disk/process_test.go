// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
)

// folderOfSavers makes the test's program save a file a number of times and
// print the versions.
const folderOfSavers = "REFRAIN_TEST_SAVE_IN"

const saves = 25

func TestMain(m *testing.M) {
	if dir := os.Getenv(folderOfSavers); dir != "" {
		os.Exit(saver(dir))
	}
	os.Exit(m.Run())
}

func saver(dir string) int {
	s, err := disk.Open(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for range saves {
		res, err := s.Save(context.Background(), &artifact.SaveRequest{
			AppName: "app", UserID: "ana", SessionID: "s1", FileName: "log.txt", Part: genai.NewPartFromText(fmt.Sprint("of ", os.Getpid())),
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(res.Version)
	}
	return 0
}

// E6: processes that share a folder never get the same version, and a service
// that was there before them sees theirs.
func TestProcessesShareAFolder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const processes = 4
	outs := make([]bytes.Buffer, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), folderOfSavers+"="+dir)
			cmd.Stdout, cmd.Stderr = &outs[i], os.Stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	var given []int64
	for i := range outs {
		for field := range strings.FieldsSeq(outs[i].String()) {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				t.Fatalf("process %d printed %q", i, field)
			}
			given = append(given, n)
		}
	}
	slices.Sort(given)
	slices.Reverse(given)
	res, err := s.Versions(t.Context(), &artifact.VersionsRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "log.txt"})
	if err != nil || len(given) != processes*saves || !slices.Equal(given, res.Versions) {
		t.Errorf("%d versions were given: %v; there are %v, %v", len(given), given, res, err)
	}
}
