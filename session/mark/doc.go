// SPDX-License-Identifier: Apache-2.0

// Package mark defines the records that a durable run writes into its log about itself: a step started, an
// iteration was scored, the run paused, a person was asked. A [Mark] is part of a session.Event; its Data
// is one of the types of this package, as JSON.
//
//	if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished {
//		var fin mark.StepFinished
//		if err := ev.Mark.Decode(&fin); err != nil {
//			return err
//		}
//		fmt.Println(ev.Address, "took", fin.Seconds, "s")
//	}
package mark
