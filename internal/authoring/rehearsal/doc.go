// SPDX-License-Identifier: Apache-2.0

// Package rehearsal runs a definition with faults, without a model and without cost: an agent that
// never ends the loop, a noisy judge, a provider that is down, a crash. The report says which guard
// of the loop catches each fault and, if none does, what to add to the file.
//
//	def, err := definition.Load("loop.yaml")
//	if err != nil {
//		return err
//	}
//	report, err := rehearsal.Run(ctx, def, rehearsal.Config{})
//	if err != nil {
//		return err
//	}
//	report.Format(os.Stdout)
//
// A scripted model takes the place of all models and answers each agent in the form that it needs.
// Stand-ins replace everything else outside of the process: commands, HTTP requests, remote agents,
// tool servers, functions and people. Expressions, templates, the loops with their rules, the log
// and resuming are real.
//
// No time passes: delays are left out. Package loop, which has no clock, decides what a time limit
// leads to, with an assumed duration for each step. The same definition, config and seed give the
// same report.
package rehearsal
