// SPDX-License-Identifier: Apache-2.0

package codingcli

import (
	"os"
	"path/filepath"
	"slices"
)

// cachesOf lists the folders in which build programs keep built and downloaded files. variable names the folder. If that variable
// is not set, the folder is at home below the user's home folder, or at userCache below the folder of the user's caches.
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

// caches returns the existing cache folders of the given programs, which write to them while they build and test. The sandbox of
// Codex lets commands write only in the working folder and in the folders that Codex is told.
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

// OwnFolders returns the files and folders that the program needs to change for itself, with ~ for the home folder.
func (p *Program) OwnFolders(getenv func(string) string) (all []string) {
	if p.SettingsVariable != "" {
		if dir := getenv(p.SettingsVariable); filepath.IsAbs(dir) {
			all = append(all, dir)
		}
	}
	for _, name := range p.Settings {
		all = append(all, "~/"+name)
	}
	return all
}
