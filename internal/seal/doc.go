// SPDX-License-Identifier: Apache-2.0

// Package seal computes the hashes that show whether a log was changed afterwards: [Run] over a run and its
// end, [Loop] over a loop and its stop record. [OfRun] and [OfLoop] compute these hashes again, so that
// they can be compared.
//
//	made, _, err := seal.OfRun(events, end)
//	if err == nil && made != ended.Seal {
//		fmt.Println("the log was changed")
//	}
package seal
