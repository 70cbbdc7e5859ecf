// SPDX-License-Identifier: Apache-2.0

// Package longtest says how much a test that draws its cases does: little by
// default, and a lot when the environment has REFRAIN_LONG, as in CI.
//
//	for seed := range longtest.N(60, 300) {
package longtest

import "os"

// On reports whether the environment has REFRAIN_LONG with any value.
func On() bool { return os.Getenv("REFRAIN_LONG") != "" }

// N returns few, or many if the tests take their long form.
func N[T any](few, many T) T {
	if On() {
		return many
	}
	return few
}
