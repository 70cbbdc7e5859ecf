// SPDX-License-Identifier: Apache-2.0

// Package lease decides which process drives a session. A [Lease] is the right to append to the
// session until a point in time. A [Leaser] grants leases.
//
// The services of this project are Leasers. Appending in a context from [With] fails
// with [ErrLost] once the lease has ended, so two processes never drive one run.
package lease
