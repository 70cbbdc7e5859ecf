// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"crypto/sha256"
	"encoding/base32"
	"path"
	"slices"
	"strings"
)

// safe makes one file name out of any text. Two texts never get the same one,
// not on a file system that ignores case or that writes letters with accents in
// another way, and no name has a meaning of its own to an operating system.
//
// A text that is such a name stays as it is. Any other is made similar, and a
// hash tells it apart; only hashed names have a tilde.
func safe(text string) string {
	const long = 60
	var b strings.Builder
	for _, r := range text {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		case 'A' <= r && r <= 'Z':
			b.WriteRune(r - 'A' + 'a')
		default:
			b.WriteByte('_')
		}
	}
	name := b.String()
	if name == text && len(name) <= long && strings.Trim(name, ".") == name && name != "" && !isReserved(name) {
		return name
	}
	name = strings.Trim(name[:min(len(name), long)], ".")
	if name == "" || isReserved(name) {
		name = "_" + name
	}
	sum := sha256.Sum256([]byte(text))
	return name + "~" + letters.EncodeToString(sum[:16])
}

// letters encodes hashes with letters that safe keeps.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// isReserved reports whether Windows takes a name for a device.
func isReserved(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	if slices.Contains([]string{"con", "prn", "aux", "nul"}, base) {
		return true
	}
	port, ok := strings.CutPrefix(base, "com")
	if !ok {
		port, ok = strings.CutPrefix(base, "lpt")
	}
	return ok && len(port) == 1 && '0' <= port[0] && port[0] <= '9'
}

// extension returns the file extension, with its dot, by which an operating system chooses a
// program; empty if there is none worth keeping.
func extension(name string) string {
	ext := path.Ext(strings.ToLower(name))
	if len(ext) < 2 || len(ext) > 8 || strings.Trim(ext[1:], "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return ""
	}
	return ext
}
