// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"go/version"
	"runtime/debug"
	"slices"
	"strings"
)

// goVersion is the lowest version of Go that our go.mod allows.
const goVersion = "1.26.0"

// moveGoMod returns the new text of a go.mod, if the module uses ADK or Refrain. The first requirement of ADK becomes a
// requirement of Refrain in the newest version; if that is unknown the requirement is left out, and go mod tidy adds it.
func moveGoMod(text string, uses bool, newest string) (_ string, found []*Finding) {
	if !uses && !strings.Contains(text, adk) {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	moved := slices.Clone(lines)
	block := ""
	place := -1
	for i, line := range lines {
		code, _, _ := strings.Cut(line, "//")
		words := strings.Fields(code)
		verb := block
		switch {
		case len(words) == 0:
			continue
		case words[0] == ")":
			block = ""
			continue
		case block == "" && (len(words) == 2 && words[1] == "(" || len(words) == 1 && strings.HasSuffix(words[0], "(")):
			block = strings.TrimSuffix(words[0], "(")
			continue
		case block == "":
			verb, words = words[0], words[1:]
		}
		if len(words) == 0 {
			continue
		}
		path := strings.Trim(words[0], "\"`")
		switch {
		case verb == "go" && older(path):
			moved[i] = strings.Replace(line, words[0], goVersion, 1)
		case verb == "toolchain" && older(strings.TrimPrefix(path, "go")):
			moved[i] = ""
		case verb == "require" && path == Module:
			newest = "" // go.mod requires Refrain already
		case path != adk && path != adk+"/v2" && !(verb == "tool" && strings.HasPrefix(path, adk+"/")):
		case verb == "module":
		default:
			moved[i] = ""
			if verb == "require" && place < 0 {
				place = i
			}
			if verb == "replace" || verb == "tool" {
				column := strings.Index(line, words[0]) + 1
				found = append(found, &Finding{Line: i + 1, Column: column,
					Text: "this " + verb + " of ADK has no counterpart, so it is removed"})
			}
		}
	}
	for i := range moved {
		blank := func(k int) bool { return k < 0 || k+1 >= len(lines) || strings.TrimSpace(lines[k]) == "" }
		switch {
		case moved[i] != "" || lines[i] == "" || place == i && newest != "" || !blank(i-1) || !blank(i+1):
		case i+2 < len(lines):
			moved[i+1] = "" // one blank line is enough
		case i > 0:
			moved[i-1] = ""
		}
	}
	var was []string
	if place >= 0 {
		was = strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines[place]), "require "))
	}
	if len(was) > 1 && newest != "" {
		moved[place] = strings.Replace(strings.Replace(lines[place], was[0], Module, 1), was[1], newest, 1)
	}
	return strings.Join(moved, ""), found
}

// older reports whether a version of Go is lower than [goVersion].
func older(v string) bool {
	return version.IsValid("go"+v) && version.Compare("go"+v, "go"+goVersion) < 0
}

// ownVersion returns the version of Refrain in this program; empty for a checkout.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	v := info.Main.Version
	for _, m := range info.Deps {
		if m.Path == Module && m.Replace == nil {
			v = m.Version
		} else if m.Path == Module {
			v = ""
		}
	}
	if !strings.HasPrefix(v, "v") || strings.Contains(v, "+dirty") {
		return ""
	}
	return v
}
