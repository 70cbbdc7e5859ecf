// SPDX-License-Identifier: Apache-2.0

// Package trust decides whose stores and definitions may start programs without a question. A store that is found in a
// folder is trusted by who created it: it has a mark that only the owner of a secret in the state folder can make.
//
//	err := trust.Found(ctx, os.Getenv, ".refrain/refrain.db")
//	if _, stranger := errors.AsType[*trust.StrangerError](err); stranger {
//		// open the store for reading only
//	}
package trust

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// secretSize is the size of the secret in bytes.
const secretSize = 32

// Keeper remembers in the state folder of the user what the user trusts.
type Keeper struct {
	dir    string
	secret []byte
}

// Open opens the state folder, and creates it and its secret if they do not exist. The folder is REFRAIN_STATE_DIR, or else
// refrain in XDG_STATE_HOME, or else ~/.local/state/refrain. Open fails if none of the variables is set, and if the folder cannot be
// written or is one that other users may write to.
func Open(getenv func(string) string) (*Keeper, error) {
	dir, err := stateFolder(getenv)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	if why := writers(dir); why != "" {
		return nil, fmt.Errorf("the state folder %s: %s; close it with: chmod 700 %[1]s", dir, why)
	}
	k := &Keeper{dir: dir}
	if k.secret, err = k.readSecret(); errors.Is(err, fs.ErrNotExist) {
		if err = k.makeSecret(); err == nil {
			k.secret, err = k.readSecret()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the state folder %s: %w", dir, err)
	}
	return k, nil
}

// CopiesVariable names the folder of the copies of [Copies], in place of trees in the state folder.
const CopiesVariable = "REFRAIN_COPIES"

// Copies returns the folder in which workspaces make their copies, so that the tools of a project do not find them. It is empty if the
// user has no state folder that can be written: then copies are in the folder .refrain of the project.
func Copies(getenv func(string) string) string {
	if dir := getenv(CopiesVariable); dir != "" {
		if abs, err := filepath.Abs(dir); err == nil {
			return abs
		}
	}
	dir, err := stateFolder(getenv)
	if dir = filepath.Join(dir, "trees"); err != nil || !canMake(dir) {
		return ""
	}
	return dir
}

// canMake reports whether a folder can be written, or can be made if it does not exist. It makes nothing.
func canMake(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err == nil {
			return info.IsDir() && writable(dir)
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return false
		}
		dir = parent
	}
}

func stateFolder(getenv func(string) string) (string, error) {
	if dir := getenv("REFRAIN_STATE_DIR"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("REFRAIN_STATE_DIR %q: name an absolute path", dir)
		}
		return dir, nil
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the specification ignores a relative one
		return filepath.Join(dir, "refrain"), nil
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := getenv(name); filepath.IsAbs(home) {
			return filepath.Join(home, ".local", "state", "refrain"), nil
		}
	}
	return "", errors.New("no state folder, because HOME is not set; set REFRAIN_STATE_DIR")
}

func (k *Keeper) readSecret() ([]byte, error) {
	secret, err := os.ReadFile(filepath.Join(k.dir, "secret"))
	if err == nil && len(secret) != secretSize {
		err = fmt.Errorf("the file secret has %d bytes in place of %d; remove it, and run refrain trust in your folders", len(secret), secretSize)
	}
	return secret, err
}

// makeSecret creates the secret, unless another process creates it at the same time. No process ever reads half of it.
func (k *Keeper) makeSecret() error {
	name := filepath.Join(k.dir, "secret")
	temp := name + "." + rand.Text()
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	if err := os.WriteFile(temp, secret, 0o600); err != nil {
		return err
	}
	err := os.Link(temp, name)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temp))
}

// Seal returns a code that proves that this user wrote a text. The purpose separates the texts of one use from those of
// others.
func (k *Keeper) Seal(purpose, text string) string {
	h := hmac.New(sha256.New, k.secret)
	fmt.Fprintf(h, "%s\x00%s", purpose, text)
	return hex.EncodeToString(h.Sum(nil))
}

// Sealed reports whether the code is the seal of the text.
func (k *Keeper) Sealed(purpose, text, code string) bool {
	return hmac.Equal([]byte(k.Seal(purpose, text)), []byte(code))
}

// definitions is the file with the hashes of accepted definitions, one a line.
const definitions = "definitions"

// Accept records that the definition with a hash may start programs.
func (k *Keeper) Accept(hash string) error {
	if k.Accepts(hash) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(k.dir, definitions), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("accept a definition: %w", err)
	}
	_, err = f.WriteString(hash + "\n")
	return errors.Join(err, f.Close())
}

// Accepts reports whether Accept was called with the hash, by this process or another one.
func (k *Keeper) Accepts(hash string) bool {
	text, _ := os.ReadFile(filepath.Join(k.dir, definitions))
	for line := range bytes.Lines(text) {
		if string(bytes.TrimSpace(line)) == hash {
			return true
		}
	}
	return false
}
