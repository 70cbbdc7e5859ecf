// SPDX-License-Identifier: Apache-2.0

package doctor

import "github.com/refrain-dev/refrain/command/internal/runstore"

// Temporal checks that a Temporal server answers, and that its workers can share the store. dial connects and returns the name
// of the server.
func (d *doctor) Temporal(address, spec string, dial func() (string, error)) {
	for _, name := range []string{"TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_KEY_DATA"} {
		d.secret(name)
	}
	where, err := dial()
	if err != nil {
		d.add("temporal", address, foundBroken, "check that the server runs, and check TEMPORAL_TLS and TEMPORAL_API_KEY",
			"%v", err)
	} else {
		d.add("temporal", address, foundOK, "", "answers: %s", where)
	}
	if kind, _, err := runstore.Spec(d.Env, spec); err == nil && kind != "postgres" {
		d.add("temporal", "store", foundBroken, "give --store postgres:DSN, or set REFRAIN_STORE",
			"workers share a store in PostgreSQL, but the kind of this store is %s", kind)
	}
}
