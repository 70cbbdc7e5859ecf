// SPDX-License-Identifier: Apache-2.0

// Package seal computes the hashes that show whether a log was changed afterwards. A seal is the
// [session.Chain] over the events of a run up to a record, continued by the record: [Run] seals the end of a run, [Value]
// the stop record of a loop. [EndOf] and [StopOf] compute these hashes again, so that they can be compared; [OfRun] and
// [OfLoop] those of older versions, which are no chain.
//
//	chain, _, err := seal.ChainOf(events, end.InvocationID, seal.All)
//	made, err := seal.EndOf(chain, end)
//	if err == nil && made != ended.Seal {
//		fmt.Println("the log was changed")
//	}
package seal
