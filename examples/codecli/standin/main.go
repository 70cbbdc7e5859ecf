// SPDX-License-Identifier: Apache-2.0

// Standin is no coding CLI. It stands in for one in an example that runs without a
// network: it is asked in words, as such programs are, and repairs a file in the
// folder in which it runs. It does not understand the words. It knows three
// mistakes in roman.go and the tests that find them, and repairs the first that
// the words tell of.
//
//	echo "go test says: --- FAIL: TestSums" | standin
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

// file is the only one that is ever changed.
const file = "roman.go"

// repair is a mistake, the test that finds it, and what is right.
type repair struct{ test, said, wrong, right string }

var repairs = []repair{
	{
		"TestSums", "a number that is as large as a sign's value takes the sign, too",
		"for n > s.value {", "for n >= s.value {",
	},
	{
		"TestDifferences", "added the signs that are differences, such as IV",
		`{1000, "M"}, {500, "D"}, {100, "C"}, {50, "L"}, {10, "X"}, {5, "V"}, {1, "I"},`,
		`{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"},
	{40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},`,
	},
	{
		"TestLimits", "numbers above 3999 are now refused",
		"	var b strings.Builder\n",
		"	if n > 3999 {\n\t\treturn \"\"\n\t}\n	var b strings.Builder\n",
	},
}

func run(asked io.Reader, out io.Writer) error {
	words, err := io.ReadAll(asked)
	if err != nil || len(words) == 0 {
		return errors.Join(errors.New("give what is to be done, on standard input"), err)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w; run it in the folder of the code", err)
	}
	for _, r := range repairs {
		if !bytes.Contains(words, []byte("FAIL: "+r.test)) || !bytes.Contains(code, []byte(r.wrong)) ||
			bytes.Contains(code, []byte(r.right)) {
			continue
		}
		code = bytes.Replace(code, []byte(r.wrong), []byte(r.right), 1)
		if err := os.WriteFile(file, code, 0o644); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "I am a stand-in for a coding CLI, and no model. In %s, for %s: %s.\n", file, r.test,
			r.said)
		return err
	}
	_, err = fmt.Fprintln(out, "I am a stand-in for a coding CLI, and know nothing about this.")
	return err
}
