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

	"github.com/refrain-dev/refrain/internal/lazyregexp"
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

var ownerName = lazyregexp.New(`^refrain ([1-9][0-9]*) on (.*?)(?: \(([^()]*)\))?$`)

// parseOwner reads an owner's name.
func parseOwner(name string) (o owner, ok bool) {
	m := ownerName().FindStringSubmatch(name)
	if m == nil {
		return o, false
	}
	pid, err := strconv.Atoi(m[1])
	return owner{pid, m[2], m[3]}, err == nil
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

// clusterScheme is the prefix of drivers that are Temporal clusters; the task queue follows it.
const clusterScheme = "temporal:"

// ClusterDriver returns the driver of the runs of a task queue.
func ClusterDriver(queue string) string { return clusterScheme + queue }

// QueueOf returns the task queue of a driver; ok is false if the driver is not a cluster.
func QueueOf(driver string) (queue string, ok bool) { return strings.CutPrefix(driver, clusterScheme) }

// DriverText returns the name of a driver for people, such as temporal refrain; empty for no driver.
func DriverText(driver string) string { return strings.Replace(driver, ":", " ", 1) }

// attempt matches the prefix that a worker adds to its name: the activity and the attempt in which it drives a run.
var attempt = lazyregexp.New(`temporal \S+ \S+ \S+ \d+ by `)

// OwnerText returns the owner of a lease, or a text that contains the owner, for people. For a run of a cluster it names only
// the worker.
func OwnerText(s string) string { return attempt().ReplaceAllString(s, "") }

// NoWorker returns a text that says that no worker drives the run at the moment.
func NoWorker(driver string) string {
	return fmt.Sprintf("no worker drives it at the moment (%s)", DriverText(driver))
}
