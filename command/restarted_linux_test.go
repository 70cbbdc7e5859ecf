// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
)

// container returns the commands that run another as the first process of a container with that host name.
func container(host string) []string {
	return []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--uts",
		"sh", "-c", `hostname "$0" && exec "$@"`, host}
}

// A server that is killed in a container, and started again at once in the next one, where its process ID is the same,
// continues its run within two looks after the end of the lease, whether the host name stays or not.
func TestServeIsKilledAndStartedAgainInContainers(t *testing.T) {
	probe := append(container("probe"), "true")
	if out, err := exec.Command(probe[0], probe[1:]...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no PID namespace can be made here: %v: %s", err, out)
	}
	for name, hosts := range map[string][2]string{"same host name": {"c", "c"}, "another host name": {"c1", "c2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "work.sh"), "echo $N >> done\nwhile [ ! -e go ]; do sleep 0.02; done\n")
			write(t, filepath.Join(dir, "jobs.yaml"), `name: jobs
max_iterations: 2
state: {n: 0}
sub_agents:
  - name: count
    set: {n: state.n + 1}
  - name: work
    command: [sh, work.sh]
    env: {N: "{{n}}"}
`)
			began := func() bool {
				text, _ := os.ReadFile(filepath.Join(dir, "done"))
				return len(text) > 0
			}
			s := startServeBehind(t, dir, container(hosts[0]))
			resp, err := http.Post(s.url+"/api/v1/runs", "application/json", strings.NewReader(`{"definition":"jobs"}`))
			if err != nil {
				t.Fatal(err)
			}
			var row struct{ Run string }
			err = json.NewDecoder(resp.Body).Decode(&row)
			resp.Body.Close()
			if err != nil || row.Run == "" {
				t.Fatalf("%d: %v", resp.StatusCode, err)
			}
			for !began() {
				time.Sleep(20 * time.Millisecond)
			}
			if err := s.Process.Kill(); err != nil { // and with it the first process of the namespace
				t.Fatal(err)
			}
			_ = s.Wait()
			died := time.Now()
			write(t, filepath.Join(dir, "go"), "")
			s = startServeBehind(t, dir, container(hosts[1]))
			end := ""
			most := runstore.LeaseTTL + 2*runstore.LeaseTTL/3
			for !strings.Contains(end, `"kind":"run_ended"`) && time.Since(died) < most+10*time.Second { // a stream may end while nobody drives
				s.events(t, row.Run, func(_ int64, line string) bool { end = line; return true })
			}
			took := time.Since(died)
			if !strings.Contains(end, `"kind":"run_ended"`) || !strings.Contains(end, "completed") {
				t.Errorf("after %s the run ends with %s", took, end)
			}
			if took > most+10*time.Second { // on a machine under load
				t.Errorf("the run was over %s after the kill, want at most %s", took, most)
			}
			done, err := os.ReadFile(filepath.Join(dir, "done"))
			if err != nil || !bytes.Equal(done, []byte("1\n1\n2\n")) {
				t.Errorf("the steps that ran: %q, %v", done, err)
			}
			t.Logf("over after %s", took.Round(time.Second))
			_ = s.Process.Kill()
			_ = s.Wait()
		})
	}
}
