// SPDX-License-Identifier: Apache-2.0

// Package statekey classifies the keys of a session's state: keys of one session, keys that
// sessions share, keys that end with an iteration or an invocation, and keys that the log uses
// for itself.
//
//	if statekey.Own(key) {
//		restored[key] = value
//	}
package statekey

import (
	"maps"
	"strings"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// OfIteration reports whether a state key ends with the iteration of the nearest loop.
func OfIteration(key string) bool { return strings.HasPrefix(key, session.KeyPrefixIteration) }

// Own reports whether a state key belongs to one session alone and outlives
// its runs.
func Own(key string) bool {
	return !Shared(key) && Durable(key) && !OfLog(key)
}

// OfLog reports whether the log uses the state key for itself, such as
// mark.KeyRun. An outline does not cut their values.
func OfLog(key string) bool { return strings.HasPrefix(key, mark.KeyPrefix) }

// OwnState returns the keys of a state for which [Own] is true, with their values.
func OwnState(s session.ReadonlyState) map[string]any {
	own := maps.Collect(s.All())
	maps.DeleteFunc(own, func(k string, _ any) bool { return !Own(k) })
	return own
}

// Shared reports whether other sessions have the state key too.
func Shared(key string) bool {
	return strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser)
}

// Durable reports whether a state key outlives its invocation.
func Durable(key string) bool {
	return !strings.HasPrefix(key, session.KeyPrefixTemp) && !strings.HasPrefix(key, session.KeyPrefixIteration)
}
