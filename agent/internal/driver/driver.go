// SPDX-License-Identifier: Apache-2.0

// Package driver is how package agent calls package drive, which imports it.
package driver

// Run is drive.Run: a func(agent.InvocationContext, agent.Agent)
// iter.Seq2[*session.Event, error]. Package drive sets it in its init
// function; it is nil in a program that has no package drive.
var Run any
