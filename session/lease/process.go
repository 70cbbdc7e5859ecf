// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Process returns the name of this process as the owner of leases: its process ID and its machine and, where
// the system tells, an identifier of the space of process IDs and the time at which the process started. The
// space is one boot of one kernel and, within it, one PID namespace: a container or a machine. [Dead] reads
// this name.
func Process() string { return self().String() }

// self returns this process. Its host name is read each time, because it may change.
func self() process {
	p := process{pid: os.Getpid(), host: "an unknown machine", space: spaces()[0], start: startTime(os.Getpid())}
	if name, err := os.Hostname(); err == nil && name != "" {
		p.host = name
	}
	return p
}

// process identifies a process.
type process struct {
	pid   int
	host  string // for people; it identifies nothing
	space string // in which pid is unique at any time; empty if unknown
	start string // by the clock of the space; empty if unknown
}

func (p process) String() string {
	s := fmt.Sprintf("refrain %d on %s", p.pid, p.host)
	switch {
	case p.space == "":
		return s
	case p.start == "":
		return s + " (" + p.space + ")"
	}
	return s + " (" + p.space + " " + p.start + ")"
}

var processName = lazyregexp.New(`^refrain ([1-9][0-9]*) on (.*?)(?: \(([^() ]*)(?: ([0-9]+))?\))?$`)

// IsProcess reports whether the name of an owner is one that [Process] makes, also behind a prefix that ends in " by ".
func IsProcess(owner string) bool {
	if i := strings.LastIndex(owner, " by refrain "); i >= 0 {
		owner = owner[i+len(" by "):]
	}
	return processName().MatchString(owner)
}

// parseProcess reads the name of a process. A name that an earlier version has written has no start.
func parseProcess(name string) (p process, ok bool) {
	m := processName().FindStringSubmatch(name)
	if m == nil {
		return p, false
	}
	pid, err := strconv.Atoi(m[1])
	return process{pid, m[2], m[3], m[4]}, err == nil
}

// Dead reports whether the owner of a lease is a process that is known to have ended: [Process] has named it,
// it ran in the space of process IDs in which this process runs, and no process there has its ID and its
// start time. In another space, such as another container, the ID proves nothing, and only the end of the
// lease counts. The same holds if the start time is unknown and a process has the ID.
func Dead(owner string) bool {
	p, ok := parseProcess(owner)
	if !ok || p.space == "" || p.space != spaces()[0] && p.space != spaces()[1] {
		return false
	}
	if !alive(p.pid) {
		return p.pid != os.Getpid()
	}
	start := startTime(p.pid)
	return p.start != "" && start != "" && p.start != start
}

// spaces returns the identifier of this process's space of process IDs, and the shorter one that earlier versions
// wrote. Both are empty if the system does not tell.
var spaces = sync.OnceValue(func() [2]string {
	boot, pids := space()
	if boot == "" {
		return [2]string{}
	}
	sum := sha256.Sum256([]byte(boot + " " + pids))
	name := hex.EncodeToString(sum[:])
	return [2]string{name[:12], name[:6]}
})
