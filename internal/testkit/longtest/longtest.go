// SPDX-License-Identifier: Apache-2.0

// Package longtest chooses how many cases a randomized test runs. The number is small by default, and large if the
// environment has REFRAIN_LONG, as in CI. .ci/long runs the tests of the files that import this package.
//
//	for seed := range longtest.N(60, 300) {
package longtest

import (
	"os"
	"testing"
)

// On reports whether the environment has REFRAIN_LONG with any value.
func On() bool { return os.Getenv("REFRAIN_LONG") != "" }

// N returns many if the environment has REFRAIN_LONG, and few otherwise.
func N[T any](few, many T) T {
	if On() {
		return many
	}
	return few
}

// WithoutRace skips a test that builds programs or starts hundreds of processes, and is built with the race detector, which
// makes it several times slower and finds nothing in it that other tests do not show. CI runs it in the long form.
func WithoutRace(t testing.TB) {
	if race {
		t.Helper()
		t.Skip("it runs without the race detector: go test, or make long")
	}
}
