// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cel_test

const slowdown = 1
