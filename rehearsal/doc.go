// SPDX-License-Identifier: Apache-2.0

// Package rehearsal runs a definition without spending anything, and shows what
// becomes of it when things go wrong: an agent that never ends the loop, a judge
// that is in two minds, a provider that is down, a crash. Each of these faults is
// injected into the author's own loop, and the report says which of its guards
// has caught it, and where none has, what to add to the file.
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
// Models are played by a scripted one, which answers each agent in the form that
// is asked of it. Whatever else reaches out of the process is replaced too:
// commands, HTTP requests, agents elsewhere, servers of tools, functions and
// people. Expressions and templates are the real ones, and so are the loops, their
// rules, the log and the resuming from it.
//
// No time passes: delays and backoffs are left out of what runs. What a limit of
// time leads to is decided by package loop, which has no clock, with a supposed
// duration for each step. The same definition, config and seed give the same
// report.
package rehearsal
