// SPDX-License-Identifier: Apache-2.0

// Package definition reads loop files: YAML that says what a loop is.
//
//	name: compress
//	inputs:
//	  file: README.md
//	state: {level: 1}
//	max_iterations: 9
//	score: {key: ratio, min_delta_percent: 1}
//	sub_agents:
//	  - name: measure
//	    command: [./ratio, "{{level}}", "{{file}}"]
//	    output_key: ratio
//	  - name: next
//	    set: {level: state.level + 1}
//	  - name: say
//	    text: "Use level {{level}}."
//	    output_key: loop_output
//
// [Load] reads a file and those that it refers to, and finds everything that is
// wrong with them at once: what YAML does not allow, fields that there are not,
// values of the wrong type, expressions that do not compile, keys that are read
// and never written, loops that can never stop. Each [Problem] has its place, a
// code and, where something comes to mind, a hint. [Definition.InitialState]
// makes the state that a run begins with, and [Definition.Build] the agents:
//
//	d, err := definition.Load("compress.yaml")
//	if err != nil {
//		return err // definition.Problems
//	}
//	state, err := d.InitialState(map[string]string{"file": "main.go"})
//	if err != nil {
//		return err
//	}
//	root, err := d.Build(ctx, definition.BuildConfig{})
//
// [Definition.Worst] says before that what a run can come to: how often models are
// asked, and what it takes of tokens, cost and time; [Agent.Stops] how a loop can
// end; [Definition.Notes] what is worth knowing besides. [Schema] is the JSON
// Schema of a definition, for editors.
//
// Package edit changes values, lists, order and names in the text of a file and keeps
// the rest, comments too. [Fields], [Parts] and [TypeOf] tell a form what a file can say.
//
// [Fields] is the reference of what a file can say, [Codes] that of the
// problems. Reading a file is safe whoever wrote it: the work is bounded, its refs
// do not leave its folder, and nothing in it is run. Running one runs the commands
// it names, as they stand; what placeholders are filled with is never code.
package definition
