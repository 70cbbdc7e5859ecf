// SPDX-License-Identifier: Apache-2.0

// Package caserun knows the runs of the cases of evals by their IDs.
//
//	caserun.Is("ev_3f2a1c.A.price.2") // true
//
// Such a run shares nothing with other runs: stores keep its app: and user: keys, and the files of its user, with its session.
package caserun

import "strings"

// Is reports whether the session with an ID has the run of a case of an eval, or that of a judge of one.
func Is(id string) bool {
	eval, _, ok := strings.Cut(id, ".")
	hex, isEval := strings.CutPrefix(eval, "ev_")
	return ok && isEval && hex != "" && strings.Trim(hex, "0123456789abcdef") == ""
}
