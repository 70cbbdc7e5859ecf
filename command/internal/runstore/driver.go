// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// clusterScheme begins the drivers of runs that workers of a Temporal cluster drive; the task queue
// follows.
const clusterScheme = "temporal:"

// ClusterDriver is the driver of the runs of a task queue.
func ClusterDriver(queue string) string { return clusterScheme + queue }

// QueueOf is the task queue of a driver; ok is false if that is something else, or nothing.
func QueueOf(driver string) (queue string, ok bool) { return strings.CutPrefix(driver, clusterScheme) }

// DriverText names a driver for people, such as temporal refrain; empty for none.
func DriverText(driver string) string { return strings.Replace(driver, ":", " ", 1) }

// attempt is what workers put before their names: which attempt of which activity they drive a run in.
var attempt = lazyregexp.New(`temporal \S+ \S+ \S+ \d+ by `)

// OwnerText is the owner of a lease, or a text that names one, for people: of a run in a cluster the
// worker alone.
func OwnerText(s string) string { return attempt().ReplaceAllString(s, "") }

// NoWorker says of a run of a driver that nothing drives it at the moment.
func NoWorker(driver string) string {
	return fmt.Sprintf("no worker drives it at the moment (%s)", DriverText(driver))
}
