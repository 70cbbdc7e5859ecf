// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"fmt"
	"strings"
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

// OwnerText is the owner of a lease for people: of a run in a cluster the worker alone.
func OwnerText(owner string) string {
	if rest, ok := strings.CutPrefix(owner, "temporal "); ok {
		if _, worker, ok := strings.Cut(rest, " by "); ok {
			return worker
		}
	}
	return owner
}

// NoWorker says of a run of a driver that nothing drives it at the moment.
func NoWorker(driver string) string {
	return fmt.Sprintf("no worker drives it at the moment (%s)", DriverText(driver))
}
