// SPDX-License-Identifier: Apache-2.0

// Package dialect reads loops that were written for other products, and writes
// one of their formats: ADK's Agent Config, Evo AI's JSON and Robomotion's nodes.
//
//	got, err := dialect.Load("root_agent.yaml", dialect.Options{})
//	if err != nil {
//		return err // it cannot be read
//	}
//	got.Report.Format(os.Stderr)
//	if err := got.Err(); err != nil {
//		return err
//	}
//	os.Stdout.Write(got.YAML) // a definition
//
// Problems of the definition are at their places in the file that it was made of,
// as people edit that one; see [Result.Origin].
//
// Nothing is lost in silence: the [Report] has an [Item] for every field of the
// file, which was carried over, changed, or left out with the reason and what to
// do in its place. A field that nobody knows is an error with what may have been
// meant, also where the product itself passes over it: max_iteration, say,
// makes an endless loop elsewhere.
//
// [Export] goes the other way, to ADK's strict form, and says what ADK cannot.
//
// Reading is safe whoever wrote the file: its size is bounded, no file outside
// its folder is opened, none of the code that it names is run, and keys and
// passwords in it are not copied.
package dialect
