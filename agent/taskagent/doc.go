// SPDX-License-Identifier: Apache-2.0

// Package taskagent makes agents that do one thing without a model: run a
// command, send an HTTP request, evaluate expressions or fill in a text.
//
//	tests, err := taskagent.NewCommand(taskagent.CommandConfig{
//		Config: taskagent.Config{
//			Name:      "tests",
//			OutputKey: "report",
//			ExitWhen:  "result.exit_code == 0",
//		},
//		Args:        []string{"go", "test", "{{package}}"},
//		Shapes:      map[string]taskagent.Shape{"package": {Type: taskagent.ShapeFolder}},
//		OKExitCodes: []int{0, 1},
//	})
//
// An agent yields one event. It has the result as text, and the changes of the state under the keys that
// the config names. A task whose event would be empty yields none.
//
// Texts are templates, see package template; they are filled with the values of [drive.Place.Lookup],
// and a name without a value gives an empty text. Commands and requests read {{key}} only, since single
// braces are common in code; texts for people read {key} too. A value in a URL is part of one segment,
// and one in an argument of a command has the declared shape: text of any content goes to its standard
// input.
package taskagent
