// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/session/lease"
)

// The process of a test in another namespace says its name, and whether an owner is dead.
func TestMain(m *testing.M) {
	if owner, ok := os.LookupEnv("LEASE_TEST_OWNER"); ok {
		fmt.Println(lease.Process())
		fmt.Println(lease.Dead(owner))
		return
	}
	os.Exit(m.Run())
}

// elsewhere runs this test's program behind other commands, and returns its name and whether it takes an owner for dead.
func elsewhere(t *testing.T, owner string, before ...string) (name string, dead bool) {
	t.Helper()
	argv := append(before, os.Args[0])
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LEASE_TEST_OWNER="+owner)
	out, err := cmd.CombinedOutput()
	if err != nil && len(before) > 0 {
		t.Skipf("SKIPPED: no PID namespace can be made here: %v: %s", err, out)
	}
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) < 2 {
		t.Fatalf("%v: %s", err, out)
	}
	return lines[0], lines[1] == "true"
}

func TestDeadProcess(t *testing.T) {
	me := lease.Process()
	if !regexp.MustCompile(`^refrain [0-9]+ on .+ \([0-9a-f]{12} [0-9]+\)$`).MatchString(me) {
		t.Fatalf("this process is named %q", me)
	}
	gone, dead := elsewhere(t, me)
	if dead {
		t.Errorf("another process takes this one for dead")
	}
	space := me[strings.LastIndex(me, "(")+1 : strings.LastIndex(me, " ")]
	for _, tt := range []struct {
		name, owner string
		dead        bool
	}{
		{"itself", me, false},
		{"a process that has ended", gone, true},
		{"that, with another host name", regexp.MustCompile(` on .* \(`).ReplaceAllString(gone, " on elsewhere ("), true},
		{"an earlier process with this ID", me[:len(me)-1] + "0)", true},
		{"that, in another space", strings.Replace(gone, space, "0123456789ab", 1), false},
		{"an earlier version's, that has ended", regexp.MustCompile(`\(.*`).ReplaceAllString(gone, "("+space[:6]+")"), true},
		{"an earlier version's, with this ID", regexp.MustCompile(`\(.*`).ReplaceAllString(me, "("+space[:6]+")"), false},
		{"an earlier version's of nowhere", regexp.MustCompile(` \(.*`).ReplaceAllString(gone, ""), false},
		{"somebody", "somebody", false},
	} {
		if got := lease.Dead(tt.owner); got != tt.dead {
			t.Errorf("%s, %q: dead is %v", tt.name, tt.owner, got)
		}
	}
}

// In another PID namespace an ID proves nothing, in either direction, also if it is the same and the host name stays.
func TestDeadProcessOfAnotherNamespace(t *testing.T) {
	unshare := []string{"unshare", "--pid", "--fork", "--mount-proc"}
	contained, _ := elsewhere(t, lease.Process(), unshare...)
	if !strings.HasPrefix(contained, "refrain 1 on ") {
		t.Errorf("the first process of a namespace is named %q", contained)
	}
	if lease.Dead(contained) {
		t.Errorf("%s is taken for dead here", contained)
	}
	gone, _ := elsewhere(t, "")
	for _, owner := range []string{lease.Process(), gone} {
		if _, dead := elsewhere(t, owner, unshare...); dead {
			t.Errorf("%s is taken for dead in another namespace", owner)
		}
	}
	// Without /proc of its own, a namespace has the numbers of another.
	if _, dead := elsewhere(t, lease.Process(), "unshare", "--pid", "--fork"); dead {
		t.Error("with another namespace's /proc: this process is taken for dead")
	}
}
