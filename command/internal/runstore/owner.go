// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

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
