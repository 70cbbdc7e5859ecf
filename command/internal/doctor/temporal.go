// SPDX-License-Identifier: Apache-2.0

package doctor

import "github.com/refrain-dev/refrain/command/internal/runstore"

// Temporal checks that a server answers, and that the store is one that its workers can share. dial
// returns what the server is called.
func (d *doctor) Temporal(address, spec string, dial func() (string, error)) {
	for _, name := range []string{"TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_KEY_DATA"} {
		d.secret(name)
	}
	where, err := dial()
	if err != nil {
		d.add("temporal", address, foundBroken, "see that the server runs and lets you in: TEMPORAL_TLS, TEMPORAL_API_KEY",
			"%v", err)
	} else {
		d.add("temporal", address, foundOK, "", "it answers: %s", where)
	}
	if kind, _, err := runstore.Spec(d.Env, spec); err == nil && kind != "postgres" {
		d.add("temporal", "store", foundBroken, "give --store postgres:DSN, or set REFRAIN_STORE",
			"workers share a store in PostgreSQL, and this one is of the kind %s", kind)
	}
}
