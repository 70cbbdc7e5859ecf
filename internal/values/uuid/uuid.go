// SPDX-License-Identifier: Apache-2.0

// Package uuid makes UUIDs, so that the core of the library needs no module for them.
//
//	id := uuid.New().String() // 0f8fad5b-d9cb-469f-a165-70867728950e
package uuid

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
)

// UUID is a universally unique identifier, as in RFC 9562.
type UUID [16]byte

// New returns a random UUID: version 4, with 122 random bits.
func New() UUID {
	var u UUID
	_, _ = rand.Read(u[:]) // it returns no error: without random numbers it ends the program
	return u.version(4)
}

// objects is the namespace of names that are object identifiers.
var objects = UUID{0x6b, 0xa7, 0xb8, 0x12, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}

// Named returns the UUID of a name, the same each time: version 5, in the namespace of object identifiers.
func Named(name []byte) UUID {
	sum := sha1.Sum(append(objects[:len(objects):len(objects)], name...))
	return UUID(sum[:16]).version(5)
}

func (u UUID) version(v byte) UUID {
	u[6] = u[6]&0x0f | v<<4
	u[8] = u[8]&0x3f | 0x80
	return u
}

// String returns the UUID in its usual form, of 36 characters.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Valid reports whether a text is a UUID of any version in its usual form.
func Valid(text string) bool {
	parts := strings.Split(text, "-")
	if len(text) != 36 || len(parts) != 5 {
		return false
	}
	for i, n := range []int{8, 4, 4, 4, 12} {
		if _, err := hex.DecodeString(parts[i]); err != nil || len(parts[i]) != n {
			return false
		}
	}
	return true
}
