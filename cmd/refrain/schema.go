// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/definition"
)

func newSchema(e *env) *cobra.Command {
	var line bool
	cmd := &cobra.Command{
		Use:   "schema [FILE]",
		Short: "Print the JSON Schema of definitions, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of definitions. An editor that has it completes
fields, explains them, and marks mistakes while you type.

Editors with a YAML language server read the schema that the first line of a definition
names. --line prints that line, for the newest schema on the web, or for FILE, a copy of
this version's schema.`,
		Example: `  refrain schema >refrain.schema.json
  refrain schema --line refrain.schema.json
  refrain schema --line | cat - draft.yaml >loop.yaml`,
		Args: between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case line && len(args) > 0:
				_, err := fmt.Fprintln(e.stdout, schemaLine+args[0])
				return err
			case line:
				_, err := fmt.Fprintln(e.stdout, schemaLine+definition.SchemaID)
				return err
			case len(args) > 0:
				return fmt.Errorf("schema %s: write refrain schema >%s, or refrain schema --line %s", args[0], args[0], args[0])
			}
			_, err := e.stdout.Write(definition.Schema())
			return err
		},
	}
	cmd.Flags().BoolVar(&line, "line", false, "print the line that names the schema, for the top of a definition")
	return cmd
}

// schemaLine is how a definition says which schema an editor checks it by.
const schemaLine = "# yaml-language-server: $schema="

// namedSchema is the schema that one of the first lines of a file names.
var namedSchema = regexp.MustCompile(`^#\s*yaml-language-server:\s*\$schema=(\S+)`)

// noteSchema says if the copy of the schema that a definition names is missing,
// or is not this version's: the editor would then say other things than refrain.
// What is elsewhere is not looked at.
func noteSchema(w io.Writer, file string) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return // a pipe was read to its end, or another reader would be waited for
	}
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 4<<10))
	for n := 1; lines.Scan() && strings.HasPrefix(lines.Text(), "#"); n++ {
		m := namedSchema.FindStringSubmatch(lines.Text())
		if m == nil || strings.Contains(m[1], "://") || !filepath.IsLocal(m[1]) {
			continue
		}
		at := fmt.Sprintf("%s:%d:1: note: ", file, n)
		made := "write it with: refrain schema >" + filepath.Join(filepath.Dir(file), m[1])
		switch ours, err := sameSchema(filepath.Dir(file), m[1]); {
		case err != nil:
			fmt.Fprintf(w, "%sthe schema %s cannot be read, so an editor cannot check this file; %s\n", at, m[1], made)
		case !ours:
			fmt.Fprintf(w, "%sthe schema %s is of another version, and an editor may say other things than refrain; %s\n", at, m[1], made)
		}
		return
	}
}

// sameSchema reports whether a file in a folder is this version's schema.
func sameSchema(dir, name string) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would wait for a writer
		return false, errors.New("not a regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 4<<20))
	return err == nil && bytes.Equal(data, definition.Schema()), err
}

// endsReading lets a signal end the process while files are read, until release is
// called: a named pipe that nobody writes to is waited for without end. The error
// is of a signal that came before.
func endsReading(e *env) (release func(), err error) {
	if e.ctx == nil {
		return func() {}, nil
	}
	release = onInterrupt(e.ctx, func(os.Signal) { os.Exit(exitInterrupted) })
	return release, context.Cause(e.ctx)
}
