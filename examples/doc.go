// SPDX-License-Identifier: Apache-2.0

// Package examples holds one folder for each idea. Its tests run them all.
package examples
