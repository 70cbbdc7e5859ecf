// SPDX-License-Identifier: Apache-2.0

// Package lease says which process drives a session. A [Lease] is the right to append
// to it until a point in time; a [Leaser] gives leases out.
//
// The services of this project are Leasers. Appending in a context from [With] fails
// with [ErrLost] once the lease has ended, so two processes never drive one run.
package lease
