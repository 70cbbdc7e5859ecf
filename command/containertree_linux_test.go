// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In the processes of a container (an init with the secrets in its environment, below it refrain, below it a step) a step
// finds neither the token nor a key: refrain begins as root, reads the files, and goes on as REFRAIN_USER. Without that the
// step finds both, which shows that it looks in the right place.
func TestStepOfAContainerFindsNoSecrets(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start what a container starts")
	}
	const token, key = "tk-of-the-container-1", "sk-of-the-file-2"
	for _, user := range []string{"65534", ""} {
		dir := t.TempDir()
		for path := dir; path != os.TempDir() && len(path) > 1; path = filepath.Dir(path) {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, "look.yaml"), "name: look\ncommand: [sh, look.sh]\n")
		write(t, filepath.Join(dir, "look.sh"), "id -u >who\ncat /proc/[0-9]*/environ key >seen 2>/dev/null\ntrue\n")
		write(t, filepath.Join(dir, "key"), key+"\n")
		for _, name := range []string{"look.yaml", "look.sh"} {
			if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, "key"), 0o400); err != nil {
			t.Fatal(err)
		}
		if user != "" {
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
		init := exec.CommandContext(t.Context(), "sh", "-c", `refrain run look.yaml --store sqlite:runs.db & wait $!`)
		init.Dir = dir
		init.Env = append(os.Environ(), "HOME="+dir, "REFRAIN_TOKEN="+token, "OPENAI_API_KEY_FILE=key", "REFRAIN_USER="+user)
		out, err := init.CombinedOutput()
		if err != nil {
			t.Fatalf("user %q: %v\n%s", user, err, out)
		}
		who, err := os.ReadFile(filepath.Join(dir, "who"))
		if err != nil || user != "" && strings.TrimSpace(string(who)) != user {
			t.Errorf("the step runs as %q, %v", who, err)
		}
		seen, err := os.ReadFile(filepath.Join(dir, "seen"))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{token, key} {
			if found := strings.Contains(string(seen), secret); found != (user == "") {
				t.Errorf("user %q: the step finds %s: %t", user, secret, found)
			}
		}
	}
}

// A secret comes from the file that NAME_FILE names; a file that cannot be used is an error that names the variable.
func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // refrain serve changes the folder
	token := filepath.Join(dir, "token")
	write(t, token, "too-short\n")
	env := func(name string) string {
		if name == "REFRAIN_TOKEN_FILE" {
			return token
		}
		return ""
	}
	for _, tt := range []struct{ text, want string }{
		{"too-short\n", "the token has 9 characters"}, {"\n", "REFRAIN_TOKEN_FILE: " + token + " is empty"}, {"", "is empty"},
	} {
		write(t, token, tt.text)
		var out, errs strings.Builder
		args := []string{"serve", "--addr", "0.0.0.0:0", "--dir", dir, "--store", "memory"}
		if code := run(t.Context(), nil, args, env, strings.NewReader(""), &out, &errs); code == 0 || !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%q: %d %s", tt.text, code, errs.String())
		}
	}
}
