// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"os"
	"path/filepath"
	"slices"
)

// cachesOf are the folders in which build programs keep what they have built or loaded: a variable that names the folder, or
// else its place below the home or below the folder of the user's caches.
var cachesOf = []struct {
	programs                  []string
	variable, home, userCache string
}{
	{programs: []string{"go", "gotestsum"}, variable: "GOCACHE", userCache: "go-build"},
	{programs: []string{"npm", "npx", "node"}, variable: "npm_config_cache", home: ".npm"},
	{programs: []string{"cargo"}, variable: "CARGO_HOME", home: ".cargo"},
	{programs: []string{"gradle", "gradlew"}, variable: "GRADLE_USER_HOME", home: ".gradle"},
	{programs: []string{"mvn", "mvnw"}, home: ".m2"},
}

// caches returns the folders outside the tree that programs write to while they build and test. Codex lets its commands write
// in the tree and in these.
func caches(programs []string) (all []string) {
	for _, c := range cachesOf {
		if !slices.ContainsFunc(programs, func(p string) bool { return slices.Contains(c.programs, p) }) {
			continue
		}
		dir := os.Getenv(c.variable)
		if dir == "" && c.home != "" {
			if home, err := os.UserHomeDir(); err == nil {
				dir = filepath.Join(home, c.home)
			}
		}
		if dir == "" && c.userCache != "" {
			if cache, err := os.UserCacheDir(); err == nil {
				dir = filepath.Join(cache, c.userCache)
			}
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) {
			all = append(all, dir)
		}
	}
	return all
}
