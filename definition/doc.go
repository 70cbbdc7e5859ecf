// SPDX-License-Identifier: Apache-2.0

// Package definition reads loop files: YAML that says what a loop is.
//
//	name: compress
//	inputs:
//	  file: {type: file, default: README.md}
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
// [Load] reads a file and the files that it refers to, and reports all mistakes at once: invalid
// YAML, unknown fields, values of the wrong type, expressions that do not compile, keys that are
// read and never written, loops that can never stop. Each [Problem] has its position, a code and
// often a hint. [Definition.InitialState] makes the state with which a run begins, and
// [Definition.Build] the agents:
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
// A runner runs them with the configuration that [Definition.RunConfig] returns. [Limits] are given
// to both to replace those of the file.
//
// Before a run, [Definition.Worst] computes the most model calls, tokens, cost and time that it can
// take; [Agent.Stops] says how a loop can end; [Definition.Notes] lists warnings that are not
// mistakes. [Schema] is the JSON Schema of a definition, for editors.
//
// Package edit changes values, lists, order and names in the text of a file and keeps the rest,
// comments included. [Fields], [Parts] and [TypeOf] list the fields and their types, for forms.
//
// [Fields] lists the fields of a file, [Codes] the kinds of problems. Reading an untrusted file is
// safe: the work is limited, refs do not leave its folder, and nothing in it is run. Running a file
// runs its commands; the values of placeholders are never run as code.
package definition
