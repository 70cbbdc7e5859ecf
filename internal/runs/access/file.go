// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// mostBytes is the largest file of people.
const mostBytes = 1 << 20

// ErrUnknown is the error of a token or a name that the file does not have.
var ErrUnknown = errors.New("the file has no such person")

// Entry is a person in the file.
type Entry struct {
	Person
	// Hash is the SHA-256 of the token, in hexadecimal digits; empty for a person without a token, whom a proxy names. A token
	// has 130 random bits, so nobody finds it by trying, and a slow hash would add nothing.
	Hash  string    `json:"sha256,omitempty"`
	Added time.Time `json:"added,omitzero"`
}

// content is the content of the file.
type content struct {
	People []Entry `json:"people"`
}

// File is a file of people. It is safe for concurrent use, also by several processes.
type File struct {
	path string

	mu   sync.Mutex
	text []byte // the file when it was last decoded
	last []Entry
}

// At returns the file with a path, which may be missing. Use it to add people.
func At(path string) *File { return &File{path: path} }

// Open returns the file with a path. It fails if the file cannot be read.
func Open(path string) (*File, error) {
	f := At(path)
	_, err := f.List()
	return f, err
}

// WithToken returns the person with a token, or [ErrUnknown]. Any other error means that the file cannot be read.
func (f *File) WithToken(token string) (Person, error) {
	hash := hashOf(token)
	return f.find(func(e *Entry) bool { return e.Hash == hash })
}

// Named returns the person with a name, or [ErrUnknown]. Any other error means that the file cannot be read.
func (f *File) Named(name string) (Person, error) {
	return f.find(func(e *Entry) bool { return e.Name == name })
}

func (f *File) find(is func(*Entry) bool) (Person, error) {
	all, err := f.List()
	if err != nil {
		return Person{}, err
	}
	for i := range all {
		if is(&all[i]) {
			return all[i].Person, nil
		}
	}
	return Person{}, ErrUnknown
}

// List returns the people in the order in which they were added. The caller must not change them.
func (f *File) List() ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := f.read()
	if err == nil && (f.last == nil || !bytes.Equal(text, f.text)) {
		f.last, err = decode(text)
		f.text = text
	}
	if err != nil {
		f.last = nil
		return nil, fmt.Errorf("read the people in %s: %w", f.path, err)
	}
	return f.last, nil
}

// read returns the text of the file. It fails if others may write it, because they could give themselves a role.
func (f *File) read() ([]byte, error) {
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("other users may write to it: chmod 600 %s", f.path)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("it has more than %d bytes", mostBytes)
	}
	return text, err
}

func decode(text []byte) ([]Entry, error) {
	c := content{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("it is not a file of refrain token: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not a file of refrain token: something follows the list")
	}
	names, hashes := map[string]bool{}, map[string]bool{"": true}
	for i := range c.People {
		e := &c.People[i]
		sum, err := hex.DecodeString(e.Hash)
		switch {
		case CheckName(e.Name) != nil:
			return nil, fmt.Errorf("people[%d]: %w", i, CheckName(e.Name))
		case e.Role == None:
			return nil, fmt.Errorf("people[%d] (%s) has no role", i, e.Name)
		case names[e.Name]:
			return nil, fmt.Errorf("people[%d]: the name %s is there twice", i, e.Name)
		case err != nil, e.Hash != "" && (len(sum) != sha256.Size || hashes[e.Hash]):
			return nil, fmt.Errorf("people[%d] (%s): sha256 is not the hash of a token of its own", i, e.Name)
		}
		names[e.Name], hashes[e.Hash] = true, true
	}
	if c.People == nil {
		c.People = []Entry{}
	}
	return c.People, nil
}

// Add adds a person, and returns the person's token, which the file does not have. Without hasToken there is none. Add creates
// the file if it is missing. It fails if the file has the name.
func (f *File) Add(who Person, hasToken bool) (token string, err error) {
	if err := CheckName(who.Name); err != nil {
		return "", err
	}
	e := Entry{Person: who, Added: time.Now().UTC().Truncate(time.Second)}
	if hasToken {
		token = "rk_" + rand.Text()
		e.Hash = hashOf(token)
	}
	return token, f.change(func(all []Entry) ([]Entry, error) {
		if slices.ContainsFunc(all, func(e Entry) bool { return e.Name == who.Name }) {
			return nil, fmt.Errorf("%s has the name %s: remove it first, or choose another one", f.path, who.Name)
		}
		return append(all, e), nil
	})
}

// Remove removes a person. It fails with [ErrUnknown] if the file does not have the name.
func (f *File) Remove(name string) error {
	return f.change(func(all []Entry) ([]Entry, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Name == name })
		if len(left) == len(all) {
			names := make([]string, len(all))
			for i := range all {
				names[i] = all[i].Name
			}
			hint := ""
			if near := suggest.Nearest(name, names); near != "" {
				hint = fmt.Sprintf(" (did you mean %s?)", near)
			}
			return nil, fmt.Errorf("remove %s from %s: %w%s", name, f.path, ErrUnknown, hint)
		}
		return left, nil
	})
}

// change replaces the file by a complete new one, which only its owner may read. Other processes that change it wait meanwhile.
func (f *File) change(do func([]Entry) ([]Entry, error)) (err error) {
	// Of the owner alone too: who can open the lock can keep others from a removal.
	lock, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_ = lock.Close()
	unlock, err := lockedfile.MutexAt(f.path + ".lock").Lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := f.List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if all, err = do(slices.Clip(all)); err != nil {
		return err
	}
	text, err := json.MarshalIndent(content{all}, "", "  ")
	if err != nil {
		return err
	}
	path := f.path
	if real, err := filepath.EvalSymlinks(path); err == nil { // of a link, the file that it names is replaced
		path = real
	}
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // with mode 0600
	if err != nil {
		return err
	}
	_, err = made.Write(append(text, '\n'))
	if err = errors.Join(err, made.Sync(), made.Close()); err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		_ = os.Remove(made.Name())
	}
	return err
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
