// SPDX-License-Identifier: Apache-2.0

// Package seal makes the hashes that say whether somebody changed a log afterwards:
// [Run] over a run and its end, [Loop] over a loop and its stop record. [OfRun] and
// [OfLoop] make them again, to compare.
//
//	made, _, err := seal.OfRun(events, end)
//	if err == nil && made != ended.Seal {
//		fmt.Println("the log was changed")
//	}
package seal
