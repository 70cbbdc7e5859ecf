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
// An agent yields one event, with the result as text and with the changes of the state keys that the config
// names. An agent whose event would be empty yields none.
//
// Texts are templates; see package template. The values come from [drive.Place.Lookup]. A name without a value
// becomes an empty text. Commands and requests read {{key}} only, because single braces are common in code;
// texts for people read {key} too. A value in a URL becomes part of one segment. A value in an argument of a
// command must have a declared shape. Pass text of any content to the command as its standard input.
package taskagent
