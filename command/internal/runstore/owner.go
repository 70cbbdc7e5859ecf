// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/session/lease"
)

// OwnerName returns the name under which this process takes the lease of a run: its process ID, its machine and, where known,
// an identifier of the machine's boot and of the container, because process IDs are unique only within them.
func OwnerName() string { return owner{os.Getpid(), host(), realm()}.String() }

// owner identifies the process that drives a run.
type owner struct {
	pid         int
	host, realm string
}

func (o owner) String() string {
	s := fmt.Sprintf("refrain %d on %s", o.pid, o.host)
	if o.realm != "" {
		s += " (" + o.realm + ")"
	}
	return s
}

// parseOwner reads an owner's name.
func parseOwner(name string) (o owner, ok bool) {
	rest, ok := strings.CutPrefix(name, "refrain ")
	if !ok {
		return o, false
	}
	pid, where, ok := strings.Cut(rest, " on ")
	if !ok {
		return o, false
	}
	var err error
	if o.pid, err = strconv.Atoi(pid); err != nil || o.pid < 1 {
		return o, false
	}
	o.host = where
	if i := strings.LastIndex(where, " ("); i >= 0 && strings.HasSuffix(where, ")") {
		o.host, o.realm = where[:i], where[i+2:len(where)-1]
	}
	return o, true
}

// OwnerIsDead reports whether the process that drove a run is known to be gone: it ran on this machine, and no process has its
// ID. If another process has the ID by now, the run waits until the lease ends.
func OwnerIsDead(name string) bool {
	o, ok := parseOwner(name)
	if !ok || o.realm == "" || o.host != host() || o.realm != realm() {
		return false
	}
	return o.pid != os.Getpid() && !alive(o.pid)
}

// Lease takes the lease of a run for this process. The lease of a dead process of this machine does not count.
func Lease(ctx context.Context, leaser lease.Leaser, id string, ttl time.Duration) (*lease.Lease, error) {
	l, err := leaser.Acquire(ctx, KeyOf(id), OwnerName(), ttl)
	if held, ok := errors.AsType[*lease.HeldError](err); ok && OwnerIsDead(held.Owner) {
		return leaser.TakeOver(ctx, held, OwnerName(), ttl)
	}
	return l, err
}

func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "an unknown machine"
	}
	return name
}

// realm identifies where process IDs are unique: this boot of this machine, and the container. It returns "" if the system does
// not tell.
func realm() string {
	boot := bootID()
	if boot == "" {
		return ""
	}
	pids, _ := os.Readlink("/proc/self/ns/pid") // only Linux has this file
	sum := sha256.Sum256([]byte(boot + " " + pids))
	return hex.EncodeToString(sum[:3])
}
