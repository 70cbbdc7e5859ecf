// SPDX-License-Identifier: Apache-2.0

package program

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
)

// Hash returns a hash of the definition with all files that it refers to. It does not depend on the folder, so that it is the same for
// whoever reads the files. Programs that the definition starts are not part of it.
func (p *Program) Hash() string {
	h := sha256.New()
	dir := filepath.FromSlash(path.Dir(filepath.ToSlash(p.Path)))
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		seen, err := filepath.Rel(dir, filepath.FromSlash(name))
		if err != nil {
			seen = name
		}
		fmt.Fprintf(h, "%q %q\n", filepath.ToSlash(seen), p.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
